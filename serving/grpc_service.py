"""TF Serving's gRPC API: PredictionService and ModelService."""

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.struct_pb2 import ListValue
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest, GetModelMetadataResponse
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest, ReloadConfigResponse

from crowdzoo.errors import ConfigError, short_repr
from crowdzoo.serving.gate import full
from crowdzoo.serving.memory_budget import Share
from crowdzoo.serving.model_settings import model_settings
from crowdzoo.serving.predictor import Predictor, asked_version, fill_spec, is_long
from crowdzoo.serving.proto_tensors import parsed
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.request_monitor import RequestMonitor
from crowdzoo.serving.request_record import RequestRecord

__all__ = ["GrpcService"]

log = logging.getLogger("crowdzoo.serving")

# The answer to a message; fills the record
_Work = Callable[[bytes, grpc.ServicerContext, RequestRecord], Any]
# So many messages may take their time to come; where there are more, those that take longer than this are given up
_RECEIVED = 16
SLOW_SECONDS = 1.0


class GrpcService(grpc.GenericRpcHandler):
    """Both services. Messages come as bytes: what is no protobuf is refused, and a long one is read elsewhere.

    A call takes a place when its message is whole. Where all places are taken, the others are refused as soon as they
    come.

    Args:
        predictor: answers what needs the model.
        monitor: is told of each request.
        allow_reload: whether clients may set which models are served, by HandleReloadConfigRequest.
    """

    def __init__(self, predictor: Predictor, monitor: RequestMonitor, *, allow_reload: bool = False):
        self._predictor = predictor
        self._monitor = monitor
        self._allow_reload = allow_reload
        self._stores = predictor.stores
        self._limits = predictor.limits
        self.gate = predictor.gate()
        self._slow: dict[grpc.ServicerContext, float] = {}  # calls whose message is on its way: since when
        self._lock = threading.Lock()
        self._under_way = 0
        self._most = self._limits.threads + self._limits.queue
        self._calls = 0  # also of those whose message is on its way
        self._most_calls = self._most + self._limits.connections
        self.executor = ThreadPoolExecutor(self._most_calls, thread_name_prefix="crowdzoo-grpc")
        self._refusing = ThreadPoolExecutor(1, thread_name_prefix="crowdzoo-grpc-full")
        self._stopping = threading.Event()
        self._watch = threading.Thread(target=self._cancel_slow, name="crowdzoo-grpc-watch", daemon=True)
        self._watch.start()
        self._methods = {
            "PredictionService/Predict": self._handler("predict", self._computed(predictor.answer_proto)),
            "PredictionService/Classify": self._handler(
                "classify", self._computed(functools.partial(predictor.results_proto, "classify"))
            ),
            "PredictionService/Regress": self._handler(
                "regress", self._computed(functools.partial(predictor.results_proto, "regress"))
            ),
            "PredictionService/MultiInference": self._handler(
                "multi_inference", self._computed(predictor.multi_inference)
            ),
            "PredictionService/GetModelMetadata": self._handler("metadata", self._metadata),
            "ModelService/GetModelStatus": self._handler("status", self._status),
            "ModelService/HandleReloadConfigRequest": self._handler("reload", self._reload),
        }

        def refuse(messages: Iterator[bytes], context: grpc.ServicerContext) -> None:
            context.abort(grpc.StatusCode.UNAVAILABLE, full().reason)

        refuse.experimental_thread_pool = self._refusing  # type: ignore[attr-defined]
        self._full = grpc.stream_unary_rpc_method_handler(refuse)

    @property
    def options(self) -> list[tuple[str, Any]]:
        """Options of a `grpc.Server` for the limits that its core keeps."""
        limits = self._limits
        return [
            ("grpc.max_receive_message_length", limits.request_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", self._most),
            ("grpc.max_allowed_incoming_connections", limits.connections),
            ("grpc.max_connection_idle_ms", int(1000 * limits.idle_seconds)),
            ("grpc.server_handshake_timeout_ms", int(1000 * limits.header_seconds)),
            # a peer that is gone without a word is found out
            ("grpc.keepalive_time_ms", int(1000 * limits.idle_seconds)),
            ("grpc.keepalive_timeout_ms", int(1000 * limits.header_seconds)),
        ]

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """The handler of a call; where all threads are busy, one that refuses at once."""
        handler = self._methods.get(handler_call_details.method.removeprefix("/tensorflow.serving."))
        if handler is None:
            return None
        with self._lock:  # counted here: a thread may start much later, and many calls may come before it does
            if self._under_way >= self._most or self._calls >= self._most_calls:
                return self._full
            self._calls += 1
        return handler

    def close(self) -> None:
        """Stops the threads that are idle."""
        self._stopping.set()
        for executor in (self.executor, self._refusing):
            executor.shutdown(wait=False, cancel_futures=True)

    def _handler(self, api: str, work: _Work) -> grpc.RpcMethodHandler:
        def answer(messages: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            record = RequestRecord("GRPC", api)
            placed = False
            try:
                message = self._receive(messages, context)
                with self._lock:
                    placed = self._under_way < self._most
                    self._under_way += placed
                if not placed:
                    raise full()
                record.request_bytes = len(message)
                response = work(message, context, record)
                record.answer_bytes = response.ByteSize()
                return response
            except RequestError as error:
                record.status, reason = error.grpc_status, error.reason
            except (_GoneError, grpc.RpcError):
                record.status, reason = "CANCELLED", "the client is gone"
            except Exception:
                log.exception("crowdzoo serve: a gRPC request failed")
                record.status, reason = "INTERNAL", "internal error, see the log of the server"
            finally:
                self._monitor.finished(record)
                with self._lock:
                    self._under_way -= placed
                    self._calls -= 1
            context.abort(getattr(grpc.StatusCode, record.status), reason)

        # a unary call is a stream of one message, which is received when it is asked for
        return grpc.stream_unary_rpc_method_handler(
            answer, response_serializer=lambda response: response.SerializeToString()
        )

    def _receive(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        self._slow[context] = time.monotonic()
        try:
            return next(messages)
        except StopIteration:
            raise RequestError("the call has no message") from None
        except Exception as error:  # gRPC raises a bare Exception where the client is gone
            raise _GoneError from error
        finally:
            del self._slow[context]

    def _cancel_slow(self) -> None:
        while not self._stopping.wait(1.0):
            now, slow = time.monotonic(), list(self._slow.items())
            for place, (context, since) in enumerate(slow):
                seconds = self._limits.body_seconds if len(slow) - place <= _RECEIVED else SLOW_SECONDS
                if now - since > seconds:
                    context.cancel()

    def _computed(self, answer: Callable[[bytes, Share, RequestRecord], Any]) -> _Work:
        """What needs the model: with memory of its own, in its turn."""

        def work(message: bytes, context: grpc.ServicerContext, record: RequestRecord) -> Any:
            with self._predictor.budget.share() as share:
                share.hold("body", len(message))
                long = is_long(len(message), json=False)
                is_gone = lambda: not context.is_active()  # noqa: E731
                with self.gate.turn(long=long, is_gone=is_gone, seconds=context.time_remaining()):
                    return answer(message, share, record)

        return work

    def _metadata(
        self, message: bytes, context: grpc.ServicerContext, record: RequestRecord
    ) -> GetModelMetadataResponse:
        request = _short(GetModelMetadataRequest, message)
        wanted = list(request.metadata_field)
        if wanted != ["signature_def"]:
            raise RequestError(f"metadata_field must be ['signature_def'], got {short_repr(wanted)}")
        store = self._stores.get(request.model_spec.name)
        record.model = store.name
        model = store.get(**asked_version(request.model_spec))
        response = GetModelMetadataResponse()
        fill_spec(response.model_spec, store, model)
        response.metadata["signature_def"].Pack(model.signature_defs)
        if model.features is not None:  # TF Serving's answer has no such key
            columns = ListValue()
            columns.extend(model.features)
            response.metadata["features"].Pack(columns)
        return response

    def _status(self, message: bytes, context: grpc.ServicerContext, record: RequestRecord) -> GetModelStatusResponse:
        request = _short(GetModelStatusRequest, message)
        store = self._stores.get(request.model_spec.name)
        record.model = store.name
        statuses = store.statuses(**asked_version(request.model_spec))
        return GetModelStatusResponse(model_version_status=[one.described() for one in statuses])

    def _reload(self, message: bytes, context: grpc.ServicerContext, record: RequestRecord) -> ReloadConfigResponse:
        if not self._allow_reload:
            reason = (
                "this server takes no other models; --allow-reload (Server(allow_reload=True)) lets clients set them"
            )
            raise RequestError(reason, "PERMISSION_DENIED")
        request = _short(ReloadConfigRequest, message)
        try:
            self._stores.reload(model_settings(request.config, "config", None))
        except ConfigError as error:
            raise RequestError(str(error)) from error
        return ReloadConfigResponse(status={"error_code": "OK"})


class _GoneError(Exception):
    """The client left before its message was here."""


def _short(kind: Any, message: bytes) -> Any:
    if len(message) > 1 << 16:
        raise RequestError(f"a {kind.DESCRIPTOR.name} has at most 65,536 bytes", "TOO_LARGE")
    return parsed(kind, message)
