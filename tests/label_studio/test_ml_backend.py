"""Label Studio asks `crowdzoo serve` for predictions: a text classifier that a crowd taught, a tagger, and masks."""

import base64
import io
import json
import subprocess
import time
from pathlib import Path

import keras
import numpy as np
import pytest
from command_line import run
from server import CHOICES, PROGRAM, SETTINGS

from crowdzoo.export.predict import load_and_predict
from crowdzoo.models import CrowdModel, ImagePixels, SequenceTagger, TokenEncoder, UNet
from crowdzoo.serving import Server
from crowdzoo.serving.ml_backend import MlBackend
from crowdzoo.tables import Annotations

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("label_studio")]
CONFIG = CHOICES.format('<Choice value="music"/><Choice value="sport"/>')
SPANS = """<View><Labels name="who" toName="text"><Label value="LOC"/><Label value="PER"/></Labels>
<Text name="text" value="$text"/></View>"""
BRUSH = """<View><Image name="image" value="$image"/>
<BrushLabels name="mask" toName="image"><Label value="cell"/><Label value="wall"/></BrushLabels></View>"""
SECRET = "correct horse"
WORDS = {"music": ["song", "guitar", "choir", "melody"], "sport": ["goal", "ball", "team", "match"]}
NEW = ["the choir sang a melody", "a goal by the home team", "guitar and song, all night"]


@pytest.fixture
def backend():
    """Starts a server of a folder that Label Studio asks."""
    running = []

    def start(folder, **options):
        running.append(Server(folder, name="kinds", rest_port=0, grpc_port=0, label_studio=True, **options))
        running[-1].start()
        return f"http://127.0.0.1:{running[-1].rest_port}/v1/models/kinds"

    yield start
    for server in running:
        server.stop()


def connect(studio, project, url, **more):
    """The response of Label Studio, which checks the backend when it is added."""
    return studio.owner.ask("POST", "/api/ml", json={"url": url, "project": project, "title": "crowdzoo", **more})


def retrieve(studio, project):
    """All predictions of a project by task, after Label Studio has asked the backend for those that are missing."""
    selected = {"selectedItems": {"all": True, "excluded": []}}
    where = {"id": "retrieve_tasks_predictions", "project": project}
    answer = studio.owner.ask("POST", "/api/dm/actions", params=where, json=selected)
    assert answer.is_success, answer.text
    found = {}
    for each in studio.owner.json("GET", "/api/predictions/", project=project):
        found.setdefault(each["task"], []).append(each)
    return found


def test_the_addresses_that_label_studio_may_ask_here_are_those_of_the_docs():
    page = Path(__file__).parents[2].joinpath("docs", "serving.md").read_text(encoding="utf-8").replace("\\\n", "")
    for name in ("USE_DEFAULT_BANNED_SUBNETS", "USER_ADDITIONAL_BANNED_SUBNETS"):
        assert f"export {name}={SETTINGS[name]}\n" in page


def tasks_of(studio, project):
    return sorted(each["id"] for each in studio.owner.json("GET", f"/api/projects/{project}/tasks/", page_size=100))


