"""Classify and Regress, for a model whose signatures take tf.Examples."""

# ruff: noqa: E501

import json
import shutil

import grpc
import httpx
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from crowdzoo.serving import Server
from crowdzoo.serving.loaded_model import LoadedModel

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
EXAMPLES = [tf.TensorSpec([None], tf.string, name="inputs")]
NAMES = ["low", "h\xf6he"]


class Scorer(tf.Module):
    """Features x (two floats), n (an integer, 0 unless given) and word (a text)."""

    def parsed(self, inputs):
        return tf.io.parse_example(
            inputs,
            {
                "x": tf.io.FixedLenFeature([2], tf.float32),
                "n": tf.io.FixedLenFeature([], tf.int64, 0),
                "word": tf.io.FixedLenFeature([], tf.string, ""),
            },
        )

    @tf.function(input_signature=EXAMPLES)
    def both(self, inputs):
        x = self.parsed(inputs)["x"]
        return {"classes": tf.tile([NAMES], [tf.shape(x)[0], 1]), "scores": x}

    @tf.function(input_signature=EXAMPLES)
    def scores(self, inputs):
        return {"scores": self.parsed(inputs)["x"]}

    @tf.function(input_signature=EXAMPLES)
    def words(self, inputs):
        return {"classes": self.parsed(inputs)["word"][:, tf.newaxis]}

    @tf.function(input_signature=EXAMPLES)
    def total(self, inputs):
        parsed = self.parsed(inputs)
        return {"outputs": tf.reduce_sum(parsed["x"], axis=1) + tf.cast(parsed["n"], tf.float32)}

    @tf.function(input_signature=EXAMPLES)
    def column(self, inputs):
        return {"outputs": self.parsed(inputs)["x"][:, :1]}

    @tf.function(input_signature=EXAMPLES)
    def wide(self, inputs):
        return {"outputs": self.parsed(inputs)["x"]}

    @tf.function(input_signature=EXAMPLES)
    def other(self, inputs):
        return {"probabilities": self.parsed(inputs)["x"]}


METHODS = {
    "serving_default": CLASSIFY, "scores": CLASSIFY, "words": CLASSIFY, "total": REGRESS, "column": REGRESS,
    "wide": REGRESS, "other": CLASSIFY,
}  # fmt: skip


def example(**features):
    kinds = {float: "float_list", int: "int64_list", bytes: "bytes_list"}
    made = tf.train.Example()
    for name, values in features.items():
        getattr(made.features.feature[name], kinds[type(values[0])]).value.extend(values)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("scorer")
    module = Scorer()
    functions = {"serving_default": module.both} | {
        name: getattr(module, name) for name in METHODS if name != "serving_default"
    }
    tf.saved_model.save(module, str(path / "1"), signatures=functions)
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(str(path / "1"))
    for name, method in METHODS.items():
        updater.replace_method_name(name, method)
    updater.save()
    return path


@pytest.fixture(scope="module")
def scorer(folder):
    with Server(folder, name="scorer", rest_port=0, grpc_port=0) as running:
        options = [("grpc.enable_http_proxy", 0)]
        with grpc.insecure_channel(f"127.0.0.1:{running.grpc_port}", options=options) as channel:
            running.url = f"http://127.0.0.1:{running.rest_port}/v1/models/scorer"
            running.stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            yield running


def post(server, verb, body):
    content = body if isinstance(body, bytes) else json.dumps(body)
    return httpx.post(f"{server.url}:{verb}", content=content, trust_env=False)


def results(server, verb, body):
    answer = post(server, verb, body)
    assert answer.status_code == 200, answer.text
    assert list(answer.json()) == ["results"]
    return answer.json()["results"]


ROWS = [{"x": [0.25, 0.75]}, {"x": [1.5, -2.0], "n": 3}]


def test_classify_answers_pairs_of_class_and_score(scorer):
    assert results(scorer, "classify", {"examples": ROWS}) == [
        [["low", 0.25], ["h\xf6he", 0.75]],
        [["low", 1.5], ["h\xf6he", -2.0]],
    ]


def test_what_a_signature_lacks_is_empty_or_zero(scorer):
    """As `MakeJsonFromClassificationResult` of TF Serving's json_tensor.cc: the defaults of the message."""
    assert results(scorer, "classify", {"signature_name": "scores", "examples": ROWS[:1]}) == [[["", 0.25], ["", 0.75]]]
    rows = [{"x": [0.5, 0.5], "word": "gr\xfcn"}, {"x": [0.5, 0.5], "word": {"b64": "YQ=="}}]
    assert results(scorer, "classify", {"signature_name": "words", "examples": rows}) == [
        [["gr\xfcn", 0.0]],
        [["a", 0.0]],
    ]


@pytest.mark.parametrize(("signature", "expected"), [("total", [1.0, 2.5]), ("column", [0.25, 1.5])])
def test_regress_answers_a_number_for_each_example(scorer, signature, expected):
    assert results(scorer, "regress", {"signature_name": signature, "examples": ROWS}) == expected


def test_features_of_the_context_are_those_of_every_example_unless_it_has_its_own(scorer):
    body = {"signature_name": "total", "context": {"n": [10]}, "examples": ROWS}
    assert results(scorer, "regress", body) == [11.0, 2.5]


