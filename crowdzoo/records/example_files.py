"""Files of a split of tf.Examples, whose bytes depend only on the data."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.data.annotations import Annotations
from crowdzoo.files.json import FORMAT_VERSION, check_format

SPLITS = ("train", "eval")
DatasetInfo = dict[str, Any]  # `dataset.json` of Examples, see `read_dataset_info`
_TASKS_PER_FILE = 20_000


def prepare_examples(examples: Any) -> None:
    """Declares an Examples artifact to hold gzipped TFRecords of tf.Example in the splits train and eval."""
    examples.splits = list(SPLITS)
    examples.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    examples.set_string_custom_property("file_format", "tfrecords_gzip")


def split_files(uri: str, split: str) -> str:
    """Pattern of the files of a split of an Examples artifact."""
    return os.path.join(uri, f"Split-{split}", "*")


def task_and_example(record: bytes) -> tuple[str, tf.train.Example]:
    """Returns the task's name and the Example of a record."""
    example = tf.train.Example.FromString(record)
    return example.features.feature["task"].bytes_list.value[0].decode(), example


def write_dataset_info(uri: str, info: DatasetInfo) -> None:
    """Writes `dataset.json` next to the splits: facts about all Examples that readers need.

    Args:
        uri: the artifact's folder.
        info: `kind` (of label), `classes` (None for ratings) and `annotators` (names in the order of their codes),
            `instances` (name of their kind), `num_features` and `features` (names of columns, or None), `columns` (of a
            table), `num_tasks` and `num_gold` (by split; for pairs, `num_tasks` counts Examples, each order separately,
            and `num_gold` pairs), `sha256` (of the content of each input file, by key), `reading` (settings of
            AnnotationExampleGen, with the paths or URIs of the files).
    """
    with tf.io.gfile.GFile(os.path.join(uri, "dataset.json"), "w") as file:
        file.write(json.dumps({**info, "format_version": FORMAT_VERSION}))


def read_dataset_info(uri: str) -> DatasetInfo:
    """Reads the file of `write_dataset_info`.

    Raises:
        DataError: a later release wrote it.
    """
    place = os.path.join(uri, "dataset.json")
    with tf.io.gfile.GFile(place) as file:
        info = json.loads(file.read())
    check_format(info.pop("format_version", None), place)
    return info


def split_by_hash(names: Iterable[str], eval_fraction: float) -> np.ndarray:
    """Splits names by a hash: a name keeps its split when others are added or removed, and with any seed."""
    # prefixed with 0, as with seed 0 earlier, so that earlier splits are unchanged
    digests = (hashlib.sha256(f"0:{name}".encode()).digest() for name in names)
    shares = np.array([int.from_bytes(digest[:8], "big") / 2**64 for digest in digests])
    return np.where(shares < eval_fraction, "eval", "train")


def write_examples(uri: str, split: str, tasks: Sequence[str], example: Callable[[int], tf.train.Example]) -> None:
    """Writes a split.

    A hash of the task determines its file and its position in the file, so that records are well mixed, and in the same
    order in every run, which makes training reproducible.

    Args:
        uri: the artifact's folder.
        split: its name.
        tasks: names of the tasks.
        example: function that makes the Example of the task at a position in `tasks`; called when it is written.
    """
    num_files = max(1, -(-len(tasks) // _TASKS_PER_FILE))
    rows: dict[int, list[tuple[bytes, int]]] = {}
    for row, task in enumerate(tasks):
        place = hashlib.sha256(task.encode()).digest()
        rows.setdefault(int.from_bytes(place[:8], "big") % num_files, []).append((place, row))
    for index, own in rows.items():
        name = f"data_tfrecord-{index:05d}-of-{num_files:05d}.gz"
        _write(uri, split, name, (example(row) for _, row in sorted(own)))


def rewrite_examples(
    uri: str, target: str, split: str, changed: Callable[[str, tf.train.Example], tf.train.Example]
) -> None:
    """Writes a changed split, with the same names of files and order of records.

    Args:
        uri: folder of the artifact to read.
        target: folder of the artifact to write.
        split: its name.
        changed: function of a task's name and its Example that returns the Example to write.
    """
    for path in tf.io.gfile.glob(split_files(uri, split)):
        records = tf.data.TFRecordDataset(path, "GZIP").as_numpy_iterator()
        _write(target, split, os.path.basename(path), (changed(*task_and_example(record)) for record in records))


def _write(uri: str, split: str, name: str, examples: Iterable[tf.train.Example]) -> None:
    folder = os.path.join(uri, f"Split-{split}")
    tf.io.gfile.makedirs(folder)
    options = tf.io.TFRecordOptions(compression_type="GZIP")
    with tf.io.TFRecordWriter(os.path.join(folder, name), options) as writer:
        for example in examples:
            writer.write(example.SerializeToString(deterministic=True))


GenOptions = dict[str, Any]  # settings of AnnotationExampleGen, by name


@dataclass(frozen=True)
class LabelledTasks:
    """Tasks or pairs of tasks with their annotations and gold, in the order of their file.

    Attributes:
        annotations: labels of all tasks.
        names: names of the tasks, N; for pairs see `pair_names`.
        split: "train" or "eval", [N].
        labelled: whether the task has labels, bool [N].
        gold: names of classes, ratings, or JSON of tags, N; None where unknown.
        info: entries of `dataset.json` that belong to the kind.
        change_split: advice about an empty split.
        example: function that makes the tf.Example of a task, by its row.
        unit: name of a row in messages.
    """

    annotations: Annotations
    names: list[str]
    split: np.ndarray
    labelled: np.ndarray
    gold: list[Any]
    info: dict[str, Any]
    change_split: str
    example: Callable[[int], tf.train.Example]
    unit: str = "task"

    @property
    def known(self) -> np.ndarray:
        """Mask of tasks whose gold is known, bool [N]."""
        return np.array([gold is not None for gold in self.gold], bool)

    @property
    def used(self) -> np.ndarray:
        """Mask of tasks that become Examples, bool [N]; tasks without labels are only used in eval."""
        return self.labelled | (self.split == "eval")