def test_a_model_that_a_crowd_taught_labels_new_tasks(studio, backend, tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    texts, answers = ["task,text"], ["task,annotator,label"]
    for task in range(60):
        label = ("music", "sport")[task % 2]
        texts.append(f"{task},the {' '.join(random.choice(WORDS[label], 2))} again")
        answers += [f"{task},{who},{label if random.random() < 0.9 else 'sport'}" for who in ("ann", "bob", "cem")]
    (tmp_path / "texts.csv").write_text("\n".join(texts))
    (tmp_path / "answers.csv").write_text("\n".join(answers))
    assert run("train", tmp_path / "answers.csv", tmp_path / "texts.csv", "--out", tmp_path / "model.keras") == 0
    assert run("export", tmp_path / "model.keras", tmp_path / "served") == 0

    project = studio.project(CONFIG, [{"data": {"text": text}} for text in NEW])
    url = backend(tmp_path / "served", label_studio_secret=SECRET)
    user = {"auth_method": "BASIC_AUTH", "basic_auth_user": "crowdzoo", "basic_auth_pass": SECRET}
    assert "reserved network address" in connect(studio, project, "http://10.0.0.1:8501", **user).text
    refused = connect(studio, project, url, **{**user, "basic_auth_pass": "wrong"})
    assert refused.status_code == 400
    assert "authentication parameters were either" in refused.text
    other = studio.project(CHOICES.format('<Choice value="cat"/><Choice value="dog"/>'), [])
    assert "incompatible with the current labeling configuration" in connect(studio, other, url, **user).text
    connected = connect(studio, project, url, **user)
    assert connected.status_code == 201, connected.text
    assert connected.json()["readable_state"] == "Connected"
    assert connected.json()["model_version"] == "crowdzoo/kinds/1"

    found = retrieve(studio, project)
    expected = load_and_predict(tmp_path / "served", np.array(NEW, object))
    assert expected["class"].tolist() == ["music", "sport", "music"]
    for task, label, row in zip(tasks_of(studio, project), expected["class"], expected["probabilities"], strict=True):
        (one,) = found[task]
        assert one["model_version"] == "crowdzoo/kinds/1"
        assert one["score"] == pytest.approx(float(row.max()), rel=1e-6)
        assert [(each["type"], each["value"]) for each in one["result"]] == [("choices", {"choices": [label]})]
    assert retrieve(studio, project) == found  # each task is asked about once

    # a new task has its prediction when an annotator gets it
    studio.owner.json("PATCH", f"/api/projects/{project}/", {"evaluate_predictions_automatically": True})
    studio.owner.json("POST", f"/api/projects/{project}/import", [{"data": {"text": "the match and the ball"}}])
    new = max(tasks_of(studio, project))
    shown = studio.owner.json("GET", f"/api/tasks/{new}/")["predictions"]
    assert [each["result"][0]["value"]["choices"] for each in shown] == [["sport"]]

    # a later version is asked again
    assert run("export", tmp_path / "model.keras", tmp_path / "served") == 0
    end = time.monotonic() + 60
    while len(found) < 4 or any(len(each) < 2 for task, each in found.items() if task != new):
        assert time.monotonic() < end
        time.sleep(1)
        found = retrieve(studio, project)
    assert {each["model_version"] for each in found[min(found)]} == {"crowdzoo/kinds/1", "crowdzoo/kinds/2"}

    # what the model says is no answer of the crowd
    calls = []
    answer = MlBackend.acknowledge
    monkeypatch.setattr(MlBackend, "acknowledge", lambda self, *call: calls.append(call[1]) or answer(self, *call))
    studio.owner.choose(min(found), "sport")
    assert "webhook" in calls
    (tmp_path / "export.json").write_text(
        studio.owner.ask(
            "GET", f"/api/projects/{project}/export", params={"exportType": "JSON", "download_all_tasks": "true"}
        ).text
    )
    crowd = Annotations.read(tmp_path / "export.json", platform="label-studio")
    assert len(crowd.labels) == 1


def test_a_tagger_marks_spans(studio, backend, tmp_path):
    pytest.importorskip("tensorflow_text")
    texts = ["Anna Bell lives in S\u00e3o Paulo.", "\U0001f469 met Anna in May", "x"]
    classes = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    encoder = TokenEncoder(["anna", "in", ".", "paulo"])
    keras.utils.set_random_seed(0)
    base = SequenceTagger(num_classes=len(classes), embedding=4, filters=4, units=3, **encoder.sizes)
    model = CrowdModel(base)
    random = np.random.default_rng(0)
    model.set_weights([random.normal(size=weight.shape) for weight in model.get_weights()])
    model.export(tmp_path / "1", classes=classes, encoder=encoder)
    expected = load_and_predict(tmp_path, np.array(texts, object), signature="spans")
    assert expected["lengths"].sum() > 2

    project = studio.project(SPANS, [{"data": {"text": text}} for text in texts])
    assert connect(studio, project, backend(tmp_path)).status_code == 201
    found = retrieve(studio, project)
    for task, text, row in zip(tasks_of(studio, project), texts, range(3), strict=True):
        (one,) = found[task]
        number = expected["lengths"][row]
        spans = [(each["value"]["labels"], each["value"]["text"]) for each in one["result"]]
        marked = zip(expected["types"][row][:number], expected["texts"][row][:number], strict=True)
        assert spans == [([label], part) for label, part in marked]
        for each in one["result"]:
            assert text[each["value"]["start"] : each["value"]["end"]] == each["value"]["text"]
        scores = [each["score"] for each in one["result"]]
        np.testing.assert_allclose(scores, expected["scores"][row][:number], rtol=1e-5)


def test_a_model_of_masks_draws_brushes_that_label_studio_reads(studio, backend, tmp_path):
    image = pytest.importorskip("PIL.Image")
    height, width = 30, 44
    pixels = np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)
    stream = io.BytesIO()
    image.fromarray(pixels).save(stream, "PNG")
    keras.utils.set_random_seed(3)
    model = CrowdModel(UNet(16, 16, 3, filters=(4,)))
    model.export(tmp_path / "1", classes=["ground", "cell", "wall"], encoder=ImagePixels(16, 16, fit="stretch"))
    label = load_and_predict(tmp_path, np.array([stream.getvalue()], object))["label"][0]
    places = np.ix_(*((np.arange(size) + 0.5) * 16 // size for size in (height, width)))
    label = label[tuple(each.astype(int) for each in places)]
    assert {*np.unique(label)} & {1, 2}

    uri = "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
    project = studio.project(BRUSH, [{"data": {"image": uri}}, {"data": {"image": "https://example.com/a.png"}}])
    assert connect(studio, project, backend(tmp_path)).status_code == 201
    ((task, ((one),)),) = retrieve(studio, project).items()  # nothing is fetched: the second task has none
    assert task == min(tasks_of(studio, project))
    for each in one["result"]:
        code = ["ground", "cell", "wall"].index(each["value"]["brushlabels"][0])
        assert (each["original_height"], each["original_width"]) == (height, width)
        # unpacked by Label Studio's own library, which has the mask four times
        program = "import json, sys; from label_studio_sdk.converter.brush import decode_rle; "
        program += "print(json.dumps(decode_rle(json.load(sys.stdin)).tolist()))"
        rle = json.dumps(each["value"]["rle"])
        python = PROGRAM.with_name("python")
        done = subprocess.run([python, "-c", program], input=rle, capture_output=True, text=True, check=True)
        drawn = np.array(json.loads(done.stdout)).reshape(height, width, 4)
        np.testing.assert_array_equal(drawn, np.repeat(255 * (label == code)[..., None], 4, axis=-1))
