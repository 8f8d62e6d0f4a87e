"""TF Serving's REST API as an ASGI application."""

import asyncio
import json
import re
from concurrent.futures import Executor
from typing import Any

from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap

from crowdzoo.serving.json_tensors import from_json, parse, to_json
from crowdzoo.serving.model_store import ModelStore, VersionStatus
from crowdzoo.serving.request_error import RequestError

__all__ = ["create_app"]

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>[^/:]+)|/labels/(?P<label>[^/:]+))?"
    r"(?::(?P<verb>[^/:]+)|/(?P<metadata>metadata))?"
)
# A refused body is read to its end, because many clients look for the answer only after they have sent all;
# beyond this many bytes the connection is closed instead.
_MOST_DISCARDED = 1 << 28


def create_app(store: ModelStore, executor: Executor, *, max_request_bytes: int) -> Starlette:
    """The application.

    Args:
        store: the model.
        executor: where requests are parsed and answered, so that the event loop only moves bytes.
        max_request_bytes: longest body; a longer one is answered with 413.
    """

    async def answer(request: Request) -> Response:
        try:
            body = await _read(request, max_request_bytes)
            loop = asyncio.get_running_loop()
            method, path = request.method, request.url.path
            encoding = request.headers.get("content-encoding", "identity")
            text = await loop.run_in_executor(executor, _answer, store, method, path, encoding, body)
            return Response(text, media_type="application/json")
        except RequestError as error:
            headers = {"Allow": "GET, POST"} if error.http_status == 405 else None
            text = json.dumps({"error": error.reason}, ensure_ascii=False) + "\n"
            return Response(text, error.http_status, headers=headers, media_type="application/json")
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it

    async def broken(request: Request, error: Exception) -> Response:
        return Response('{"error": "internal error, see the log of the server"}\n', 500, media_type="application/json")

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return Starlette(routes=[Route("/{path:path}", answer, methods=methods)], exception_handlers={Exception: broken})


async def _read(request: Request, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        else:
            chunks.clear()
            if size > limit + _MOST_DISCARDED:
                break
    if size > limit:
        raise RequestError(f"the body has more than {limit:,} bytes, the most this server takes", "TOO_LARGE")
    return b"".join(chunks)


def _answer(store: ModelStore, method: str, path: str, encoding: str, body: bytes) -> str:
    """Text of the answer; runs in a thread of the executor."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise RequestError(
            f"there is nothing at {path}; ask for /v1/models/{store.name}, /v1/models/{store.name}/metadata "
            f"or /v1/models/{store.name}:predict",
            "NOT_FOUND",
        )
    name, label, verb = found["name"], found["label"], found["verb"]
    if name != store.name:
        raise RequestError(f"model {name!r} is not served here; the model's name is {store.name!r}", "NOT_FOUND")
    version = _version(found["version"])
    if verb is not None and verb not in ("predict", "classify", "regress"):
        raise RequestError(f"unknown verb {verb!r}; this server answers :predict", "NOT_FOUND")
    allowed = ("POST",) if verb else ("GET", "HEAD")
    if method not in allowed:
        raise RequestError(f"{method} {path}: use {allowed[0]}", "METHOD_NOT_ALLOWED")
    if verb == "predict":
        if encoding != "identity":
            raise RequestError(f"the body is encoded as {encoding!r}; send it as plain JSON")
        return _predict(store, version, label, body)
    if verb:
        raise RequestError(f":{verb} is not answered by this server; use :predict", "UNIMPLEMENTED")
    if found["metadata"]:
        return _metadata(store, version, label)
    return _status(store.statuses(version, label))


def _version(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 19:
        raise RequestError(f"version {text!r} is not a number")
    return int(text)


def _predict(store: ModelStore, version: int | None, label: str | None, body: bytes) -> str:
    model = store.get(version, label)
    request = parse(body)
    signature = model.signature(request.get("signature_name", ""))
    return to_json(signature(from_json(request, signature)), rows="instances" in request)


def _status(statuses: list[VersionStatus]) -> str:
    described = [
        {
            "version": str(status.version),
            "state": status.state,
            "status": {"error_code": "UNKNOWN" if status.error else "OK", "error_message": status.error},
        }
        for status in statuses
    ]
    return json.dumps({"model_version_status": described}, indent=1, ensure_ascii=False) + "\n"


def _metadata(store: ModelStore, version: int | None, label: str | None) -> str:
    model = store.get(version, label)
    metadata: dict[str, Any] = {
        "model_spec": {"name": store.name, "signature_name": "", "version": str(model.version)},
        "metadata": {"signature_def": _message_to_dict(model.signature_defs)},
    }
    return json.dumps(metadata, indent=1, ensure_ascii=False) + "\n"


def _message_to_dict(message: SignatureDefMap) -> dict[str, Any]:
    # protobuf 5 renamed the option
    options = json_format.MessageToDict.__code__.co_varnames
    name = "always_print_fields_with_no_presence"
    name = name if name in options else "including_default_value_fields"
    return json_format.MessageToDict(message, preserving_proto_field_name=True, **{name: True})
