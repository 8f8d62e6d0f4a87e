"""A client's connection over REST, and functions for both protocols."""

import base64
import json
import os
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from crowdzoo.errors import ServingError, Setting

# a network proxy must not get requests to this machine
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# TensorFlow types whose names in NumPy differ from those in messages, such as "DT_INT64" for int64
_DTYPES = {"DT_FLOAT": "float32", "DT_DOUBLE": "float64", "DT_HALF": "float16", "DT_STRING": "str"}


class RestConnection:
    """Client of TF Serving's REST API; the arguments are those of `Client`."""

    def __init__(self, url: str, model: str, version: int | None, timeout: float, ca_file: Any = None):
        self._url = url
        self._path = f"/v1/models/{model}" + (f"/versions/{version}" if version is not None else "")
        here = urlsplit(url).hostname in LOOPBACK
        trusted = True if ca_file is None else _trusting(ca_file)
        headers = {"accept-encoding": "identity"} if here else None  # compressing takes longer than sending
        self._http = httpx.Client(base_url=url, timeout=timeout, trust_env=not here, verify=trusted, headers=headers)

    def predict(
        self, signature: str, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str]
    ) -> dict[str, np.ndarray]:
        """Sends one request; `outputs` has the NumPy dtype of each output."""
        request = {"signature_name": signature, "inputs": {name: _jsonable(array) for name, array in inputs.items()}}
        columns = self._ask("POST", ":predict", json.dumps(request).encode())["outputs"]  # TF Serving reads NaN as well
        if len(outputs) == 1:  # TF Serving omits the name
            columns = {next(iter(outputs)): columns}
        return {name: _array(column, outputs[name]) for name, column in columns.items()}

    def metadata(self) -> dict[str, Any]:
        """See `Client.metadata`."""
        answer = self._ask("GET", "/metadata")
        metadata = answer["metadata"]
        return described(answer["model_spec"], metadata["signature_def"]["signature_def"], metadata.get("features"))

    def status(self) -> list[dict[str, Any]]:
        """See `Client.status`."""
        return [
            {"version": int(status["version"]), "state": status["state"], "error": status["status"]["error_message"]}
            for status in self._ask("GET", "")["model_version_status"]
        ]

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def _ask(self, method: str, what: str, body: bytes | None = None) -> Any:
        json_type = {"content-type": "application/json"}
        try:
            answer = self._http.request(method, self._path + what, content=body, headers=json_type)
            content = answer.json()
        except httpx.HTTPError as error:
            raise no_answer(self._url, error) from error
        except ValueError:
            content = None
        content = content if isinstance(content, dict) else {}
        if answer.is_success and content:
            return content
        reason = content.get("error", "not a model server?")
        raise ServingError(f"{self._url} answers {answer.status_code}: {reason}")


def _trusting(ca_file: str | os.PathLike[str]) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=os.fspath(ca_file))
    except OSError as error:
        named = f"{Setting('ca_file')} {os.fspath(ca_file)}"
        raise ServingError(f"{named}: no certificates in PEM format ({error})") from error


def _array(column: Any, dtype: str) -> np.ndarray:
    if dtype != "str":
        return np.array(column, dtype=dtype)
    array = np.array(column)
    return array if array.size else array.astype(str)  # NumPy makes numbers of rows without any text


def _jsonable(array: np.ndarray) -> Any:
    if array.dtype == object:
        coded = [{"b64": base64.b64encode(cell).decode()} if isinstance(cell, bytes) else cell for cell in array.flat]
        array = np.fromiter(coded, object, array.size).reshape(array.shape)
    return array.tolist()


def described(spec: Mapping[str, Any], definitions: Mapping[str, Any], features: Any) -> dict[str, Any]:
    """Makes the result of `Client.metadata` from a `ModelSpec` and from name -> `SignatureDef` as JSON."""
    signatures = {
        name: {
            side: {key: _described(info) for key, info in definition.get(side, {}).items()}
            for side in ("inputs", "outputs")
        }
        for name, definition in definitions.items()
        if not name.startswith("__")  # TensorFlow's own, such as its initialiser
    }
    columns = None if features is None else list(features)
    return {"name": spec["name"], "version": int(spec["version"]), "signatures": signatures, "features": columns}


def _described(info: Mapping[str, Any]) -> dict[str, Any]:
    dtype = info["dtype"]
    sizes = [int(dim.get("size", 0)) for dim in info["tensor_shape"].get("dim", ())]
    return {"dtype": _DTYPES.get(dtype, dtype.removeprefix("DT_").lower()), "shape": sizes}


def no_answer(url: str, reason: object) -> ServingError:
    """The error for a server that cannot be reached."""
    return ServingError(
        f"{url} does not answer ({reason}). Is the server running? `crowdzoo serve MODEL_DIR` starts one"
    )
