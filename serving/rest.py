"""TF Serving's REST API as an ASGI application."""

import asyncio
import dataclasses
import json
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google.protobuf import json_format

from crowdzoo.errors import short_repr
from crowdzoo.files.version_folders import MAX_VERSION
from crowdzoo.serving.gate import full
from crowdzoo.serving.gzip_bodies import deflated, inflated, takes_gzip
from crowdzoo.serving.memory_budget import MemoryBudget, Share
from crowdzoo.serving.model_store import ModelStore
from crowdzoo.serving.predictor import Predictor, is_long
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.request_monitor import RequestMonitor
from crowdzoo.serving.request_record import RequestRecord
from crowdzoo.serving.rest_protocol import GONE

__all__ = ["RestService"]

log = logging.getLogger("crowdzoo.serving")

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>[^/:]+)|/labels/(?P<label>[^/:]+))?"
    r"(?::(?P<verb>[^/:]+)|/(?P<metadata>metadata))?"
)
# Paths for whoever starts and watches servers, and what is answered as plain text
_ALIVE, _READY = "/healthz", "/readyz"
_PLAIN = ("health", "metrics")
# Headers of an answer
_JSON, _TEXT = (b"content-type", b"application/json"), (b"content-type", b"text/plain; charset=utf-8")
_GZIP = [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
_OF_STATUS = {405: [(b"allow", b"GET, POST")], 503: [(b"retry-after", b"1")]}
# Shorter answers are not compressed
_SHORT = 1 << 12
# A refused body is read to its end, because many clients look for the answer only after they have sent all;
# beyond this many bytes the connection is closed instead.
_MOST_DISCARDED = 1 << 28


class RestService:
    """The ASGI application.

    Args:
        predictor: answers :predict, :classify and :regress.
        monitor: is told of each request, and has the metrics.
    """

    def __init__(self, predictor: Predictor, monitor: RequestMonitor):
        self._predictor = predictor
        self._monitor = monitor
        self.gate = predictor.gate()
        limits = predictor.limits
        # a thread for each that predicts, that waits for its turn, and for the rest, such as the status
        self._executor = ThreadPoolExecutor(2 * limits.threads + limits.queue, thread_name_prefix="crowdzoo-rest")
        self._most = limits.threads + limits.queue
        self._whole = 0  # requests that are here to their end, and not answered
        # bodies on their way leave the other half of the memory to requests that are whole
        self._arriving = MemoryBudget(dataclasses.replace(limits, memory=limits.memory // 2))
        self.draining = False

    def close(self) -> None:
        """Stops the threads that are idle."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers one request."""
        record = RequestRecord("REST")
        headers = [_JSON]
        status = 200
        try:
            with self._predictor.budget.share() as share:
                try:
                    content, more = await self._answer(scope, receive, share, record)
                    if record.api in _PLAIN:
                        headers = [_TEXT]
                    headers += more
                except RequestError as error:
                    record.status = error.grpc_status
                    content, status = _error(error.reason), error.http_status
                    headers += _OF_STATUS.get(status, [])
                except _GoneError:
                    record.status = "CANCELLED"
                    return
                except Exception:
                    record.status = "INTERNAL"
                    log.exception("crowdzoo serve: a REST request failed")
                    content, status = _error("internal error, see the log of the server"), 500
                if self.draining:
                    headers.append((b"connection", b"close"))
                headers.append((b"content-length", str(len(content)).encode()))
                record.answer_bytes = len(content)
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": content})
        finally:
            self._monitor.finished(record)

    async def _answer(
        self, scope: Any, receive: Any, share: Share, record: RequestRecord
    ) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        """The body of an answer, and headers beside those of every answer."""
        method = scope["method"]
        if method == "POST" and self.gate.is_full:
            raise full()  # before anything of the body is read
        with self._arriving.share() as arriving:
            chunks = await _read(receive, self._predictor.limits.request_bytes, share, arriving)
        if method == "POST" and self._whole >= self._most:
            raise full()
        record.request_bytes = sum(map(len, chunks))
        sent = dict(scope["headers"])
        encoding = sent.get(b"content-encoding", b"identity").decode("latin-1")
        takes = takes_gzip(sent.get(b"accept-encoding", b"").decode("latin-1"))
        asked = share, record, scope[GONE].is_set

        def answer() -> tuple[bytes, list[tuple[bytes, bytes]]]:
            body = chunks[0] if len(chunks) == 1 else b"".join(chunks)  # here: short requests go on beside a long copy
            chunks.clear()
            content = self.answer(method, scope["path"], encoding, body, *asked)
            return (deflated(content), _GZIP) if takes and len(content) >= _SHORT else (content, [])

        self._whole += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, answer)
        finally:
            self._whole -= 1

    def answer(
        self,
        method: str,
        path: str,
        encoding: str,
        body: bytes,
        share: Share,
        record: RequestRecord,
        is_gone: Callable[[], bool],
    ) -> bytes:
        """Body of the answer; runs in a thread of the executor.

        Raises:
            RequestError: the request is not valid; the message says why.
        """
        stores = self._predictor.stores
        if path in (_ALIVE, _READY, self._monitor.metrics_path):
            _check_method(method, path, ("GET", "HEAD"))
            return self._own_page(path, record).encode()
        found = _PATH.fullmatch(path)
        if found is None:
            one = f"/v1/models/{stores.names[0]}"
            reason = f"there is nothing at {path[:80]}; ask for {one}, {one}/metadata or {one}:predict"
            raise RequestError(reason, "NOT_FOUND")
        store = stores.get(found["name"])
        record.model = store.name
        label, verb = found["label"], found["verb"]
        version = _version(found["version"])
        if verb is not None and verb not in ("predict", "classify", "regress"):
            raise RequestError(
                f"unknown verb {short_repr(verb)}; there are :predict, :classify and :regress", "NOT_FOUND"
            )
        _check_method(method, path, ("POST",) if verb else ("GET", "HEAD"))
        record.api = verb or found["metadata"] or "status"
        if verb:
            body = inflated(body, encoding, self._predictor.limits.request_bytes, share)
            with self.gate.turn(long=is_long(len(body), json=True), is_gone=is_gone):
                model = store.get(version, label)
                record.version = model.version
                if verb == "predict":
                    return self._predictor.answer_json(model, body, share, record)
                return self._predictor.results_json(model, verb, body, share, record)
        if found["metadata"]:
            return _metadata(store, version, label)
        described = [{**one.described(), "version": str(one.version)} for one in store.statuses(version, label)]
        return _indented({"model_version_status": described})

    def _own_page(self, path: str, record: RequestRecord) -> str:
        """What TF Serving has not, or elsewhere: whether the server lives, whether all models answer; and metrics."""
        if path == self._monitor.metrics_path and self._monitor.metrics is not None:
            record.api = "metrics"
            return self._monitor.metrics.page()
        record.api = "health"
        waiting = [store.name for store in self._predictor.stores if not store.is_ready] if path == _READY else []
        if waiting:
            raise RequestError(f"no version yet of {', '.join(map(repr, waiting[:10]))}", "UNAVAILABLE")
        if path == _READY and self.draining:
            raise RequestError("the server stops", "UNAVAILABLE")
        return "ok\n"


def _check_method(method: str, path: str, allowed: tuple[str, ...]) -> None:
    if method not in allowed:
        raise RequestError(f"{method[:20]} {path[:80]}: use {allowed[0]}", "METHOD_NOT_ALLOWED")


def _error(reason: str) -> bytes:
    return json.dumps({"error": reason}, ensure_ascii=False).encode() + b"\n"


class _GoneError(Exception):
    """The client left before its request was here."""


async def _read(receive: Any, limit: int, share: Share, arriving: Share) -> list[bytes]:
    chunks: list[bytes] = []
    size = 0
    refused: RequestError | None = None
    goes_on = True
    while goes_on and size <= limit + _MOST_DISCARDED:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        chunk, goes_on = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        if refused is None and chunk:
            try:
                if size > limit:
                    reason = f"the body has more than {limit:,} bytes, the most this server takes"
                    raise RequestError(reason, "TOO_LARGE")
                if goes_on:
                    arriving.hold("body", size)
                share.hold("body", size)
                chunks.append(chunk)
            except RequestError as error:
                refused = error
                chunks.clear()
                arriving.close()
                share.hold("body", 0)
    if refused is not None:
        raise refused
    return chunks


def _version(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or int(text[:20]) > MAX_VERSION:
        raise RequestError(f"version {short_repr(text)} is not a number" + " below 2^63" * text.isdecimal())
    return int(text)


def _indented(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, indent=1, ensure_ascii=False).encode() + b"\n"


def _metadata(store: ModelStore, version: int | None, label: str | None) -> bytes:
    model = store.get(version, label)
    # protobuf 5 renamed the option
    known = json_format.MessageToDict.__code__.co_varnames
    names = ("always_print_fields_with_no_presence", "including_default_value_fields", "preserving_proto_field_name")
    signatures = json_format.MessageToDict(model.signature_defs, **{name: True for name in names if name in known})
    spec = {"name": store.name, "signature_name": "", "version": str(model.version)}
    columns = {} if model.features is None else {"features": model.features}  # TF Serving's answer has no such key
    return _indented({"model_spec": spec, "metadata": {"signature_def": signatures, **columns}})
