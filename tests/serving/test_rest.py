"""The REST API, in the forms of TF Serving's api_rest.md."""

import numpy as np
import pytest
import tensorflow as tf
from running_server import PREDICT, rest, serving

KINDS = "/v1/models/kinds:predict"


def ask(server, request, path=PREDICT):
    answer = rest(server, path, request)
    assert answer.status_code == 200, answer.text
    return answer.json()


def assert_rows(rows, expected, classes):
    assert [sorted(row) for row in rows] == [["class", "label", "probabilities"]] * len(expected)
    np.testing.assert_allclose([row["probabilities"] for row in rows], expected, atol=1e-6)
    assert [row["label"] for row in rows] == list(expected.argmax(axis=1))
    assert [row["class"] for row in rows] == [classes[k] for k in expected.argmax(axis=1)]


def test_row_form_answers_an_object_for_each_instance(server, pets, instances):
    answer = ask(server, {"instances": instances.tolist()})
    assert list(answer) == ["predictions"]
    assert_rows(answer["predictions"], pets.models[2].predict(instances, verbose=0), pets.classes)


@pytest.mark.parametrize("named", [True, False])
def test_column_form_answers_columns(server, pets, instances, named):
    columns = {"instances": instances.tolist()} if named else instances.tolist()
    answer = ask(server, {"inputs": columns})
    expected = pets.models[2].predict(instances, verbose=0)
    assert list(answer) == ["outputs"]
    np.testing.assert_allclose(answer["outputs"]["probabilities"], expected, atol=1e-6)
    assert answer["outputs"]["label"] == expected.argmax(axis=1).tolist()


def test_the_annotators_signature_takes_names(server, instances):
    names = ["bob", "chloé"]
    rows = [{"instances": row.tolist(), "annotator": name} for row, name in zip(instances, names, strict=False)]
    by_rows = ask(server, {"signature_name": "annotators", "instances": rows})["predictions"]
    columns = {"instances": instances[:2].tolist(), "annotator": names}
    by_columns = ask(server, {"signature_name": "annotators", "inputs": columns})["outputs"]
    assert [row["probabilities"] for row in by_rows] == by_columns["probabilities"]
    truth = ask(server, {"instances": instances[:2].tolist()})["predictions"]
    assert by_columns["probabilities"] != [row["probabilities"] for row in truth]


@pytest.mark.parametrize("place", ["versions/1", "labels/stable"])
def test_a_version_is_asked_by_number_or_label(server, pets, instances, place):
    answer = ask(server, {"instances": instances.tolist()}, f"/v1/models/pets/{place}:predict")
    assert_rows(answer["predictions"], pets.models[1].predict(instances, verbose=0), pets.classes)


def test_status_lists_the_versions_newest_first(server):
    answer = rest(server, "/v1/models/pets").json()
    fine = {"error_code": "OK", "error_message": ""}
    assert answer == {
        "model_version_status": [
            {"version": "2", "state": "AVAILABLE", "status": fine},
            {"version": "1", "state": "AVAILABLE", "status": fine},
        ]
    }
    one = rest(server, "/v1/models/pets/versions/1").json()
    assert [status["version"] for status in one["model_version_status"]] == ["1"]


def test_metadata_shows_the_signatures_as_tf_serving_does(server):
    answer = rest(server, "/v1/models/pets/versions/1/metadata").json()
    assert answer["model_spec"] == {"name": "pets", "signature_name": "", "version": "1"}
    definition = answer["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert definition["method_name"] == "tensorflow/serving/predict"
    assert definition["inputs"]["instances"]["dtype"] == "DT_FLOAT"
    assert definition["inputs"]["instances"]["tensor_shape"] == {
        "dim": [{"size": "-1", "name": ""}, {"size": "4", "name": ""}], "unknown_rank": False
    }  # fmt: skip


class Kinds(tf.Module):
    """Signatures whose answers show each rule of the JSON mapping."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def half(self, x):
        return {"y": x / 2}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def echo(self, text):
        return {"text": text, "raw_bytes": text}

    @tf.function(
        input_signature=[tf.TensorSpec([None, 2], tf.int32, name="whole"), tf.TensorSpec([None], tf.bool, name="flag")]
    )
    def typed(self, whole, flag):
        return {"whole": whole, "flag": flag, "double": tf.cast(whole, tf.float64) / 3}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def total(self, x):
        return {"sum": tf.reduce_sum(x), "x": x, "log": tf.math.log(x)}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    module = Kinds()
    tf.saved_model.save(
        module, str(folder / "7"),
        signatures={"serving_default": module.half, "echo": module.echo, "typed": module.typed, "total": module.total},
    )  # fmt: skip
    with serving(folder, "kinds") as running:
        yield running


def test_text_is_text_and_outputs_named_bytes_are_base64(kinds):
    request = {"signature_name": "echo", "instances": ["grün", {"b64": "Z3LDvG4="}]}
    expected = {"text": "grün", "raw_bytes": {"b64": "Z3LDvG4="}}
    assert ask(kinds, request, KINDS) == {"predictions": [expected, expected]}


def test_whole_numbers_booleans_and_doubles_keep_their_kind(kinds):
    request = {"signature_name": "typed", "instances": [{"whole": [1, -2], "flag": True}]}
    expected = {"whole": [1, -2], "flag": True, "double": [1 / 3, -2 / 3]}
    assert ask(kinds, request, KINDS) == {"predictions": [expected]}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"whole": [1.0, 2], "flag": True}, "input 'whole': 1.0 at [0, 0] is a number, not an integer"),
        ({"whole": [2**31, 2], "flag": True}, "input 'whole': holds an integer that does not fit int32"),
        ({"whole": [10**400, 2], "flag": True}, "does not fit int32"),
        ({"whole": [1, 2], "flag": 1}, "input 'flag': 1 at [0] is a number, not true or false"),
    ],
)
def test_values_of_another_kind_are_refused_by_name(kinds, row, reason):
    answer = rest(kinds, KINDS, {"signature_name": "typed", "instances": [row]})
    assert answer.status_code == 400
    assert reason in answer.json()["error"]


def test_outputs_without_a_common_batch_need_the_column_form(kinds):
    request = {"signature_name": "total", "instances": [1.0, 2.0]}
    answer = rest(kinds, KINDS, request)
    assert answer.status_code == 400
    assert "ask in column form" in answer.json()["error"]
    columns = ask(kinds, {"signature_name": "total", "inputs": [1.0, 2.0]}, KINDS)["outputs"]
    assert columns["sum"] == 3.0


def test_an_answer_that_is_not_finite_is_written_as_tf_serving_writes_it(kinds):
    answer = rest(kinds, KINDS, {"signature_name": "total", "inputs": [0.0]})
    assert '"log": [-Infinity]' in answer.text
