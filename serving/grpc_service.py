"""TF Serving's gRPC API: PredictionService and ModelService."""

import logging
from collections.abc import Callable
from typing import Any

import grpc
import tensorflow as tf
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataResponse
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusResponse, ModelVersionStatus
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictResponse

from crowdzoo.serving.loaded_model import DEFAULT_SIGNATURE, LoadedModel
from crowdzoo.serving.model_store import ModelStore
from crowdzoo.serving.proto_tensors import arrays_from_protos
from crowdzoo.serving.request_error import RequestError

__all__ = ["add_services"]

log = logging.getLogger("crowdzoo.serving")


def add_services(server: grpc.Server, store: ModelStore, *, max_request_bytes: int) -> None:
    """Registers both services.

    Args:
        server: a gRPC server that is not started yet.
        store: the model.
        max_request_bytes: most memory one input tensor may take.
    """
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        _PredictionService(store, max_request_bytes), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(_ModelService(store), server)


def _answer(context: grpc.ServicerContext, work: Callable[[], Any]) -> Any:
    """What `work` returns; a refused request ends the call with its status."""
    try:
        return work()
    except RequestError as error:
        context.abort(getattr(grpc.StatusCode, error.code), error.reason)
    except Exception:
        log.exception("crowdzoo serve: a gRPC request failed")
        context.abort(grpc.StatusCode.INTERNAL, "internal error, see the log of the server")


def _version(store: ModelStore, spec: ModelSpec) -> dict[str, Any]:
    """`version` or `label` that the request asks for."""
    if spec.name != store.name:
        raise RequestError(f"model {spec.name!r} is not served here; the model's name is {store.name!r}", "NOT_FOUND")
    choice = spec.WhichOneof("version_choice")
    if choice == "version":
        return {"version": spec.version.value}
    return {"label": spec.version_label} if choice == "version_label" else {}


class _PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, store: ModelStore, max_request_bytes: int):
        self._store = store
        self._max_request_bytes = max_request_bytes

    def Predict(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return _answer(context, lambda: self._predict(request))

    def _predict(self, request: Any) -> PredictResponse:
        model = self._store.get(**_version(self._store, request.model_spec))
        signature = model.signature(request.model_spec.signature_name)
        signature.check_names(request.inputs)
        inputs = arrays_from_protos(request.inputs, signature.inputs, max_bytes=self._max_request_bytes)
        outputs = signature(inputs)
        wanted = list(request.output_filter) or list(outputs)
        for name in wanted:
            if name not in outputs:
                raise RequestError(f"output_filter: {name!r} is not an output; there are {', '.join(outputs)}")
        response = PredictResponse()
        _fill_spec(response.model_spec, self._store, model)
        response.model_spec.signature_name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        for name in wanted:
            response.outputs[name].CopyFrom(tf.make_tensor_proto(outputs[name]))
        return response

    def GetModelMetadata(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return _answer(context, lambda: self._metadata(request))

    def _metadata(self, request: Any) -> GetModelMetadataResponse:
        if list(request.metadata_field) != ["signature_def"]:
            raise RequestError(f"metadata_field must be ['signature_def'], got {list(request.metadata_field)}")
        model = self._store.get(**_version(self._store, request.model_spec))
        response = GetModelMetadataResponse()
        _fill_spec(response.model_spec, self._store, model)
        response.metadata["signature_def"].Pack(model.signature_defs)
        return response

    def Classify(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        _refuse(context, "Classify")

    def Regress(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        _refuse(context, "Regress")

    def MultiInference(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        _refuse(context, "MultiInference")


class _ModelService(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, store: ModelStore):
        self._store = store

    def GetModelStatus(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return _answer(context, lambda: self._status(request))

    def _status(self, request: Any) -> GetModelStatusResponse:
        response = GetModelStatusResponse()
        for status in self._store.statuses(**_version(self._store, request.model_spec)):
            described = response.model_version_status.add()
            described.version = status.version
            described.state = ModelVersionStatus.State.Value(status.state)
            if status.error:
                described.status.error_code = 2  # UNKNOWN
                described.status.error_message = status.error
        return response

    def HandleReloadConfigRequest(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        _refuse(context, "HandleReloadConfigRequest")


def _fill_spec(spec: ModelSpec, store: ModelStore, model: LoadedModel) -> None:
    spec.name = store.name
    spec.version.value = model.version


def _refuse(context: grpc.ServicerContext, name: str) -> None:
    context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{name} is not answered by this server; use Predict")
