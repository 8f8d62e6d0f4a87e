"""Convolution over the words of a text, as if padding were not there."""

from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import checked
from crowdzoo.layers.ranges import UNITS


@keras.saving.register_keras_serializable(package="crowdzoo")
class MaskedConvolution(keras.layers.Layer):
    """ReLU convolution and maximum over windows of words; padding at the end of a text changes nothing.

    Output beyond a text's end is zero, before the convolution and after it. As ReLU gives nothing below zero, such a
    place never wins a maximum. Windows begin at the first word, and the last one may be short.

    Args:
        filters: F, numbers out for every place.
        width: words that a filter looks at, odd, so that none is in the middle of two.
        pool: words in a window of the maximum; 1 takes none.
        **kwargs: `keras.layers.Layer`'s own.

    Call arguments:
        inputs: `[B, T, D]`.
        places: `[B, T]`, 1 where a text has a word and 0 beyond its end, float.

    Returns:
        `[B, T', F]` and `[B, T']` with T' = ceil(T / pool).

    Raises:
        ValueError: sizes below 1, or an even width.
    """

    @checked(filters=UNITS, width=UNITS, pool=UNITS)
    def __init__(self, filters: int, width: int, pool: int = 1, **kwargs: Any):
        super().__init__(**kwargs)
        if width % 2 == 0:
            raise ValueError(f"MaskedConvolution: width must be odd, got {width!r}")
        self.filters, self.width, self.pool = filters, width, pool
        self.convolution = keras.layers.Conv1D(self.filters, self.width, padding="same", activation="relu")

    def build(self, inputs_shape: tuple[int | None, ...], places_shape: tuple[int | None, ...] | None = None) -> None:
        """Makes the filters."""
        self.convolution.build(inputs_shape)
        super().build(inputs_shape)

    def call(self, inputs: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """See the class."""
        places = ops.cast(places, inputs.dtype)
        values = self.convolution(inputs * places[..., None]) * places[..., None]
        return self._largest(values), self._largest(places[..., None])[..., 0]

    def _largest(self, values: Any) -> Any:
        """Maximum of every window; Keras' own padding would put some of it in front, depending on the length."""
        if self.pool == 1:
            return values
        values = ops.pad(values, ((0, 0), (0, self.pool - 1), (0, 0)))
        return ops.max_pool(values, self.pool, strides=self.pool, padding="valid")
