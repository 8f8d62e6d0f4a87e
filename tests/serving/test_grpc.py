"""The gRPC API, with the stubs of tensorflow-serving-api."""

import numpy as np
import pytest
import tensorflow as tf
from running_server import grpc_status, predict_request, proto_of


def test_predict_answers_tensors_and_says_which_model_answered(stub, pets, instances):
    answer = stub.Predict(predict_request({"instances": instances}))
    expected = pets.models[2].predict(instances, verbose=0)
    np.testing.assert_allclose(tf.make_ndarray(answer.outputs["probabilities"]), expected, atol=1e-6)
    np.testing.assert_array_equal(tf.make_ndarray(answer.outputs["label"]), expected.argmax(axis=1))
    spec = answer.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("pets", 2, "serving_default")


@pytest.mark.parametrize(
    ("service", "method", "reason"),
    [
        ("ModelService", "HandleReloadConfigRequest", "takes no models by request; change the file given to --config"),
        ("PredictionService", "MultiInference", "does not answer Classify, Regress and MultiInference"),
    ],
)
def test_what_the_server_does_not_answer_is_said(channel, service, method, reason):
    call = channel.unary_unary(f"/tensorflow.serving.{service}/{method}")
    status, details = grpc_status(lambda: call(b""))
    assert status == "UNIMPLEMENTED"
    assert reason in details


def test_output_filter_leaves_only_what_was_asked(stub, instances):
    request = predict_request({"instances": instances})
    request.output_filter.append("label")
    assert list(stub.Predict(request).outputs) == ["label"]


GOOD = np.zeros((1, 4), "float32")
BROKEN = {
    "wrong dtype": (GOOD.astype("float64"), "is float64, not float32"),
    "text": ([["a"] * 4], "input 'instances': is string, not float32"),
    "unknown dtype": (proto_of(0, 1, 4, tensor_content=GOOD.tobytes()), "input 'instances': dtype 0"),
    "fewer values than its shape": (proto_of(1, 1, 4, tensor_content=bytes(8)), "do not fill shape [1, 4] of float32"),
    "negative size": (proto_of(1, -1, 4, tensor_content=GOOD.tobytes()), "must be known"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_request_gets_its_status_and_a_reason(stub, case):
    value, reason = BROKEN[case]
    status, details = grpc_status(lambda: stub.Predict(predict_request({"instances": value})))
    assert status == "INVALID_ARGUMENT"
    assert reason in details
    assert stub.Predict(predict_request({"instances": GOOD})).outputs
