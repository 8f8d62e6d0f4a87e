"""REST and gRPC answer alike: every signature of every kind of model, and every error that both can have."""

# ruff: noqa: E501

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from running_server import PREDICT, channel_to, grpc_status, predict_request, rest, serving
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from crowdzoo.serving import Client
from crowdzoo.serving.model_store import SETTLE_SECONDS
from crowdzoo.serving.request_error import STATUS

ROOT = Path(__file__).parents[2]
GOOD = [[0.1, 0.2, 0.3, 0.4]]
PETS = {"name": "pets"}


def predict(inputs, **spec):
    return "Predict", predict_request(inputs, **spec)


def numbers(value, **spec):
    return predict({"instances": np.float32(value)}, **spec)


def columns(**inputs):
    return {"inputs": inputs}


def asked_annotators(instances, names):
    asked = {"signature_name": "annotators", **columns(instances=instances, annotator=names)}
    return asked, predict({"instances": np.float32(instances), "annotator": names}, signature_name="annotators")


EXAMPLES = {"example_list": {"examples": [{}]}}
NAN, INF = [[1.0, 2.0, float("nan"), 4.0]], [[1.0, 2.0, 3.0, float("-inf")]]
# what -> path and body of REST, call of gRPC, and the name of the status
ERRORS = {
    "unknown model": ("/v1/models/cats:predict", columns(instances=GOOD), numbers(GOOD, name="cats"), "NOT_FOUND"),
    "unknown version": ("/v1/models/pets/versions/99:predict", columns(instances=GOOD), numbers(GOOD, version={"value": 99}), "NOT_FOUND"),
    "unknown label": ("/v1/models/pets/labels/canary:predict", columns(instances=GOOD), numbers(GOOD, version_label="canary"), "NOT_FOUND"),
    "unknown signature": (PREDICT, {"signature_name": "annotator", **columns(instances=GOOD)}, numbers(GOOD, signature_name="annotator"), "INVALID_ARGUMENT"),
    "unknown input": (PREDICT, columns(instance=GOOD), predict({"instance": np.float32(GOOD)}), "INVALID_ARGUMENT"),
    "missing input": (PREDICT, {"signature_name": "annotators", **columns(instances=GOOD)}, numbers(GOOD, signature_name="annotators"), "INVALID_ARGUMENT"),
    "wrong shape": (PREDICT, columns(instances=[[1, 2, 3]]), numbers([[1, 2, 3]]), "INVALID_ARGUMENT"),
    "wrong rank": (PREDICT, columns(instances=[1, 2, 3, 4]), numbers([1, 2, 3, 4]), "INVALID_ARGUMENT"),
    "no rows": (PREDICT, columns(instances=[]), numbers([]), "INVALID_ARGUMENT"),
    "NaN": (PREDICT, columns(instances=NAN), numbers(NAN), "INVALID_ARGUMENT"),
    "infinity": (PREDICT, columns(instances=INF), numbers(INF), "INVALID_ARGUMENT"),
    "unknown annotator": (PREDICT, *asked_annotators(GOOD, ["zoe"]), "INVALID_ARGUMENT"),
    "two instances, one annotator": (PREDICT, *asked_annotators(GOOD * 2, ["ann"]), "INVALID_ARGUMENT"),
    "an answer that is not finite": (PREDICT, columns(instances=[[3e38, -3e38, 3e38, -3e38]]), numbers([[3e38, -3e38, 3e38, -3e38]]), "INVALID_ARGUMENT"),
    "Classify": ("/v1/models/pets:classify", {"examples": [{}]}, ("Classify", ClassificationRequest(model_spec=PETS, input=EXAMPLES)), "UNIMPLEMENTED"),
    "Regress": ("/v1/models/pets:regress", {"examples": [{}]}, ("Regress", RegressionRequest(model_spec=PETS, input=EXAMPLES)), "UNIMPLEMENTED"),
    "metadata of an unknown version": ("/v1/models/pets/versions/99/metadata", None, ("GetModelMetadata", GetModelMetadataRequest(model_spec={**PETS, "version": {"value": 99}}, metadata_field=["signature_def"])), "NOT_FOUND"),
    "status of an unknown model": ("/v1/models/cats", None, ("GetModelStatus", GetModelStatusRequest(model_spec={"name": "cats"})), "NOT_FOUND"),
}  # fmt: skip
# Same status; the words are those of what each protocol sends
OTHER_WORDS = {
    "no text for a number": (PREDICT, columns(instances=[["a", "b", "c", "d"]]), predict({"instances": [["a", "b", "c", "d"]]}), "INVALID_ARGUMENT"),
    "what is no request": (PREDICT, b"\xff", ("Predict", b"\xff"), "INVALID_ARGUMENT"),
    "too large": (PREDICT, columns(instances=GOOD * 20_000), numbers(GOOD * 20_000), "TOO_LARGE"),
}  # fmt: skip


def by_rest(server, path, body):
    answer = rest(server, path, body)
    return answer.status_code, answer.json()["error"]


def by_grpc(server, method, request):
    with channel_to(server) as channel:
        stubs = (
            prediction_service_pb2_grpc.PredictionServiceStub(channel),
            model_service_pb2_grpc.ModelServiceStub(channel),
        )
        call = next(getattr(stub, method) for stub in stubs if hasattr(stub, method))
        if isinstance(request, bytes):
            call = channel.unary_unary(f"/tensorflow.serving.PredictionService/{method}")
        return grpc_status(lambda: call(request, timeout=60))


@pytest.mark.parametrize("what", ERRORS)
def test_both_protocols_refuse_a_request_with_the_same_words(server, what):
    path, body, call, status = ERRORS[what]
    code, reason = by_rest(server, path, body)
    name, details = by_grpc(server, *call)
    assert (code, name) == STATUS[status]
    assert details == reason


@pytest.mark.parametrize("what", OTHER_WORDS)
def test_both_protocols_refuse_a_request_with_the_same_status(server, what):
    path, body, call, status = OTHER_WORDS[what]
    assert (by_rest(server, path, body)[0], by_grpc(server, *call)[0]) == STATUS[status]


# === Answers ===


def kinds():
    sys.path.insert(0, str(ROOT / "tests" / "engines"))
    from exported_kinds import KINDS, export_kind

    return KINDS, export_kind


def differences(kind, folder):
    """Signature -> largest difference of a number between the two protocols; texts and whole numbers have to be equal."""
    requests = kinds()[1](kind, folder / "1")
    time.sleep(SETTLE_SECONDS)
    found = {}
    with (
        serving(folder, "model") as server,
        Client(server.url, timeout=120) as by_url,
        Client(server.grpc_url, timeout=120) as other,
    ):
        assert sorted(by_url.metadata()["signatures"]) == sorted(requests)
        assert by_url.metadata() == other.metadata()
        for signature, inputs in requests.items():
            answers = [client.predict(inputs, signature=signature) for client in (by_url, other)]
            assert sorted(answers[0]) == sorted(answers[1])
            found[signature] = 0.0
            for name, array in answers[0].items():
                second = answers[1][name]
                assert array.shape == second.shape
                if second.dtype.kind == "f":
                    apart = np.abs(array - second) / np.maximum(1, np.abs(second))
                    found[signature] = max(found[signature], float(apart.max(initial=0.0)))
                else:
                    np.testing.assert_array_equal(array, second)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(kinds()[0]))
def test_both_protocols_answer_every_signature_alike(kind, tmp_path):
    pytest.importorskip("PIL")
    pytest.importorskip("tensorflow_text")
    found = differences(kind, tmp_path)
    assert max(found.values()) < 1e-6