def test_a_long_context_before_many_examples_is_refused_before_they_are_made(scorer):
    """130 KB of JSON, or 80 KB of protobuf, that would be 750 MB of examples."""
    long, empty = "a" * 30_000, 25_000
    answer = post(scorer, "classify", {"context": {"word": long}, "examples": [{}] * empty})
    assert answer.status_code == 413
    assert "takes more than the 67,108,864 bytes that the values of one request may take here" in answer.json()["error"]
    listed = {"examples": [tf.train.Example()] * empty, "context": example(word=[long.encode()])}
    with pytest.raises(grpc.RpcError) as caught:
        classification(scorer, model_spec={"name": "scorer"}, input={"example_list_with_context": listed})
    assert caught.value.code().name == "RESOURCE_EXHAUSTED"


def classification(server, **fields):
    return server.stub.Classify(ClassificationRequest(**fields))


def pairs(result):
    return [[(one.label, one.score) for one in row.classes] for row in result.classifications]


BOTH = [example(x=[0.25, 0.75]), example(x=[1.5, -2.0], n=[3])]
EXPECTED = [[("low", 0.25), ("h\xf6he", 0.75)], [("low", 1.5), ("h\xf6he", -2.0)]]


def test_classify_over_grpc_answers_the_same(scorer):
    answer = classification(scorer, model_spec={"name": "scorer"}, input={"example_list": {"examples": BOTH}})
    assert pairs(answer.result) == EXPECTED
    assert (answer.model_spec.version.value, answer.model_spec.signature_name) == (1, "serving_default")


def test_regress_over_grpc_takes_a_context(scorer):
    spec = {"name": "scorer", "signature_name": "total", "version": {"value": 1}}
    listed = {"example_list_with_context": {"examples": BOTH, "context": example(n=[10])}}
    answer = scorer.stub.Regress(RegressionRequest(model_spec=spec, input=listed))
    assert [one.value for one in answer.result.regressions] == [11.0, 2.5]
    assert answer.model_spec.signature_name == "total"


def examples(*listed, **more):
    return {"examples": list(listed), **more}


GOOD = ROWS[0]
BROKEN = {
    "empty body": ("classify", b"", "the body is empty"),
    "no object": ("classify", [1], "the body must be a JSON object"),
    "no examples": ("classify", {"instances": [GOOD]}, "'examples' must be a list of objects, and the body has none"),
    "examples that are no list": ("regress", {"examples": GOOD}, "'examples' must be a list of objects, not an object"),
    "empty examples": ("regress", examples(), "there are no examples; at least one is needed"),
    "an example that is a list": ("classify", examples(GOOD, [1]), "examples[1]: must be an object of features, not a list"),
    "a context that is a number": ("classify", examples(GOOD, context=3), "context: must be an object of features"),
    "null": ("classify", examples({"x": None}), "examples[0]: feature 'x': a value is null, not a number or a string"),
    "nested lists": ("classify", examples({"x": [[0.5]]}), "feature 'x': a value is a list, not a number or a string"),
    "another object": ("classify", examples({"x": {"y": 1}}), "feature 'x': a value is an object, not a number"),
    "integer beside decimal": ("classify", examples({"x": [1, 0.5]}), "holds values of different types; write 1.0"),
    "text beside number": ("classify", examples({"x": [0.5, "a"]}), "holds values of different types"),
    "not finite": ("classify", b'{"examples": [{"x": [NaN, 1.0]}]}', "feature 'x': nan is not finite, or too large for float32"),
    "too large for float32": ("classify", examples({"x": [1e39, 1.0]}), "feature 'x': 1e+39 is not finite, or too large"),
    "too large for int64": ("classify", examples({"n": 2**63}), "holds an integer that does not fit int64"),
    "no base64": ("classify", examples({"word": {"b64": "?"}}), "'b64' is not base64"),
    "half a character": ("classify", b'{"examples": [{"word": "\\ud800"}]}', "the text is not valid Unicode"),
    "half a character in a name": ("classify", b'{"examples": [{"\\ud800": 1}]}', "the text is not valid Unicode"),
    "a feature that the model needs": ("classify", examples({"y": 1.0}), "Feature: x (data type: float) is required"),
    "a feature of another type": ("classify", examples({"x": ["a", "b"]}), "Data types don't match"),
    "unknown signature": ("classify", examples(GOOD, signature_name="no"), "signature 'no' is not in the model"),
    "another method": (
        "regress", examples(GOOD), f"Expected regression signature method_name to be {REGRESS}. Was: {CLASSIFY}",
    ),
    "outputs of another name": (
        "classify", examples(GOOD, signature_name="other"), "has outputs classes and scores, not probabilities",
    ),
    "outputs of another shape": (
        "regress", examples(GOOD, signature_name="wide"), "output 'outputs' of 'wide' is float32 [1, 2]: no regression",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_request_gets_a_reason(scorer, case):
    verb, body, reason = BROKEN[case]
    answer = post(scorer, verb, body)
    assert answer.status_code == 400
    assert reason in answer.json()["error"]


def test_warm_up_requests_of_these_methods_are_answered(folder, tmp_path):
    shutil.copytree(folder / "1", tmp_path / "1")
    file = tmp_path / "1" / "assets.extra" / "tf_serving_warmup_requests"
    file.parent.mkdir()
    listed = {"example_list": {"examples": BOTH}}
    logs = [
        PredictionLog(classify_log={"request": {"model_spec": {"name": "scorer"}, "input": listed}}),
        PredictionLog(regress_log={"request": {"model_spec": {"signature_name": "total"}, "input": listed}}),
    ]
    with tf.io.TFRecordWriter(str(file)) as writer:
        for log in logs:
            writer.write(log.SerializeToString())
    assert LoadedModel(tmp_path / "1", 1).num_warmup_requests == 2
