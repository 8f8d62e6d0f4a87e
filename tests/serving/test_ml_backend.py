"""Label Studio's protocol of ML backends, spoken without Label Studio; tests/label_studio asks with the real one."""

import base64
import io
import logging

import numpy as np
import pytest
import tensorflow as tf
from known_models import save_model, write_extra
from running_server import rest as ask
from running_server import serving

from crowdzoo.commands.main import main
from crowdzoo.data.regions import mask_tools
from crowdzoo.errors import ServingError
from crowdzoo.reading.platforms.shapes import brush_mask, brush_rle
from crowdzoo.serving import Server

SECRET = "correct horse"
CHOICES = """<View><Text name="text" value="$text"/><Choices name="kind" toName="text">{}</Choices></View>"""
CONFIG = CHOICES.format('<Choice value="news"/><Choice value="sport"/>')
SPANS = (
    """<View><Labels name="who" toName="text"><Label value="PER"/></Labels><Text name="text" value="$text"/></View>"""
)
BRUSH = """<View><Image name="image" value="$image"/>
<BrushLabels name="mask" toName="image"><Label value="cell"/></BrushLabels></View>"""


def save(folder, classes, answer, signatures=("serving_default",), images=None, **inputs):
    """A model as crowdzoo exports it, whose answer is known; it takes texts unless other inputs are given."""
    save_model(folder / "1", answer, signatures, **(inputs or {"instances": ("string",)}))
    card = {"software": {"crowdzoo": "0"}, "signatures": {"serving_default": {}}, "classes": classes}
    write_extra(folder / "1", model_card={**card, **({"images": images} if images else {})})
    return folder


def kinds(texts):
    """Sport with .75 where the text has a ball, news with .625 elsewhere; "refuse" is refused."""
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(texts != "refuse"), ["refused:", texts])]):
        is_sport = tf.strings.regex_full_match(texts, ".*ball.*")
    probabilities = tf.where(is_sport[:, None], [[0.25, 0.75]], [[0.625, 0.375]])
    label = tf.argmax(probabilities, axis=-1)
    return {"probabilities": probabilities, "label": label, "class": tf.gather(["news", "sport"], label)}


def names(texts):
    """Words with a capital are names; a word's score is 1 / (1 + its place)."""
    words = tf.strings.split(texts, " ")
    sizes = tf.strings.length(words).to_tensor()
    ends = tf.cumsum(sizes + 1, axis=1) - 1
    words = words.to_tensor("")
    is_name = tf.strings.regex_full_match(words, "[A-Z].*")
    goes_on = tf.concat([tf.zeros_like(is_name[:, :1]), is_name[:, :-1]], axis=1)
    tags = tf.where(is_name, tf.where(goes_on, "I-PER", "B-PER"), "O")
    scores = tf.ones_like(ends, tf.float32) / tf.cast(1 + tf.range(tf.shape(ends)[1]), tf.float32)
    lengths = tf.reduce_sum(tf.cast(sizes > 0, tf.int64), axis=1)
    places = {"starts": tf.cast(ends - sizes, tf.int64), "ends": tf.cast(ends, tf.int64)}
    return {"tokens": words, "tags": tags, "scores": scores, "lengths": lengths, **places}


