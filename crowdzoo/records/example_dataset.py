"""tf.data over the pipeline's Examples: instances with their annotations or aggregated labels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.records.example_files import DatasetInfo
from crowdzoo.records.instance_features import INSTANCES, instance_features, parsed_instances
from crowdzoo.training.training_state import EpochCount

# Features of annotations, for `tf.io.parse_example`
_CODES = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
SAID = {"annotator_ids": _CODES, "annotator_labels": _CODES}

_HELD_BYTES = 256 * 2**20  # size of Examples in memory; photographs from cameras have some megabytes each
_SHUFFLED = 10_000
_READ = 1024


def files_of(patterns: Sequence[str]) -> list[str]:
    """The files that match any of the patterns, sorted, because trained weights depend on the order of records.

    Raises:
        FileNotFoundError: no file matches.
    """
    files = sorted(file for pattern in patterns for file in tf.io.gfile.glob(pattern))
    if not files:
        raise FileNotFoundError(f"no Examples in {', '.join(patterns)}")
    return files


def _num_bytes(files: Sequence[str]) -> int:
    """Total size of files in bytes."""
    return sum(tf.io.gfile.stat(file).length for file in files)


def held_examples(files: Sequence[str], num_tasks: int, most: int) -> int:
    """Number of Examples that may be in memory: `most`, or fewer if these would exceed 256 MiB.

    Args:
        files: all files of a split.
        num_tasks: number of Examples in them.
        most: upper limit, 1 or more.
    """
    return max(1, min(most, _HELD_BYTES * num_tasks // max(_num_bytes(files), 1)))


def read_batches(
    patterns: Sequence[str],
    info: DatasetInfo,
    split: str,
    batch_size: int = 256,
    *,
    instances: Sequence[str] = (INSTANCES,),
    others: Mapping[str, Any] | None = None,
    **sizes: int,
) -> Iterator[dict[str, Any]]:
    """Yields batches of instances and some features of all Examples, in the files' order.

    Args:
        patterns: patterns of gzipped TFRecord files.
        info: of `dataset.json`.
        split: name of the split.
        batch_size: largest number of Examples per batch, B; fewer for large instances.
        instances: names of the features of instances; for pairs "left" and "right".
        others: further features, for `tf.io.parse_example`.
        **sizes: sizes of further features, which are floats.

    Yields:
        `instances` float32 [B, D], or bytes [B] (for a table one per column, see `parsed_instances`); the others
        float32 [B, size].

    Raises:
        FileNotFoundError: no file matches.
    """
    features = {name: tf.io.FixedLenFeature([size], tf.float32) for name, size in sizes.items()}
    files = files_of(patterns)
    batch = held_examples(files, info["num_tasks"][split], batch_size)
    for name in instances:
        features |= instance_features(info, name)
    yield from _parsed(files, {**features, **(others or {})}, batch)


class ExampleDataset:
    """A split of the Examples that CrowdAggregator writes, as datasets for training.

    Args:
        patterns: patterns of gzipped TFRecord files.
        num_tasks: N.
        info: of `dataset.json`.
        encode: function from instances to the model's input, in TensorFlow operations; None leaves them unchanged. An
            encoder with `encode_one` (see `InstanceEncoder`) is applied before batching.
        only: mask of the tasks to use, bool [N], at least one; None is all.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        num_tasks: int,
        info: dict[str, Any],
        encode: Callable[[Any], Any] | None = None,
        only: np.ndarray | None = None,
    ):
        self._only = only
        self.files = files_of(patterns)
        self.num_tasks = num_tasks
        self._bytes = _num_bytes(self.files)
        self.num_tokens = None
        self._features = instance_features(info)
        self._encode = encode
        self._encode_one = getattr(encode, "encode_one", None)
        self._ratings = info["classes"] is None
        name, size = ("aggregated_label", 1) if self._ratings else ("posterior", len(info["classes"]))
        self._aggregated = name, tf.io.FixedLenFeature([size], tf.float32)

    def batches(
        self,
        batch_size: int,
        seed: int,
        *,
        shuffle: bool = True,
        inputs: Sequence[str] = ("annotators",),
        targets: np.ndarray | None = None,
    ) -> tf.data.Dataset:
        """Batches for a model with a crowd layer; see `crowdzoo.models.TrainingData`.

        Tasks are numbered in the files' order.

        Returns:
            Batches `(x, y)`: x the instances float32 [B, D] (texts encoded), or a dictionary of them and of `inputs`:
            "annotators" and "labels" int64 [B, M], padded with -1 (ratings float32, padded with NaN), and "tasks" int64
            [B]; y the labels, or the tasks' rows of `targets`.
        """
        kinds = {"annotator_ids": tf.int64, "annotator_labels": tf.float32 if self._ratings else tf.int64}
        ragged = {name: tf.io.RaggedFeature(kind, row_splits_dtype=tf.int64) for name, kind in kinds.items()}
        missing = float("nan") if self._ratings else -1

        def parse(tasks: tf.Tensor, records: tf.Tensor, *encoded: tf.Tensor) -> tuple[Any, tf.Tensor]:
            parsed, instances = self._parsed(records, ragged, encoded)
            annotators, labels = parsed["annotator_ids"].to_tensor(-1), parsed["annotator_labels"].to_tensor(missing)
            x = {"instances": instances, "annotators": annotators, "labels": labels, "tasks": tasks}
            x = {name: x[name] for name in ("instances", *inputs)} if inputs else x["instances"]
            return x, labels if targets is None else _rows(targets, tasks)

        if not shuffle:
            return self._batched(self._rows(), batch_size).map(parse, tf.data.AUTOTUNE).prefetch(2)
        return self._shuffled(batch_size, seed, parse)

    def aggregated(self, batch_size: int, seed: int) -> tf.data.Dataset:
        """Shuffled batches for a model without a crowd layer.

        Returns:
            Batches `(instances float32 [B, D], posterior float32 [B, K])`; for ratings `(instances, estimate [B, 1])`.
        """
        name, target = self._aggregated

        def parse(tasks: tf.Tensor, records: tf.Tensor, *encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            parsed, instances = self._parsed(records, {name: target}, encoded)
            return instances, parsed[name]

        return self._shuffled(batch_size, seed, parse)

    def aggregated_ratings(self) -> np.ndarray:
        """Aggregated rating of each task, float32 [N], in the files' order; for ratings only."""
        name, target = self._aggregated
        parts = _parsed(self.files, {name: target}, self._held(_READ))
        return np.concatenate([part[name] for part in parts])[:, 0]

    def instances(self, batch_size: int = _READ) -> tf.data.Dataset:
        """Batches of instances only, float32 [B, D] or strings [B], not encoded, in the files' order.

        Batches of large instances are smaller.
        """
        records = tf.data.TFRecordDataset(self.files, "GZIP").batch(self._held(batch_size))
        return records.map(lambda batch: parsed_instances(tf.io.parse_example(batch, self._features)))

    def _parsed(self, records: tf.Tensor, features: dict[str, Any], encoded: tuple[tf.Tensor, ...]) -> Any:
        """Features of a batch of records, and its instances as input of the model."""
        if encoded:
            return tf.io.parse_example(records, features), encoded[0]
        parsed = tf.io.parse_example(records, self._features | features)
        instances = parsed_instances(parsed)
        return parsed, instances if self._encode is None else self._encode(instances)

    def _rows(self) -> tf.data.Dataset:
        """The tasks' numbers and their records."""
        records = tf.data.TFRecordDataset(self.files, "GZIP")
        if self._bytes <= _HELD_BYTES:
            records = records.cache()  # decompressed once, not in every epoch
        rows = records.enumerate()
        return rows if self._only is None else rows.filter(lambda task, _: tf.gather(self._only, task))

    def _shuffled(self, batch_size: int, seed: int, parse: Callable[..., Any]) -> tf.data.Dataset:
        """Parsed batches in an order that depends on the seed and the epoch only."""
        rows, epochs = self._rows(), EpochCount()
        # a small buffer is enough: `write_examples` has mixed the records
        buffer = self._held(_SHUFFLED)

        def shuffled(of_epoch: tf.Tensor) -> tf.data.Dataset:
            # seed of this function only: TensorFlow combines both seeds, and cannot compare a tensor with a global seed
            # of 0
            tf.compat.v1.set_random_seed(1)
            return rows.shuffle(buffer, seed=of_epoch, reshuffle_each_iteration=False)

        def seed_of_epoch() -> np.int64:
            return np.int64(np.random.default_rng([seed, epochs.next()]).integers(2**62))

        # `shuffle` counts epochs itself, but in a copy made by Keras, which checkpoints cannot reach
        seeds = tf.data.Dataset.range(1).map(
            lambda _: tf.ensure_shape(tf.numpy_function(seed_of_epoch, [], tf.int64), ())
        )
        batches = self._batched(seeds.flat_map(shuffled), batch_size).map(parse, tf.data.AUTOTUNE).prefetch(2)
        batches.epochs = epochs  # for `replay` and `pinned_to_epochs`
        return batches

    def _held(self, most: int) -> int:
        return held_examples(self.files, self.num_tasks, most)

    def _batched(self, rows: tf.data.Dataset, batch_size: int) -> tf.data.Dataset:
        """Batches of the tasks' numbers and their records, and of encoded instances if each is encoded separately."""
        if (encode := self._encode_one) is not None:

            def encode_each(task: tf.Tensor, record: tf.Tensor) -> tuple[tf.Tensor, ...]:
                return task, record, encode(parsed_instances(tf.io.parse_single_example(record, self._features)))

            rows = rows.map(encode_each, tf.data.AUTOTUNE)
        # the size of files is unknown, and Keras warns when an epoch ends unexpectedly
        num_tasks = self.num_tasks if self._only is None else int(self._only.sum())
        return rows.batch(batch_size).apply(tf.data.experimental.assert_cardinality(-(-num_tasks // batch_size)))


def _parsed(files: list[str], features: dict[str, Any], batch_size: int) -> Iterator[dict[str, np.ndarray]]:
    records = tf.data.TFRecordDataset(files, "GZIP").batch(batch_size)
    return records.map(lambda batch: tf.io.parse_example(batch, features)).as_numpy_iterator()


def _rows(targets: np.ndarray, tasks: tf.Tensor) -> tf.Tensor:
    """Rows of an array that may change between epochs, read in Python when a batch is made."""
    values = tf.numpy_function(lambda rows: targets[rows], [tasks], tf.as_dtype(targets.dtype))
    return tf.ensure_shape(values, (None, *targets.shape[1:]))


def said_of(batch: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Annotations of the tasks of a batch that was read with `SAID`: rows of the batch, annotators, labels."""
    ids, labels = (np.concatenate([*batch[name], np.empty(0, np.int64)]) for name in SAID)
    return np.repeat(np.arange(len(batch["annotator_ids"])), [*map(len, batch["annotator_ids"])]), ids, labels
