"""TF Serving's REST API as an ASGI application."""

import asyncio
import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google.protobuf import json_format

from crowdzoo.errors import short_repr
from crowdzoo.files.version_folders import version_number
from crowdzoo.serving.gate import Gate, full
from crowdzoo.serving.json_tensors import check_memory, read_request, to_json
from crowdzoo.serving.metrics import Metrics, RequestRecord, gauges
from crowdzoo.serving.ml_backend import MlBackend
from crowdzoo.serving.model_store import ModelStore, Stores, store_of
from crowdzoo.serving.request_error import NO_EXAMPLES, RequestError, check_method
from crowdzoo.serving.request_log import RequestLog
from crowdzoo.serving.rest_protocol import GONE

log = logging.getLogger("crowdzoo.serving")

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>[^/:]+)|/labels/(?P<label>[^/:]+))?"
    r"(?::(?P<verb>[^/:]+)|/(?P<metadata>metadata))?"
)
# Health checks, answered as plain text
_ALIVE, _READY, _METRICS = "/healthz", "/readyz", "/monitoring/prometheus/metrics"
# Headers of an answer
_JSON, _TEXT = (b"content-type", b"application/json"), (b"content-type", b"text/plain; charset=utf-8")
_OF_STATUS = {401: [(b"www-authenticate", b"Basic")], 405: [(b"allow", b"GET, POST")], 503: [(b"retry-after", b"1")]}


