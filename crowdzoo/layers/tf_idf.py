"""Texts as TF-IDF vectors: word counts, in which rare words weigh more."""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import Number, checked
from crowdzoo.errors import DataError
from crowdzoo.layers.ranges import CODES


@keras.saving.register_keras_serializable(package="crowdzoo")
class TfIdf(keras.layers.Layer):
    """Counts of word ids times their weights, scaled to rows of length one.

    The weight of a word is `1 + log((1 + N) / (1 + texts with the word))` (`adapt`), 1 before `adapt`. Padding and the
    unknown word (0 and 1) are ignored. The weights are saved with the model and not trained. Computation is in float32
    (or wider), also under mixed precision.

    Args:
        num_words: V, number of ids, padding and the unknown word included; at least 3.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: word ids int `[B, T]`, 0 is padding, 1 the unknown word.

    Returns:
        `[B, V]`, rows of length one; zeros for a text without known words.

    Raises:
        ValueError: num_words is not an integer of at least 3.

    Source:
        G. Salton, C. Buckley: Term-weighting approaches in automatic text retrieval. IP&M 1988; smoothed as in
        scikit-learn.
    """

    @checked(num_words=Number(3, CODES, whole=True))
    def __init__(self, num_words: int, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.num_words = num_words

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the weights `[V]`."""
        self.weight = self.add_weight(
            shape=(self.num_words,), initializer="ones", name="weight", trainable=False, autocast=False
        )
        super().build(input_shape)

    def adapt(self, ids: np.ndarray) -> None:
        """Computes the weights from texts.

        Args:
            ids: int `[N, T]`, N at least 1.

        Raises:
            DataError: the wrong shape, no rows, or ids that are not 0 to V - 1.
        """
        self.adapt_batches([ids])

    def adapt_batches(self, batches: Iterable[np.ndarray]) -> None:
        """Computes the weights from batches of texts.

        Args:
            batches: int `[n, T]` each, n at least 1; T may differ.

        Raises:
            DataError: the wrong shape, no rows, or ids that are not 0 to V - 1.
        """
        num_texts, texts = 0, np.zeros(self.num_words, np.int64)
        for ids in map(np.asarray, batches):
            if ids.ndim != 2 or len(ids) == 0 or ids.dtype.kind not in "iu":
                raise DataError(f"word ids must be integers of shape [texts, words], got {ids.dtype} {ids.shape}")
            if ids.size and not 0 <= ids.min() <= ids.max() < self.num_words:
                raise DataError(f"word ids must be 0 to {self.num_words - 1}, got {ids.min()} to {ids.max()}")
            rows = np.repeat(np.arange(len(ids)), ids.shape[1])
            pairs = np.unique(rows * self.num_words + ids.ravel())
            texts += np.bincount(pairs % self.num_words, minlength=self.num_words)
            num_texts += len(ids)
        if not self.built:
            self.build((None, None))
        self.weight.assign(1 + np.log((1 + num_texts) / (1 + texts)))

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        dtype = keras.backend.result_type(self.variable_dtype, "float32")
        ids = ops.cast(inputs, "int32")
        batch = ops.shape(ids)[0]
        cells = ids + self.num_words * ops.arange(batch, dtype="int32")[:, None]
        known = ops.cast(ids > 1, dtype)
        counts = ops.segment_sum(ops.reshape(known, (-1,)), ops.reshape(cells, (-1,)), batch * self.num_words)
        vector = ops.reshape(counts, (-1, self.num_words)) * ops.cast(self.weight, dtype)
        length = ops.sqrt(ops.sum(ops.square(vector), axis=1, keepdims=True))
        return vector / ops.maximum(length, 1e-12)
