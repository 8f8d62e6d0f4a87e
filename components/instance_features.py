"""Instances in tf.Examples: how a row is written, and how batches of them are read."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from crowdzoo.instances import VECTORS, Instances, opened

__all__ = ["add_instance", "instance_features", "instance_info", "parsed_instances"]


def instance_info(instances: Instances) -> dict[str, Any]:
    """Entries of `dataset.json`: `instances` (name of their kind), `num_features` and `features` (names of columns).

    Args:
        instances: all of them.
    """
    of_vectors = instances.kind is VECTORS
    return {
        "instances": instances.kind.name,
        "num_features": instances.values.shape[1] if of_vectors else None,
        "features": instances.names,
    }


def add_instance(example: tf.train.Example, instances: Instances, row: int) -> None:
    """Adds the feature `instances`: float [D] of a feature vector, bytes [1] of a text or an image file.

    Args:
        example: of a task; changed.
        instances: all of them.
        row: of the task.
    """
    feature = example.features.feature["instances"]
    if instances.kind is VECTORS:
        feature.float_list.value.extend(instances.values[row])
    else:
        value = opened(instances.values[row : row + 1])[0]
        feature.bytes_list.value.append(value.encode() if isinstance(value, str) else value)


def instance_features(info: Mapping[str, Any]) -> dict[str, Any]:
    """What `tf.io.parse_example` needs to read instances.

    Args:
        info: of `dataset.json`.
    """
    if info["num_features"] is None:
        return {"instances": tf.io.FixedLenFeature([], tf.string)}
    return {"instances": tf.io.FixedLenFeature([info["num_features"]], tf.float32)}


def parsed_instances(parsed: dict[str, tf.Tensor]) -> Any:
    """Instances out of what `tf.io.parse_example` gives: a batch as the base or its encoder takes it."""
    return parsed["instances"]
