"""One version of a model in memory, warmed up."""

import contextlib
import json
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from crowdzoo.errors import DataError, short_repr
from crowdzoo.files.model_files import read_model_card
from crowdzoo.files.served_model import DRIFT_FOLDER, MODEL_CARD_FILE, WARMUP_FILE, load_saved_model
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.proto_tensors import arrays_from_protos
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.signature import Signature

DEFAULT_SIGNATURE = "serving_default"


class LoadedModel:
    """A SavedModel and its signatures, after its warm-up requests were answered.

    Args:
        folder: the SavedModel's folder.
        version: its version number.
        limits: limits of its warm-up requests; None for the defaults.

    Raises:
        ValueError, OSError, tf.errors.OpError: the model cannot be loaded.
        RequestError: it cannot answer its own warm-up requests.

    Attributes:
        signature_defs: `SignatureDefMap` as TF Serving's metadata shows it.
        card: the card of a model that crowdzoo exported; empty for other models.
        features: names of the columns that the model was trained on, from its card; None without a card.
        num_warmup_requests: number of warm-up requests that were replayed.
        written: time of its files, seconds since 1970.
        num_drift_anomalies: number of anomalies of its training data relative to the previous version; None if it was
            not pushed by a run of crowdzoo.
    """

    def __init__(self, folder: Path, version: int, limits: Limits | None = None):
        self.version, self.written = version, folder.stat().st_mtime
        self.num_drift_anomalies = count_anomalies(folder / DRIFT_FOLDER / "anomalies.json")
        self.signature_defs = read_signature_defs(folder)
        # stored because the variables live only as long as this object
        self._loaded: Any = load_saved_model(folder)
        functions = dict(self._loaded.signatures)
        card: dict[str, Any] = {}
        with contextlib.suppress(DataError):  # models of other exporters have none
            card = read_model_card(folder / MODEL_CARD_FILE)
        # models exported by crowdzoo answer each row independently, with finite numbers
        software, described = (card.get(key) or {} for key in ("software", "signatures"))
        by_rows = "crowdzoo" in software and DEFAULT_SIGNATURE in described
        self.card = card if by_rows else {}
        self.features: list[str] | None = card.get("features")
        texts = "images" if "images" in card else ""
        if by_rows and "tokens" in functions[DEFAULT_SIGNATURE].structured_outputs:
            texts = "tokens"
        self.signatures = {
            name: Signature(name, function, by_rows=by_rows, texts=texts) for name, function in functions.items()
        }
        if not self.signatures:
            raise ValueError("it has no signatures")
        self.num_warmup_requests = self._warm_up(folder / WARMUP_FILE, limits or Limits())

    def signature(self, name: str) -> Signature:
        """The signature called `name`; empty means `serving_default`.

        Raises:
            RequestError: it does not exist; the message lists those that do.
        """
        name = name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            there = ", ".join(map(repr, sorted(self.signatures)))
            raise RequestError(f"signature {short_repr(name)} is not in the model; it has {there}")
        return self.signatures[name]

    def _warm_up(self, path: Path, limits: Limits) -> int:
        if not path.is_file():
            return 0
        count = 0
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            log = PredictionLog.FromString(record)
            if log.WhichOneof("log_type") != "predict_log":  # others are requests for unsupported methods
                continue
            request = log.predict_log.request
            signature = self.signature(request.model_spec.signature_name)
            signature(arrays_from_protos(request.inputs, limits), limits)
            count += 1
        return count


def count_anomalies(file: Path) -> int | None:
    """Number of anomalies in a file of DriftValidator or `crowdzoo skew`; None if it cannot be read."""
    try:
        return len(json.loads(file.read_text("utf-8"))["anomalies"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def read_signature_defs(folder: Path) -> SignatureDefMap:
    """The signatures of a SavedModel as TF Serving's metadata shows them, without loading it.

    Raises:
        OSError: `saved_model.pb` cannot be read.
        DecodeError: it is not a SavedModel.
        ValueError: it has no graph with the tag `serve`.
    """
    saved_model = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    graphs = [graph for graph in saved_model.meta_graphs if "serve" in graph.meta_info_def.tags]
    if not graphs:
        raise ValueError("it has no graph with the tag 'serve'")
    return SignatureDefMap(signature_def=dict(graphs[0].signature_def))
