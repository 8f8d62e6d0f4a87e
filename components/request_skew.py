"""Skew: compares instances of requests with the model's training data, by Data Validation's comparators."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import schema_pb2

from crowdzoo.components.drift_validator import SCHEMA_FILE, STATISTICS_FILE, compare, sentences
from crowdzoo.errors import DataError, ServingError
from crowdzoo.files.served_model import DRIFT_FOLDER
from crowdzoo.files.version_folders import complete_versions
from crowdzoo.files.writing import write_json
from crowdzoo.records.instance_features import INSTANCES


class Skew(NamedTuple):
    """Result of `find_skew`.

    Attributes:
        version: folder of the version whose training data were compared.
        num_instances: number of logged instances.
        distances: name of an input -> distance of its distributions (Jensen-Shannon divergence for numbers, L-infinity
            norm for categories) and its limit; None for inputs with fewer than 100 values.
        anomalies: one sentence per input.
    """

    version: Path
    num_instances: int
    distances: Mapping[str, tuple[float, float] | None]
    anomalies: list[str]


def find_skew(folder: str | Path, logged: Path, limits: Mapping[str, float]) -> Skew:
    """Compares instances logged by a server with the training data of the served version.

    The anomalies are also written next to `MODEL.jsonl`, as `MODEL.VERSION.skew.json`, which the server's metrics read.

    Args:
        folder: the serving folder.
        logged: `MODEL.jsonl` of `RequestLog`; `MODEL.1.jsonl` is read as well.
        limits: `jensen_shannon` and `infinity_norm`, as for `find_drift`.

    Raises:
        ServingError: no version, or the newest has no statistics.
        DataError: there are no logged instances, or they do not fit the model.
    """
    served = next(reversed(complete_versions(folder)), None)
    if served is None or not (served / DRIFT_FOLDER / STATISTICS_FILE).is_file():
        raise ServingError(
            f"{served or folder}: has no statistics of its training data. Push a model with `crowdzoo run`."
        )
    before = served / DRIFT_FOLDER
    types = {feature.name: feature.type for feature in tfdv.load_schema_text(str(before / SCHEMA_FILE)).feature}
    names = {_input(name): name for name in types if _input(name)}
    instances = _instances(logged, names, types)
    current = tfdv.generate_statistics_from_dataframe(pd.DataFrame(instances))
    anomalies = compare(current, before, limits, lambda name: name not in names.values(), served=True)
    measured = {
        info.path.step[0]: info.skew_measurements[0] for info in anomalies.drift_skew_info if info.skew_measurements
    }
    distances = {
        key: (measured[name].value, measured[name].threshold) if name in measured else None
        for key, name in names.items()
    }
    skew = Skew(served, len(instances), distances, sentences(anomalies))
    write_json(logged.with_suffix(f".{served.name}.skew.json"), {"anomalies": skew.anomalies})
    return skew


def _input(feature: str) -> str:
    """The served model's input for a feature of the training data, or ""; for pairs only the left one is used."""
    name, _, column = feature.partition("/")
    return (column or INSTANCES) if name in (INSTANCES, "left") else ""


def _instances(logged: Path, names: Mapping[str, str], types: Mapping[str, int]) -> list[dict[str, np.ndarray]]:
    """Values of each logged instance by feature of the training data."""
    instances = []
    for file in (logged.with_suffix(".1.jsonl"), logged):
        for number, line in enumerate(file.read_text("utf-8").splitlines() if file.is_file() else (), 1):
            with contextlib.suppress(ValueError, TypeError):
                instance = json.loads(line)
                if isinstance(instance, dict) and instance.keys() == names.keys():
                    instances.append({name: _cell(instance[key], types[name]) for key, name in names.items()})
                    continue
            raise DataError(f"{file}, line {number}: is not an object of the model's inputs, {', '.join(names)}.")
    if not instances:
        raise DataError(
            f"{logged}: no instances are logged. `crowdzoo serve --log-requests {logged.parent}` logs them."
        )
    return instances


def _cell(value: object, kind: int) -> np.ndarray:
    """A value as a list, as in its tf.Example; JSON has null for NaN."""
    if kind == schema_pb2.BYTES:
        return np.array([value], object)
    return np.array(value, np.float32).reshape(-1)