def cells(images):
    """White pixels of an image that is made 2 x 2."""

    def read(content):
        return tf.image.resize(tf.io.decode_image(content, 3, expand_animations=False), [2, 2], "nearest")

    label = tf.cast(tf.map_fn(read, images, fn_output_signature=tf.uint8)[..., 0] > 127, tf.int64)
    classes = tf.repeat(tf.constant([["ground", "cell"]]), tf.shape(images)[0], axis=0)
    return {"probabilities": tf.one_hot(label, 2, 0.875, 0.125), "label": label, "classes": classes}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Several models, and no secret."""
    folder = tmp_path_factory.mktemp("models")
    save(folder / "texts", ["news", "sport"], kinds)
    save(folder / "ner", ["O", "B-PER", "I-PER"], names, signatures=("serving_default", "spans"))
    save(folder / "cells", ["ground", "cell"], cells, images={"fit": "stretch"})
    save(folder / "cropped", ["ground", "cell"], cells, images={"fit": "crop"})
    save(folder / "stars", None, lambda x: {"value": x[:, 0]}, instances=("float32", 2))
    save(folder / "other", None, lambda x: {"y": x})
    models = "".join(f'config {{ name: "{each.name}" base_path: "{each.name}" }} ' for each in folder.iterdir())
    (folder / "models.config").write_text(f"model_config_list {{ {models} }}")
    with serving(config=folder / "models.config", label_studio=True) as running:
        yield running


def predict(server, model, config, *data):
    tasks = [{"id": 7 + place, "data": each} for place, each in enumerate(data)]
    body = {"tasks": tasks, "project": "1.2", "label_config": config, "params": {"login": "", "password": ""}}
    return ask(server, f"/v1/models/{model}/predict", body)


def results(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


def png(pixels):
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.array(pixels, np.uint8)).save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


# === Protocol ===


def test_a_server_is_no_backend_unless_it_is_asked_for(tmp_path):
    with serving(save(tmp_path, ["news", "sport"], kinds), "texts") as plain:
        for path in ("/health", "/v1/models/texts/health"):
            assert ask(plain, path).status_code == 404
        for call in ("setup", "predict", "webhook"):
            assert ask(plain, f"/v1/models/texts/{call}", {}).status_code == 404


def test_setup_health_and_webhooks_are_answered_and_the_token_of_setup_is_kept_nowhere(server, caplog):
    caplog.set_level(logging.DEBUG)
    assert ask(server, "/v1/models/texts/health").json()["status"] == "UP"
    sent = {"project": "1.2", "schema": CONFIG, "hostname": "http://x", "access_token": "t0ken", "extra_params": None}
    answer = ask(server, "/v1/models/texts/setup", sent)
    assert (answer.status_code, answer.json()) == (200, {"model_version": "crowdzoo/texts/1"})
    assert ask(server, "/v1/models/texts/setup", {**sent, "schema": "<View/>"}).status_code == 400
    assert ask(server, "/v1/models/texts/webhook", {"action": "ANNOTATION_CREATED"}).json() == {}
    assert "t0ken" not in caplog.text
    assert "has no Choices or Taxonomy with the classes 'news', 'sport'" in caplog.text


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/health", None, 404, "name the model: /v1/models/"),
        ("/v1/models/nobody/health", None, 404, "model 'nobody' is not served here"),
        ("/v1/models/texts/health", b"{}", 405, "use GET"),
        ("/v1/models/texts/predict", None, 405, "use POST"),
        ("/v1/models/texts/predict", b"{", 400, "not JSON"),
        ("/v1/models/texts/predict", b"{}", 400, "labelling configuration"),
        ("/v1/models/texts/predict", {"label_config": CONFIG}, 400, "'tasks' must be a list"),
        ("/v1/models/texts/predict", {"label_config": CONFIG, "tasks": [1]}, 400, "task None: has no object 'data'"),
        ("/v1/models/texts/predict", {"label_config": "<!DOCTYPE x []><View/>", "tasks": []}, 400, "document type"),
        ("/v1/models/texts/setup", {"schema": CHOICES.format("")}, 200, "crowdzoo/texts/1"),
        (
            "/v1/models/texts/setup",
            {"schema": CHOICES.format('<Choice value="news"/>')},
            400,
            "classes 'news', 'sport'",
        ),
        ("/v1/models/ner/setup", {"schema": SPANS.replace("Text", "HyperText")}, 400, "has no Labels of a Text"),
        ("/v1/models/cropped/setup", {"schema": BRUSH}, 400, "fit='stretch'"),
        ("/v1/models/other/setup", {"schema": CONFIG}, 400, "not one of crowdzoo for classes, spans, ratings or masks"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(server, path, body, status, reason):
    answer = ask(server, path, body)
    assert answer.status_code == status, answer.text
    assert reason in answer.text


def test_a_body_that_is_too_long_is_refused(tmp_path):
    folder = save(tmp_path, ["news", "sport"], kinds)
    with serving(folder, request_bytes=1000, label_studio=True) as small:
        assert ask(small, "/predict", b"x" * 2000).status_code == 413
        assert ask(small, "/health").status_code == 200


# === Secret ===


def test_others_reach_the_backend_with_a_secret_only(tmp_path, caplog):
    folder = save(tmp_path, ["news", "sport"], kinds)
    options = {"host": "0.0.0.0", "label_studio": True}
    with pytest.raises(ServingError, match="variable CROWDZOO_LABEL_STUDIO_SECRET"), serving(folder, **options):
        pass
    for secret in ("", "gehe\u00efm", "two\nlines"):
        with pytest.raises(ServingError, match="printable ASCII"):
            Server(folder, **options, label_studio_secret=secret)
    with serving(folder, **options, label_studio_secret=SECRET) as running:
        tasks = {"tasks": [{"id": 1, "data": {"text": "ball"}}], "label_config": CONFIG}
        for path, body in (("/health", None), ("/setup", {"schema": CONFIG}), ("/predict", tasks)):
            for auth in (None, ("crowdzoo", "wrong"), ("other", SECRET), ("crowdzoo", "")):
                answer = ask(running, path, body, auth=auth)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Basic"
            assert ask(running, path, body, auth=("crowdzoo", SECRET)).status_code == 200
        assert ask(running, "/webhook", {}).status_code == 200  # Label Studio sends no password to webhooks
    assert SECRET not in caplog.text
    assert "the secret is for Label Studio's paths alone" in caplog.text


@pytest.mark.parametrize("words", [["--label-studio"], []])
def test_the_command_takes_the_secret_from_the_environment(monkeypatch, words):
    calls = []
    monkeypatch.setattr("crowdzoo.serving.server.serve", lambda folder, **settings: calls.append(settings))
    monkeypatch.setenv("CROWDZOO_LABEL_STUDIO_SECRET", SECRET)
    assert main(["serve", "served", *words]) == 0
    assert (calls[0]["label_studio"], calls[0].get("label_studio_secret")) == (bool(words), SECRET if words else None)


# === Predictions ===


def test_a_text_gets_its_class_and_the_probability_as_score(server):
    found = results(predict(server, "texts", CONFIG, {"text": "a ball"}, {"text": "tax"}))
    about = {"id": "crowdzoo-0", "from_name": "kind", "to_name": "text", "type": "choices"}
    assert found == [
        {"result": [{**about, "value": {"choices": [label]}}], "score": score, "model_version": "crowdzoo/texts/1"}
        for label, score in (("sport", 0.75), ("news", 0.625))
    ]


def test_the_control_that_has_the_classes_is_answered(server):
    other = '<Choices name="tone" toName="text"><Choice value="good"/></Choices></View>'
    tree = """<View><Text name="text" value="$text"/><Taxonomy name="tree" toName="text">
    <Choice value="news"/><Choice value="sport"/></Taxonomy>"""
    (found,) = results(predict(server, "texts", tree + other, {"text": "tax"}))
    assert found["result"][0]["from_name"] == "tree"
    assert found["result"][0]["value"] == {"taxonomy": [["news"]]}


def test_one_bad_task_leaves_the_others_their_predictions(server, caplog):
    data = [
        {"text": "ball"}, {"text": "refuse"}, {"body": "tax"}, {"text": 3}, {"text": "http://10.0.0.1/x"}, {"text": ""},
    ]  # fmt: skip
    found = results(predict(server, "texts", CONFIG, *data))
    assert [bool(each) for each in found] == [True, False, False, False, False, True]
    assert found[1] == []
    assert "4 of 6 tasks have no prediction; task 9: 'text' of" in caplog.text
    answer = predict(server, "texts", CONFIG, *data[1:5])
    assert answer.status_code == 400
    assert "task 8: 'text' of its data is not a text" in answer.json()["error"]


def test_a_request_of_many_bad_tasks_ends_early(server):
    answer = predict(server, "texts", CONFIG, *[{"text": "refuse"}] * 300)
    assert answer.status_code == 400
    assert "100 tasks are refused; task 106" in answer.json()["error"]


def test_spans_are_counted_in_characters(server):
    first, none, empty = results(
        predict(server, "ner", SPANS, {"text": "👩 été Zoë Bell ran to Ann"}, {"text": "nobody"}, {"text": ""})
    )
    about = {"from_name": "who", "to_name": "text", "type": "labels"}
    assert [each["value"] for each in first["result"]] == [
        {"start": 6, "end": 14, "text": "Zoë Bell", "labels": ["PER"]},
        {"start": 22, "end": 25, "text": "Ann", "labels": ["PER"]},
    ]
    assert all(each.items() >= about.items() for each in first["result"])
    # places 2 and 3, and 6; the score of the whole is the lowest
    np.testing.assert_allclose([each["score"] for each in first["result"]], [(1 / 3 + 1 / 4) / 2, 1 / 7], rtol=1e-6)
    np.testing.assert_allclose(first["score"], 1 / 7, rtol=1e-6)
    assert (none["result"], none["score"]) == ([], 1.0)
    assert (empty["result"], empty["score"]) == ([], 1.0)


def test_a_mask_comes_as_a_brush_in_the_size_of_the_image(server):
    pixels = np.zeros((6, 4, 3))
    pixels[:3, 2:] = 255
    (found,) = results(predict(server, "cells", BRUSH, {"image": png(pixels)}))
    (mask,) = found["result"]
    about = {"from_name": "mask", "to_name": "image", "type": "brushlabels", "original_width": 4, "original_height": 6}
    assert mask.items() >= about.items()
    assert mask["value"]["brushlabels"] == ["cell"]
    assert mask["value"]["format"] == "rle"
    counts = brush_mask(mask["value"]["rle"], (6, 4))["counts"]
    np.testing.assert_array_equal(mask_tools().decode({"size": [6, 4], "counts": counts}), pixels[..., 0] > 0)
    assert found["score"] == 0.875
    (nothing,) = results(predict(server, "cells", BRUSH, {"image": png(np.zeros((6, 4, 3)))}))
    assert nothing["result"] == []


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("http://169.254.169.254/latest", "this server fetches nothing"),
        ("/data/upload/1/a.png", "this server fetches nothing"),
        ("file:///etc/passwd", "this server fetches nothing"),
        ("data:text/html;base64,aaaa", "this server fetches nothing"),
        ("data:image/png;base64,a*", "base64"),
        ("data:image/png;base64,aaaa", "not a readable image"),
        ("data:image/png;base64,", "is empty"),
    ],
)
def test_images_are_taken_from_the_request_alone(server, image, reason):
    answer = predict(server, "cells", BRUSH, {"image": image})
    assert answer.status_code == 400
    assert reason in answer.json()["error"]


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (300, 400)])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_packed_mask_is_read_back(shape, share):
    pixels = np.random.default_rng(0).random(shape) < share
    counts = brush_mask(brush_rle(pixels).tolist(), shape)["counts"]
    np.testing.assert_array_equal(mask_tools().decode({"size": [*shape], "counts": counts}), pixels)


def test_vectors_come_by_the_name_of_the_input_and_ratings_stay_on_the_scale(server):
    stars = '<View><Text name="text" value="$text"/><Rating name="stars" toName="text" maxRating="4"/></View>'
    data = [{"text": "a", "instances": [number, 0]} for number in (2.6, 9.0, -1.0)]
    found = results(predict(server, "stars", stars, *data))
    assert [each["result"][0]["value"]["rating"] for each in found] == [3, 4, 1]
    assert "score" not in found[0]
    number = stars.replace("Rating", "Number").replace('maxRating="4"', "")
    assert results(predict(server, "stars", number, data[0]))[0]["result"][0]["value"] == {"number": pytest.approx(2.6)}


def test_a_row_of_a_table_is_read_from_the_columns_of_a_task(tmp_path):
    def by_age(age__years_, city):
        is_old = (age__years_ > 60) | (city == "Porto")
        probabilities = tf.one_hot(tf.cast(is_old, tf.int64), 2, 0.75, 0.25)
        return {"probabilities": probabilities, "class": tf.where(is_old, "sport", "news")}

    folder = save(tmp_path, ["news", "sport"], by_age, age__years_=("float32",), city=("string",))
    with serving(folder, "people", label_studio=True) as running:
        data = [{"age (years)": 70, "city": "x", "text": "t"}, {"age (years)": "", "city": "Porto"}, {"city": None}]
        found = results(predict(running, "people", CONFIG, *data))
        assert [each["result"][0]["value"]["choices"] for each in found] == [["sport"], ["sport"], ["news"]]
