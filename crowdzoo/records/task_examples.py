"""Instances with classes read back from Examples, whole, for what compares several trainings on them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.instance_kinds import instance_kind
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.records.example_dataset import SAID, read_batches, said_of
from crowdzoo.records.instance_features import parsed_instances

_READ = 1024


def read_tasks(patterns: Sequence[str], info: dict[str, Any]) -> tuple[Instances, Annotations]:
    """Reads the split train.

    Args:
        patterns: patterns of gzipped TFRecord files.
        info: result of `read_dataset_info`, of kind classification.

    Returns:
        The instances, N, and the annotations; task code i is row i of the instances.

    Raises:
        FileNotFoundError: no file fits.
    """
    others = {"task": tf.io.FixedLenFeature([], tf.string), **SAID}
    names: list[str] = []
    values, said = [], []
    for batch in read_batches(patterns, info, "train", _READ, others=others):
        task, annotator, label = said_of(batch)
        said.append((task + len(names), annotator, label))
        names += [name.decode() for name in batch["task"].tolist()]
        values.append(keras.tree.map_structure(_texts, parsed_instances(batch)))
    tasks = np.array(names, object)
    together = keras.tree.map_structure(lambda *parts: np.concatenate(parts), *values)
    instances = Instances(tasks, instance_kind(info["instances"]), together, info["features"])
    return instances, annotations_of(said, tasks, info)


def annotations_of(said: Iterable[tuple[np.ndarray, ...]], tasks: np.ndarray, info: Mapping[str, Any]) -> Annotations:
    """Annotations out of what `said_of` gives of each batch, with the tasks' codes, and `dataset.json`."""
    task_ids, annotator_ids, labels = (np.concatenate(column) for column in zip(*said, strict=True))
    classes, annotators = (np.array(info[key], object) for key in ("classes", "annotators"))
    return Annotations("classification", task_ids, annotator_ids, labels, tasks, annotators, classes)


def _texts(values: np.ndarray) -> np.ndarray:
    """Bytes as texts, as readers of files give them; files of images stay."""
    if values.dtype != object:
        return values
    try:
        return np.array([*(value.decode() for value in values.tolist()), None], object)[:-1]
    except UnicodeDecodeError:
        return values
