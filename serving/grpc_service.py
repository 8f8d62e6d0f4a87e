"""TF Serving's gRPC API: PredictionService and ModelService."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import tensorflow as tf
from google.protobuf.struct_pb2 import ListValue
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest, GetModelMetadataResponse
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from crowdzoo.errors import short_repr
from crowdzoo.serving.gate import Gate, full
from crowdzoo.serving.loaded_model import DEFAULT_SIGNATURE, LoadedModel
from crowdzoo.serving.metrics import Metrics, RequestRecord
from crowdzoo.serving.model_store import Stores, store_of
from crowdzoo.serving.proto_tensors import arrays_from_protos, parsed
from crowdzoo.serving.request_error import NO_EXAMPLES, NO_RELOAD, RequestError
from crowdzoo.serving.request_log import RequestLog

log = logging.getLogger("crowdzoo.serving")

# Answers a message and fills the record. With a turn it also gets the function of `Gate.turn`
_Work = Callable[..., Any]
# This many messages may arrive slowly; with more, those that take longer than this are aborted
_RECEIVED = 16
SLOW_SECONDS = 1.0


class GrpcService(grpc.GenericRpcHandler):
    """Both services. Messages arrive as bytes; those that are not protobuf are rejected.

    A call takes a place once its message is received. If all places are taken, further calls are rejected immediately.

    Args:
        stores: name -> the model's versions.
        gate: the queue of both protocols.
        metrics: counts requests.
        request_log: logs instances, or None.
    """

    def __init__(self, stores: Stores, gate: Gate, metrics: Metrics, request_log: RequestLog | None):
        self._stores, self._gate, self._metrics, self._request_log = stores, gate, metrics, request_log
        self._limits = limits = gate.limits
        self._slow: dict[grpc.ServicerContext, float] = {}  # calls whose message is arriving -> start time
        self._most = limits.threads + limits.queue
        self.executor = ThreadPoolExecutor(self._most + limits.connections, thread_name_prefix="crowdzoo-grpc")
        self._stopping = threading.Event()
        threading.Thread(target=self._cancel_slow, name="crowdzoo-grpc-watch", daemon=True).start()
        prediction, model = "/tensorflow.serving.PredictionService/", "/tensorflow.serving.ModelService/"
        self._methods = {
            prediction + "Predict": self._handler("predict", self._predict),
            prediction + "Classify": self._handler("classify", None, NO_EXAMPLES),
            prediction + "Regress": self._handler("regress", None, NO_EXAMPLES),
            prediction + "MultiInference": self._handler("multi_inference", None, NO_EXAMPLES),
            prediction + "GetModelMetadata": self._handler("metadata", self._metadata),
            model + "GetModelStatus": self._handler("status", self._status),
            model + "HandleReloadConfigRequest": self._handler("reload", None, NO_RELOAD),
        }

    @property
    def options(self) -> list[tuple[str, Any]]:
        """Options of a `grpc.Server` for limits that its core enforces."""
        limits = self._limits
        return [
            ("grpc.so_reuseport", 0),  # a port in use must be an error
            ("grpc.max_receive_message_length", limits.request_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", self._most),
            ("grpc.max_allowed_incoming_connections", limits.connections),
            ("grpc.max_connection_idle_ms", int(1000 * limits.idle_seconds)),
            ("grpc.server_handshake_timeout_ms", int(1000 * limits.header_seconds)),
        ]

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """The handler of a call."""
        return self._methods.get(handler_call_details.method)

    def stop(self) -> None:
        """Stops idle threads."""
        self._stopping.set()
        self.executor.shutdown(wait=False, cancel_futures=True)

    def _handler(self, api: str, work: _Work | None, refusal: str = "") -> grpc.RpcMethodHandler:
        """The handler of a method; without `work`, calls are rejected before their message is read."""

        def answer(messages: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            record = RequestRecord("GRPC", api)
            try:
                if work is None:
                    raise RequestError(refusal, "UNIMPLEMENTED")
                if self._gate.is_full:
                    raise full()
                message = self._receive(messages, context)
                with self._gate.place(len(message)):
                    if api != "predict":
                        if len(message) > 1 << 16:
                            raise RequestError(f"a request for {api} has at most 65,536 bytes", "TOO_LARGE")
                        return work(message, record)
                    gone = lambda: not context.is_active()  # noqa: E731
                    with self._gate.turn(len(message), gone, context.time_remaining()) as wait:
                        return work(message, record, wait)
            except RequestError as error:
                record.status, reason = error.grpc_status, error.reason
            except (ConnectionError, grpc.RpcError):
                record.status, reason = "CANCELLED", "the client is gone"
            except Exception:
                log.exception("crowdzoo serve: a gRPC request failed")
                record.status, reason = "INTERNAL", "internal error, see the log of the server"
            finally:
                self._metrics.finished(record)
            context.abort(getattr(grpc.StatusCode, record.status), reason)

        # a unary call is a stream of one message, which is received when requested
        return grpc.stream_unary_rpc_method_handler(
            answer, response_serializer=lambda response: response.SerializeToString()
        )

    def _receive(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        self._slow[context] = time.monotonic()
        try:
            return next(messages)
        except StopIteration:
            raise RequestError("the call has no message") from None
        except Exception as error:  # gRPC raises a bare Exception if the client is gone
            raise ConnectionResetError from error
        finally:
            del self._slow[context]

    def _cancel_slow(self) -> None:
        while not self._stopping.wait(1.0):
            now, slow = time.monotonic(), list(self._slow.items())
            for place, (context, since) in enumerate(slow):
                seconds = self._limits.body_seconds if len(slow) - place <= _RECEIVED else SLOW_SECONDS
                if now - since > seconds:
                    context.cancel()

    def _asked(self, spec: ModelSpec, record: RequestRecord, response: Any) -> LoadedModel:
        """Returns the requested model, and writes it into the response."""
        store = store_of(self._stores, spec.name)
        record.model = store.name
        model = store.get(**_version(spec))
        response.model_spec.name = store.name
        response.model_spec.version.value = model.version
        return model

    def _predict(self, message: bytes, record: RequestRecord, wait: Callable[[int], None]) -> PredictResponse:
        request, response = parsed(PredictRequest, message), PredictResponse()
        model = self._asked(request.model_spec, record, response)
        signature = model.signature(request.model_spec.signature_name)
        signature.check_names(request.inputs)
        names = signature.chosen_outputs(request.output_filter)
        inputs = arrays_from_protos(request.inputs, self._limits, wait)
        for name, array in inputs.items():
            dtype_name = "string" if array.dtype == object else array.dtype.name
            if dtype_name != signature.inputs[name].dtype:
                raise RequestError(f"input {name!r}: is {dtype_name}, not {signature.inputs[name].dtype}")
        outputs = signature(inputs, self._limits)
        response.model_spec.signature_name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        for name in names:
            response.outputs[name].CopyFrom(tf.make_tensor_proto(outputs[name]))
        if self._request_log is not None:
            self._request_log.add(record.model, model, inputs)
        return response

    def _metadata(self, message: bytes, record: RequestRecord) -> GetModelMetadataResponse:
        request, response = parsed(GetModelMetadataRequest, message), GetModelMetadataResponse()
        wanted = list(request.metadata_field)
        if wanted != ["signature_def"]:
            raise RequestError(f"metadata_field must be ['signature_def'], got {short_repr(wanted)}")
        model = self._asked(request.model_spec, record, response)
        response.metadata["signature_def"].Pack(model.signature_defs)
        if model.features is not None:  # TF Serving's answer lacks this key
            columns = ListValue()
            columns.extend(model.features)
            response.metadata["features"].Pack(columns)
        return response

    def _status(self, message: bytes, record: RequestRecord) -> GetModelStatusResponse:
        request = parsed(GetModelStatusRequest, message)
        store = store_of(self._stores, request.model_spec.name)
        record.model = store.name
        statuses = store.statuses(**_version(request.model_spec))
        return GetModelStatusResponse(model_version_status=[status.described() for status in statuses])


def _version(spec: ModelSpec) -> dict[str, Any]:
    """The requested `version` or `label`."""
    choice = spec.WhichOneof("version_choice")
    if choice == "version":
        return {"version": spec.version.value}
    return {"label": spec.version_label} if choice == "version_label" else {}
