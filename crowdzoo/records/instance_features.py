"""Writes instances to tf.Examples, and reads batches of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.data.instance_kinds import TABLES, VECTORS
from crowdzoo.files.served_model import served_name
from crowdzoo.networks.decodable import is_decodable, not_decodable
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.instances.upright_image import opened
from crowdzoo.records.example_files import DatasetInfo

INSTANCES = "instances"
COLUMN = f"{INSTANCES}/"  # prefix of names of columns


def instance_info(instances: Instances) -> dict[str, Any]:
    """Entries of `dataset.json` that `instance_features` needs, and names of columns.

    They are `instances` (name of their kind), `num_features` and `features` (names of columns) for feature vectors, and
    `columns` for a table: served name -> shape of a value, None for strings.

    Args:
        instances: all instances.
    """
    of_vectors = instances.kind == VECTORS
    columns = instances.values if instances.kind == TABLES else {}
    return {
        "instances": instances.kind.name,
        "num_features": instances.values.shape[1] if of_vectors else None,
        "features": instances.names,
        "columns": {
            served_name(name): list(values.shape[1:]) if values.dtype.kind == "f" else None
            for name, values in columns.items()
        },
    }


def add_instance(example: tf.train.Example, instances: Instances, row: int, feature: str = INSTANCES) -> None:
    """Adds a feature to an Example: float [D] for a feature vector, bytes [1] for a text or an image file.

    For a table it adds a feature `<feature>/<served name>` for each column, float or bytes.

    Args:
        example: Example of a task, or of a pair of tasks; changed in place.
        instances: all instances.
        row: row of the task.
        feature: name of the feature; for pairs "left" or "right".

    Raises:
        DataError: an image that TensorFlow does not decode, or that cannot be read.
    """
    columns = {feature: instances.values}
    if instances.kind == TABLES:
        columns = {f"{feature}/{served_name(name)}": values for name, values in instances.values.items()}
    for name, values in columns.items():
        if values.dtype.kind == "f":
            example.features.feature[name].float_list.value.extend(np.ravel(values[row]))
        else:
            example.features.feature[name].bytes_list.value.append(_stored(values, row))


def _stored(values: np.ndarray, row: int) -> bytes:
    value = opened(values[row : row + 1])[0]
    if isinstance(value, str):
        return value.encode()
    if not is_decodable(value):
        raise not_decodable([values[row]])
    return value


def instance_features(info: DatasetInfo, feature: str = INSTANCES) -> dict[str, Any]:
    """Features for `tf.io.parse_example` to read instances.

    Args:
        info: contents of `dataset.json`.
        feature: as for `add_instance`.
    """
    if info.get("columns"):
        return {
            f"{feature}/{name}": tf.io.FixedLenFeature(shape or [], tf.string if shape is None else tf.float32)
            for name, shape in info["columns"].items()
        }
    if info["num_features"] is None:
        return {feature: tf.io.FixedLenFeature([], tf.string)}
    return {feature: tf.io.FixedLenFeature([info["num_features"]], tf.float32)}


def parsed_instances(parsed: Mapping[str, Any], feature: str = INSTANCES) -> Any:
    """Instances from the result of `tf.io.parse_example`, as input of the base or its encoder.

    Columns of a table have their served names.

    Args:
        parsed: result of `tf.io.parse_example`.
        feature: as for `add_instance`.
    """
    if feature in parsed:
        return parsed[feature]
    begin = f"{feature}/"
    return {name.removeprefix(begin): values for name, values in parsed.items() if name.startswith(begin)}
