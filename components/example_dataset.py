"""tf.data over the pipeline's Examples: instances with their annotations, or with the aggregation's posterior."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

__all__ = ["ExampleDataset"]

_CACHE_BYTES = 256 * 2**20
_SHUFFLED = 10_000


class ExampleDataset:
    """A split of the Examples that CrowdAggregator writes, as datasets for training.

    Args:
        patterns: patterns of gzipped TFRecord files.
        num_tasks: N.
        num_features: D.
        num_classes: K.
    """

    def __init__(self, patterns: Sequence[str], num_tasks: int, num_features: int, num_classes: int):
        # sorted, because the order of records decides about the trained weights
        self.files = sorted(file for pattern in patterns for file in tf.io.gfile.glob(pattern))
        if not self.files:
            raise FileNotFoundError(f"no Examples in {', '.join(patterns)}")
        self._num_tasks = num_tasks
        self._instances = {"instances": tf.io.FixedLenFeature([num_features], tf.float32)}
        self._posterior = {"posterior": tf.io.FixedLenFeature([num_classes], tf.float32)}

    def labelled(self, batch_size: int, seed: int) -> tf.data.Dataset:
        """Shuffled batches for a model with a crowd layer.

        Returns:
            Batches `({"instances": float32 [B, D], "annotators": int64 [B, M]}, labels int64 [B, M])`, padded with -1.
        """
        names = ("annotator_ids", "annotator_labels")
        features = self._instances | {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in names}

        def parse(records: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
            parsed = tf.io.parse_example(records, features)
            annotators, labels = (parsed[name].to_tensor(-1) for name in names)
            return {"instances": parsed["instances"], "annotators": annotators}, labels

        return self._batches(batch_size, seed).map(parse, tf.data.AUTOTUNE).prefetch(2)

    def aggregated(self, batch_size: int, seed: int) -> tf.data.Dataset:
        """Shuffled batches for a model without a crowd layer.

        Returns:
            Batches `(instances float32 [B, D], posterior float32 [B, K])`.
        """
        features = self._instances | self._posterior

        def parse(records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            parsed = tf.io.parse_example(records, features)
            return parsed["instances"], parsed["posterior"]

        return self._batches(batch_size, seed).map(parse, tf.data.AUTOTUNE).prefetch(2)

    def instances(self, batch_size: int = 1024) -> tf.data.Dataset:
        """Batches of instances alone, float32 [B, D], in the files' order."""
        records = tf.data.TFRecordDataset(self.files, "GZIP").batch(batch_size)
        return records.map(lambda batch: tf.io.parse_example(batch, self._instances)["instances"])

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each feature, float64 [D], in one pass.

        Batches are merged as in Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing
        Sample Variances, 1979: no difference of large sums.
        """
        count, mean, squares = 0, np.zeros(1), np.zeros(1)
        for batch in self.instances().as_numpy_iterator():
            rows = batch.astype(np.float64)
            batch_mean = rows.mean(axis=0)
            total = count + len(rows)
            shift = batch_mean - mean
            squares = squares + ((rows - batch_mean) ** 2).sum(axis=0) + shift**2 * (count * len(rows) / total)
            mean = mean + shift * (len(rows) / total)
            count = total
        return mean, squares / count

    def _batches(self, batch_size: int, seed: int) -> tf.data.Dataset:
        records = tf.data.TFRecordDataset(self.files, "GZIP")
        if sum(tf.io.gfile.stat(file).length for file in self.files) <= _CACHE_BYTES:
            records = records.cache()  # unpacking once, not every epoch
        batches = records.shuffle(_SHUFFLED, seed=seed, reshuffle_each_iteration=True).batch(batch_size)
        # files do not say how much they hold, and Keras warns when an epoch ends where it does not expect it
        return batches.apply(tf.data.experimental.assert_cardinality(-(-self._num_tasks // batch_size)))
