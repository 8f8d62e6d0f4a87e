"""The gRPC API, with the stubs of tensorflow-serving-api."""

# ruff: noqa: E501

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.predict_pb2 import PredictRequest


def request(inputs, signature="", outputs=(), **spec):
    message = PredictRequest(model_spec={"name": "pets", "signature_name": signature, **spec}, output_filter=outputs)
    for name, value in inputs.items():
        message.inputs[name].CopyFrom(value if isinstance(value, TensorProto)
                                      else tf.make_tensor_proto(value))  # fmt: skip
    return message


def test_predict_answers_tensors_and_says_which_model_answered(stub, pets, instances):
    answer = stub.Predict(request({"instances": instances}))
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
    with pytest.raises(grpc.RpcError) as caught:
        call(b"")
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert reason in caught.value.details()


def test_output_filter_leaves_only_what_was_asked(stub, instances):
    answer = stub.Predict(request({"instances": instances}, outputs=["label"]))
    assert list(answer.outputs) == ["label"]


def lying_proto(**fields):
    proto = tf.make_tensor_proto(np.zeros((1, 4), "float32"))
    for name, value in fields.items():
        if name == "sizes":
            del proto.tensor_shape.dim[:]
            for size in value:
                proto.tensor_shape.dim.add(size=size)
        else:
            setattr(proto, name, value)
    return proto


GOOD = np.zeros((1, 4), "float32")
BROKEN = {
    "wrong dtype": ({"instances": GOOD.astype("float64")}, {}, "INVALID_ARGUMENT", "is float64, not float32"),
    "text": ({"instances": [["a"] * 4]}, {}, "INVALID_ARGUMENT", "input 'instances': is string, not float32"),
    "unknown dtype": ({"instances": lying_proto(dtype=0)}, {}, "INVALID_ARGUMENT", "input 'instances': dtype 0"),
    "fewer values than its shape": (
        {"instances": lying_proto(tensor_content=b"\0" * 8)}, {}, "INVALID_ARGUMENT", "do not fill shape [1, 4] of float32",
    ),
    "negative size": ({"instances": lying_proto(sizes=[-1, 4])}, {}, "INVALID_ARGUMENT", "must be known"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_request_gets_its_status_and_a_reason(stub, case):
    inputs, options, code, reason = BROKEN[case]
    with pytest.raises(grpc.RpcError) as caught:
        stub.Predict(request(inputs, **options))
    assert caught.value.code().name == code
    assert reason in caught.value.details()
    assert stub.Predict(request({"instances": GOOD})).outputs
