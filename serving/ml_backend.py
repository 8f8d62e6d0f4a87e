"""MlBackend: Label Studio's protocol of ML backends, for predictions of its tasks by a served model.

Requests are made in `label_studio/ml/api_connector.py` of https://github.com/HumanSignal/label-studio.
"""

import base64
import hmac
import logging
import re
from collections.abc import Callable

import orjson

from crowdzoo.errors import ServingError
from crowdzoo.serving.json_tensors import check_memory, parse_object
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.model_store import ModelStore, Stores, store_of
from crowdzoo.serving.request_error import RequestError, check_method
from crowdzoo.serving.task_predictions import TaskPredictions

log = logging.getLogger("crowdzoo.serving")

_PATH = re.compile(r"(?:/v1/models/(?P<model>[^/:]+))?/(?P<call>health|setup|predict|webhook)")


class MlBackend:
    """Answers Label Studio for the models of a server, without opening connections or storing requests.

    Args:
        stores: name -> the model's versions.
        limits: limits of requests.
        secret: password of the user "crowdzoo" that requests need; None for no password.

    Attributes:
        has_secret: whether requests need one.

    Raises:
        ServingError: a secret that is empty, or has characters that are not printable ASCII.
    """

    def __init__(self, stores: Stores, limits: Limits, secret: str | None = None):
        if secret is not None and not (secret and secret.isascii() and secret.isprintable()):
            where = "label_studio_secret (on the command line the environment variable CROWDZOO_LABEL_STUDIO_SECRET)"
            raise ServingError(f"{where}: must be printable ASCII characters, at least one")
        self._stores, self._limits, self.has_secret = stores, limits, secret is not None
        self._authorization = b"Basic " + base64.b64encode(f"crowdzoo:{secret}".encode())

    def call(self, method: str, path: str, authorization: bytes) -> tuple[ModelStore, str] | None:
        """Parses a request into a model, and "health", "setup", "predict" or "webhook"; None for other paths.

        Webhooks need no secret, because Label Studio does not send it; their body is not read.

        Raises:
            RequestError: a wrong secret, an unknown model, no model name although there are several, or another method.
        """
        parts = _PATH.fullmatch(path)
        if parts is None:
            return None
        name = parts["call"]
        is_open = name == "webhook" or not self.has_secret
        if not (is_open or hmac.compare_digest(authorization, self._authorization)):
            raise RequestError("basic authentication is needed: user crowdzoo, and the secret", "UNAUTHENTICATED")
        allowed = ("GET", "HEAD") if name == "health" else ("POST",)
        check_method(method, path, allowed)
        if parts["model"] is None and len(self._stores) > 1:
            raise RequestError(f"name the model: /v1/models/{next(iter(self._stores))}/{name}", "NOT_FOUND")
        return store_of(self._stores, parts["model"] or next(iter(self._stores))), name

    def acknowledge(self, store: ModelStore, name: str) -> bytes | None:
        """Body of the answer to "health" and "webhook", which do not depend on the body of the request; else None.

        Raises:
            RequestError: no version is served.
        """
        if name == "health":
            store.get()
        return {"health": b'{"status": "UP", "model_class": "crowdzoo"}\n', "webhook": b"{}\n"}.get(name)

    def answer(self, store: ModelStore, name: str, body: bytes, wait: Callable[[int], None]) -> bytes:
        """Body of the answer to "setup" and "predict".

        Args:
            store: versions of the model.
            name: name of the call.
            body: body of the request.
            wait: see `Gate.turn`.

        Raises:
            RequestError: no version is served, the body is not valid, the model does not fit the labelling
                configuration, or all tasks are rejected. It is logged, because Label Studio only shows the status.
        """
        model = store.get()
        version = f"crowdzoo/{store.name}/{model.version}"
        try:
            check_memory(body, self._limits.request_memory)
            request = parse_object(body)
            config = request.get("schema" if name == "setup" else "label_config")
            predictions = TaskPredictions(model, config, self._limits)
            if name == "setup":
                return orjson.dumps({"model_version": version})
            wait(4 * len(body))  # a number of two characters takes eight bytes
            results = predictions.results(request.get("tasks"), version)
        except RequestError as error:
            log.warning("crowdzoo serve: %s, /%s of Label Studio: %s", version, name, error.reason)
            raise
        if refused := predictions.refused:
            few = f"{len(refused)} of {len(results)} tasks have no prediction; {refused[0]}"
            log.warning("crowdzoo serve: %s, /predict of Label Studio: %s", version, few)
        return orjson.dumps({"results": results}, option=orjson.OPT_SERIALIZE_NUMPY)
