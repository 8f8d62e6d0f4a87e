"""A client's connection over gRPC."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from google.protobuf.struct_pb2 import ListValue
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest, SignatureDefMap
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, ModelVersionStatus
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from crowdzoo.errors import ServingError, Setting
from crowdzoo.files.served_model import as_text
from crowdzoo.serving.rest_connection import LOOPBACK, described, no_answer

# Details of gRPC's own errors if there is no answer; a busy server has the same statuses
_NO_SERVER = re.compile("connect|socket|transport|resol|handshake|deadline exceeded", re.IGNORECASE)


def _content(ca_file: str | os.PathLike[str]) -> bytes:
    try:
        return Path(ca_file).read_bytes()
    except OSError as error:
        raise ServingError(f"{Setting('ca_file')} {os.fspath(ca_file)}: cannot be read ({error.strerror})") from error


class GrpcConnection:
    """Client of TF Serving's gRPC API; the arguments are those of `Client`."""

    def __init__(self, url: str, model: str, version: int | None, timeout: float, ca_file: Any = None):
        self._url = url
        self._spec = {"name": model} | ({"version": {"value": version}} if version is not None else {})
        self._timeout = timeout
        proxy = int(urlsplit(url).hostname not in LOOPBACK)
        options = [(f"grpc.max_{way}_message_length", -1) for way in ("send", "receive")]
        options.append(("grpc.enable_http_proxy", proxy))
        if urlsplit(url).scheme == "grpcs":
            credentials = grpc.ssl_channel_credentials(None if ca_file is None else _content(ca_file))
            self._channel = grpc.secure_channel(urlsplit(url).netloc, credentials, options)
        else:
            self._channel = grpc.insecure_channel(urlsplit(url).netloc, options)
        self._prediction = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._model = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def predict(
        self, signature: str, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str]
    ) -> dict[str, np.ndarray]:
        """Sends one request; `outputs` is not needed, as tensors carry their dtypes."""
        request = PredictRequest(model_spec={**self._spec, "signature_name": signature})
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(array))
        answer = self._ask(self._prediction.Predict, request)
        return {name: as_text(tf.make_ndarray(proto)) for name, proto in answer.outputs.items()}

    def metadata(self) -> dict[str, Any]:
        """See `Client.metadata`."""
        request = GetModelMetadataRequest(model_spec=self._spec, metadata_field=["signature_def"])
        answer = self._ask(self._prediction.GetModelMetadata, request)
        definitions = SignatureDefMap()
        answer.metadata["signature_def"].Unpack(definitions)
        as_json = json_format.MessageToDict(definitions, preserving_proto_field_name=True).get("signature_def", {})
        columns = ListValue()
        answer.metadata["features"].Unpack(columns)  # empty from TensorFlow Serving, which does not provide it
        spec = {"name": answer.model_spec.name, "version": answer.model_spec.version.value}
        return described(spec, as_json, columns or None)

    def status(self) -> list[dict[str, Any]]:
        """See `Client.status`."""
        answer = self._ask(self._model.GetModelStatus, GetModelStatusRequest(model_spec=self._spec))
        names = ModelVersionStatus.State.Name
        return [
            {"version": status.version, "state": names(status.state), "error": status.status.error_message}
            for status in answer.model_version_status
        ]

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def _ask(self, method: Any, request: Any) -> Any:
        try:
            return method(request, timeout=self._timeout)
        except grpc.RpcError as error:
            code = error.code().name
            reason = error.details()
            if code in ("UNAVAILABLE", "DEADLINE_EXCEEDED") and _NO_SERVER.search(reason):
                raise no_answer(self._url, reason) from error
            raise ServingError(f"{self._url} answers {code}: {reason}") from error
