"""A client's connection over REST."""

import base64
import json
import os
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from crowdzoo.errors import ServingError
from crowdzoo.serving.connection import LOOPBACK, described_signatures, no_answer

__all__ = ["RestConnection"]


class RestConnection:
    """Speaks TF Serving's REST API; the arguments are those of `Client`."""

    def __init__(
        self, url: str, model: str, version: int | None, timeout: float, ca_file: str | os.PathLike[str] | None = None
    ):
        self._url = url
        self._path = f"/v1/models/{model}" + (f"/versions/{version}" if version is not None else "")
        here = urlsplit(url).hostname in LOOPBACK
        self._http = httpx.Client(
            base_url=url, timeout=timeout, trust_env=not here, verify=True if ca_file is None else _trusting(ca_file),
            headers={"accept-encoding": "identity"} if here else None,  # to compress takes longer than to send
        )  # fmt: skip

    def predict(
        self, signature: str, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str]
    ) -> dict[str, np.ndarray]:
        """One request; `outputs` gives the NumPy dtype of each output."""
        request = {"signature_name": signature, "inputs": {name: _jsonable(array) for name, array in inputs.items()}}
        columns = self._ask("POST", ":predict", json.dumps(request).encode())["outputs"]  # TF Serving reads NaN, too
        if len(outputs) == 1:  # TF Serving leaves the name out
            columns = {next(iter(outputs)): columns}
        return {name: _array(column, outputs[name]) for name, column in columns.items()}

    def metadata(self) -> dict[str, Any]:
        """See `Client.metadata`."""
        answer = self._ask("GET", "/metadata")
        return {
            "name": answer["model_spec"]["name"],
            "version": int(answer["model_spec"]["version"]),
            "signatures": described_signatures(answer["metadata"]["signature_def"]["signature_def"]),
            "features": answer["metadata"].get("features"),
        }

    def status(self) -> list[dict[str, Any]]:
        """See `Client.status`."""
        return [
            {"version": int(one["version"]), "state": one["state"], "error": one["status"]["error_message"]}
            for one in self._ask("GET", "")["model_version_status"]
        ]

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def _ask(self, method: str, what: str, body: bytes | None = None) -> Any:
        try:
            answer = self._http.request(
                method, self._path + what, content=body, headers={"content-type": "application/json"}
            )
        except httpx.HTTPError as error:
            raise no_answer(self._url, error) from error
        try:
            content = answer.json()
        except ValueError:
            content = {}
        if answer.is_success and isinstance(content, dict) and content:
            return content
        reason = content.get("error") if isinstance(content, dict) else None
        raise ServingError(f"{self._url} answers {answer.status_code}: {reason or 'not a model server?'}")


def _trusting(ca_file: str | os.PathLike[str]) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=os.fspath(ca_file))
    except OSError as error:
        raise ServingError(f"ca_file {os.fspath(ca_file)}: no certificates in PEM format ({error})") from error


def _array(column: Any, dtype: str) -> np.ndarray:
    if dtype != "str":
        return np.array(column, dtype=dtype)
    array = np.array(column)
    return array if array.size else array.astype(str)  # of rows without any text NumPy makes numbers


def _jsonable(array: np.ndarray) -> Any:
    if array.dtype == object:
        coded = [{"b64": base64.b64encode(cell).decode()} if isinstance(cell, bytes) else cell for cell in array.flat]
        array = np.fromiter(coded, object, array.size).reshape(array.shape)
    return array.tolist()
