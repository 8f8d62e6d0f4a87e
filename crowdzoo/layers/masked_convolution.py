"""Convolution over the words of a text that ignores padding."""

from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import checked
from crowdzoo.layers.ranges import UNITS


@keras.saving.register_keras_serializable(package="crowdzoo")
class MaskedConvolution(keras.layers.Layer):
    """ReLU convolution and max pooling over words; padding at the end of a text changes nothing.

    Values beyond the end of a text are zero before and after the convolution. As ReLU is never negative, padding never
    wins a maximum. Windows start at the first word, and the last one may be short.

    Args:
        filters: F, number of filters.
        width: words per filter; odd, so that each filter has a middle word.
        pool: words per pooling window; 1 does not pool.
        **kwargs: arguments of `keras.layers.Layer`.

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
        """Creates the filters."""
        self.convolution.build(inputs_shape)
        super().build(inputs_shape)

    def call(self, inputs: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """See the class."""
        places = ops.cast(places, inputs.dtype)
        values = self.convolution(inputs * places[..., None]) * places[..., None]
        return self._largest(values), self._largest(places[..., None])[..., 0]

    def _largest(self, values: Any) -> Any:
        """Maximum of every window; Keras' own pooling would put some padding in front, depending on the length."""
        if self.pool == 1:
            return values
        values = ops.pad(values, ((0, 0), (0, self.pool - 1), (0, 0)))
        return ops.max_pool(values, self.pool, strides=self.pool, padding="valid")