class RestService:
    """The ASGI application.

    Args:
        stores: name -> the model's versions.
        gate: the queue of both protocols.
        metrics: counts requests.
        request_log: logs instances, or None.
        ml_backend: answers Label Studio, or None.
    """

    def __init__(
        self, stores: Stores, gate: Gate, metrics: Metrics, request_log: RequestLog | None, ml_backend: MlBackend | None
    ):
        self._stores, self._limits, self._gate, self._metrics = stores, gate.limits, gate, metrics
        self._ml_backend, self._request_log, limits = ml_backend, request_log, gate.limits
        # one thread for each request that predicts or waits for its turn
        self._executor = ThreadPoolExecutor(limits.threads + limits.queue, thread_name_prefix="crowdzoo-rest")
        self._arriving = 0  # bytes of arriving bodies; half of the memory is for received requests
        self.draining = False

    def stop(self) -> None:
        """Stops idle threads."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers one request."""
        record = RequestRecord("REST")
        status, headers = 200, [_TEXT if scope["path"] in (_ALIVE, _READY, _METRICS) else _JSON]
        try:
            try:
                content = await self._answer(scope, receive, record)
            except ConnectionError:
                record.status = "CANCELLED"
                return
            except Exception as error:
                if not isinstance(error, RequestError):
                    log.exception("crowdzoo serve: a REST request failed")
                    error = RequestError("internal error, see the log of the server", "INTERNAL")
                record.status, status = error.grpc_status, error.http_status
                content = json.dumps({"error": error.reason}, ensure_ascii=False).encode() + b"\n"
                headers = [_JSON, *_OF_STATUS.get(status, [])]
            # the rest of a body that is too long is not read
            headers += [(b"connection", b"close")] * (self.draining or status == 413)
            headers.append((b"content-length", str(len(content)).encode()))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": content})
        finally:
            self._metrics.finished(record)

    async def _answer(self, scope: Any, receive: Any, record: RequestRecord) -> bytes:
        """The body of an answer."""
        method, path, is_gone = scope["method"], scope["path"], scope[GONE]
        sent = dict(scope["headers"])
        call = None
        if backend := self._ml_backend:
            call = backend.call(method, path, sent.get(b"authorization", b""))
        if backend and call:
            record.model, record.api = call[0].name, call[1]
            if content := backend.acknowledge(*call):
                return content
        elif method != "POST":
            return self._looked_up(method, path, record)
        if self._gate.is_full:
            raise full()  # before the body is read
        body = await self._body(receive, int(sent.get(b"content-length", 0)))
        encoding = sent.get(b"content-encoding", b"").decode("latin-1")
        with self._gate.place(len(body)):
            work = asyncio.get_running_loop().run_in_executor(
                self._executor, self.answer, path, encoding, body, record, is_gone, call
            )
            del body
            return await work

    async def _body(self, receive: Any, announced: int) -> bytes:
        chunks: list[bytes] = []
        size, goes_on = 0, True
        try:
            self._check_size(announced)
            while goes_on:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionResetError
                chunks.append(message.get("body", b""))
                goes_on = message.get("more_body", False)
                size += len(chunks[-1])
                self._arriving += len(chunks[-1])
                self._check_size(size)
                if goes_on and self._arriving > self._limits.memory // 2:
                    raise full()
        finally:
            self._arriving -= size
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _check_size(self, size: int) -> None:
        if size > (most := self._limits.request_bytes):
            reason = f"the body has more than {most:,} bytes, the most this server takes; send fewer instances"
            raise RequestError(reason, "TOO_LARGE")

    def _route(self, method: str, path: str, record: RequestRecord) -> tuple[re.Match[str], ModelStore, int | None]:
        match = _PATH.fullmatch(path)
        if match is None:
            example = f"/v1/models/{next(iter(self._stores))}"
            reason = f"there is nothing at {path[:80]}; ask for {example}, {example}/metadata or {example}:predict"
            raise RequestError(reason, "NOT_FOUND")
        store = store_of(self._stores, match["name"])
        record.model = store.name
        verb, version = match["verb"], version_number(match["version"] or "0")
        if version is None:
            raise RequestError(f"version {short_repr(match['version'])} is not a number below 2^63")
        if verb in ("classify", "regress"):
            raise RequestError(NO_EXAMPLES, "UNIMPLEMENTED")
        if verb not in (None, "predict"):
            raise RequestError(f"unknown verb {short_repr(verb)}; use :predict", "NOT_FOUND")
        check_method(method, path, ("POST",) if verb else ("GET", "HEAD"))
        record.api = verb or match["metadata"] or "status"
        return match, store, version if match["version"] else None

    def _looked_up(self, method: str, path: str, record: RequestRecord) -> bytes:
        """Answers requests that do not need the model."""
        if path in (_ALIVE, _READY, _METRICS):
            check_method(method, path, ("GET", "HEAD"))
            if path == _METRICS:
                folder = None if self._request_log is None else self._request_log.folder
                return (self._metrics.page() + gauges(self._stores, folder)).encode()
            waiting = [name for name, store in self._stores.items() if not store.is_ready]
            if path == _READY and (waiting or self.draining):
                names = ", ".join(map(repr, waiting[:10]))
                raise RequestError(f"no version yet of {names}" if names else "the server stops", "UNAVAILABLE")
            return b"ok\n"
        match, store, version = self._route(method, path, record)
        if match["metadata"]:
            return _metadata(store, version, match["label"])
        statuses = store.statuses(version, match["label"])
        described = [{**status.described(), "version": str(status.version)} for status in statuses]
        return json.dumps({"model_version_status": described}, indent=1, ensure_ascii=False).encode() + b"\n"

    def answer(
        self, path: str, encoding: str, body: bytes, record: RequestRecord, is_gone: Any, call: Any = None
    ) -> bytes:
        """Body of the answer to a POST; runs in a thread of the executor. `call` is a call of `MlBackend`.

        Raises:
            RequestError: the request is not valid; the message says why.
        """
        if path in (_ALIVE, _READY, _METRICS):
            check_method("POST", path, ("GET", "HEAD"))
        route = None if call else self._route("POST", path, record)
        if encoding.strip().lower() not in ("", "identity"):
            raise RequestError(f"the body is encoded as {short_repr(encoding)}; send it as plain JSON")
        with self._gate.turn(len(body), is_gone) as wait:
            if route is None:
                return self._ml_backend.answer(*call, body, wait)  # type: ignore[union-attr]
            match, store, version = route
            model = store.get(version, match["label"])
            check_memory(body, self._limits.request_memory)
            signature, inputs, rows = read_request(body, model.signature)
            wait(sum(array.nbytes for array in inputs.values()))
            content = to_json(signature(inputs, self._limits), rows=rows)
            if self._request_log is not None:
                self._request_log.add(store.name, model, inputs)
            return content


def _metadata(store: ModelStore, version: int | None, label: str | None) -> bytes:
    model = store.get(version, label)
    # renamed in protobuf 5
    known = json_format.MessageToDict.__code__.co_varnames
    names = ("always_print_fields_with_no_presence", "including_default_value_fields", "preserving_proto_field_name")
    signatures = json_format.MessageToDict(model.signature_defs, **{name: True for name in names if name in known})
    spec = {"name": store.name, "signature_name": "", "version": str(model.version)}
    columns = {} if model.features is None else {"features": model.features}  # TF Serving's answer lacks this key
    answer = {"model_spec": spec, "metadata": {"signature_def": signatures, **columns}}
    return json.dumps(answer, indent=1, ensure_ascii=False).encode() + b"\n"
