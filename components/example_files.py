"""Writing a split of tf.Examples so that the bytes depend on the data alone, whatever Beam runner does it."""

import hashlib
import json
import os
from typing import Any

import apache_beam as beam
import tensorflow as tf
from tfx.v1.types import standard_artifacts

__all__ = ["WriteExamples", "prepare_examples", "read_dataset_info", "split_files", "write_dataset_info"]

SPLITS = ("train", "eval")
_TASKS_PER_FILE = 20_000


def prepare_examples(examples: standard_artifacts.Examples) -> None:
    """Declares an Examples artifact to hold gzipped TFRecords of tf.Example in the splits train and eval."""
    examples.splits = list(SPLITS)
    examples.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    examples.set_string_custom_property("file_format", "tfrecords_gzip")


def split_files(uri: str, split: str) -> str:
    """Pattern of the files of a split of an Examples artifact."""
    return os.path.join(uri, f"Split-{split}", "*")


def write_dataset_info(uri: str, info: dict[str, Any]) -> None:
    """Writes `dataset.json` beside the splits: what a reader of the Examples must know of all of them.

    Args:
        uri: the artifact's folder.
        info: `task`, `classes` (None for ratings) and `annotators` (names in the order of their codes),
            `num_features` (None for texts), `num_tasks` and `num_gold` (by split).
    """
    with tf.io.gfile.GFile(os.path.join(uri, "dataset.json"), "w") as file:
        file.write(json.dumps(info))


def read_dataset_info(uri: str) -> dict[str, Any]:
    """Reads what `write_dataset_info` wrote."""
    with tf.io.gfile.GFile(os.path.join(uri, "dataset.json")) as file:
        return json.loads(file.read())


class WriteExamples(beam.PTransform):
    """Writes (split, task, tf.Example) to an Examples artifact's folder.

    A hash of the task decides its file and its place in the file. So records are in the same order on every
    runner and in every run, and training on them can be repeated exactly; and they are well mixed.

    Args:
        uri: the artifact's folder.
        counts: number of tasks in each split, which sets the number of files.
    """

    def __init__(self, uri: str, counts: dict[str, int]):
        super().__init__()
        self._uri = uri
        self._num_files = {split: max(1, -(-count // _TASKS_PER_FILE)) for split, count in counts.items()}

    def expand(self, examples: beam.PCollection) -> beam.PCollection:
        """Groups by file and writes each; returns the paths."""
        uri, num_files = self._uri, self._num_files

        def keyed(element: tuple[str, str, tf.train.Example]) -> tuple[tuple[str, int], tuple[bytes, bytes]]:
            split, task, example = element
            place = hashlib.sha256(task.encode()).digest()
            index = int.from_bytes(place[:8], "big") % num_files[split]
            return (split, index), (place, example.SerializeToString(deterministic=True))

        def write(split: str, index: int, records: list[tuple[bytes, bytes]]) -> str:
            folder = os.path.join(uri, f"Split-{split}")
            tf.io.gfile.makedirs(folder)
            path = os.path.join(folder, f"data_tfrecord-{index:05d}-of-{num_files[split]:05d}.gz")
            with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
                for _, record in sorted(records):
                    writer.write(record)
            return path

        return (
            examples
            | "ToFile" >> beam.Map(keyed)
            | "GroupByFile" >> beam.GroupByKey()
            | "Write" >> beam.MapTuple(lambda key, records: write(key[0], key[1], list(records)))
        )
