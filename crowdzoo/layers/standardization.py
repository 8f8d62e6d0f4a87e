"""Standardises features with statistics that are saved with the model."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Config, Tensor
from crowdzoo.errors import DataError


class Moments:
    """Mean and variance of numbers that arrive in parts, in float64 (Chan, Golub, LeVeque: Updating formulae, 1979).

    Attributes:
        rows: number of rows.
        mean: of each column, `[...]`.
        variance: of each column, `[...]`.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.mean = self.variance = np.float64(0.0)

    def add(self, values: np.ndarray) -> None:
        """Adds rows `[N, ...]`, at least one."""
        values = values.astype(np.float64)
        share = len(values) / (self.rows + len(values))
        shift = values.mean(axis=0) - self.mean
        self.variance = (1 - share) * (self.variance + share * shift**2) + share * values.var(axis=0)
        self.mean = self.mean + share * shift
        self.rows += len(values)


@keras.saving.register_keras_serializable(package="crowdzoo")
class Standardization(keras.layers.Layer):
    """`(x - mean) / sqrt(variance)` for every feature; a feature that never varies is only centred.

    `keras.layers.Normalization` divides a constant feature by 1e-7, so that its first new value dominates all other
    features; hence this layer.

    The statistics are weights that are not trained: they are saved with the model and loaded with it. Before they are
    known, mean is 0 and variance 1. Computation is in float32 (or wider), also under mixed precision.

    Args:
        mean: one number per feature, or None to compute it later (`adapt`).
        variance: one number >= 0 per feature, or None to compute it later.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: features `[..., D]`.

    Returns:
        Standardised features `[..., D]`.

    Raises:
        ValueError: only one of mean and variance is given, or they differ in length.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import Standardization
        >>> layer = Standardization()
        >>> layer.adapt(np.array([[1.0, 5.0], [3.0, 5.0]]))
        >>> np.asarray(layer(np.array([[3.0, 5.0]]))).tolist()
        [[1.0, 0.0]]
    """

    def __init__(self, mean: Sequence[float] | None = None, variance: Sequence[float] | None = None, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        if (mean is None) != (variance is None):
            raise ValueError("Standardization: give both mean and variance, or neither")
        self.initial_mean = None if mean is None else [float(value) for value in mean]
        self.initial_variance = None if variance is None else [float(value) for value in variance]
        if self.initial_mean is not None and len(self.initial_mean) != len(self.initial_variance or ()):
            raise ValueError("Standardization: mean and variance must have the same length")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the two weights `[D]`."""
        features = input_shape[-1]
        if self.initial_mean is not None and len(self.initial_mean) != features:
            raise ValueError(f"Standardization: statistics of {len(self.initial_mean)} features, input has {features}")
        # a variance of 1e5 is infinite in float16: never cast
        fixed: dict[str, Any] = {"shape": (features,), "trainable": False, "autocast": False}
        self.mean = self.add_weight(initializer="zeros", name="mean", **fixed)
        self.variance = self.add_weight(initializer="ones", name="variance", **fixed)
        if self.initial_mean is not None:
            self.mean.assign(np.asarray(self.initial_mean))
            self.variance.assign(np.asarray(self.initial_variance))
        super().build(input_shape)

    def adapt(self, x: np.ndarray) -> None:
        """Computes mean and variance of data, in float64.

        Args:
            x: features `[N, D]`, N at least 1, all finite.

        Raises:
            DataError: wrong rank, no rows, or a value that is not finite.
        """
        self.adapt_batches([x])

    def adapt_batches(self, batches: Iterable[np.ndarray]) -> None:
        """Computes mean and variance of batches of data, in one pass.

        Parts are merged as in Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample
        Variances, 1979: no difference of large sums.

        Args:
            batches: features `[n, D]` each, n at least 1, all finite.

        Raises:
            DataError: wrong rank, no rows, or a value that is not finite.
        """
        moments = Moments()
        for x in map(np.asarray, batches):
            self._check(x, moments.rows)
            moments.add(x)
        self.mean.assign(moments.mean)
        self.variance.assign(moments.variance)

    def _check(self, x: np.ndarray, before: int) -> None:
        if x.ndim != 2 or len(x) == 0:
            raise DataError(f"features must have shape [rows, features] with at least one row, got {x.shape}")
        bad = np.argwhere(~np.isfinite(x))
        if len(bad):
            row, column = bad[0]
            raise DataError(
                f"features must be finite numbers: row {before + row}, feature {column} is {x[row, column]} "
                f"({len(bad):,} such values in all); fill or drop them first"
            )
        if not self.built:
            self.build((None, x.shape[1]))
        if x.shape[1] != self.mean.shape[0]:
            raise DataError(f"the model takes {self.mean.shape[0]} features, the data have {x.shape[1]}")

    def call(self, inputs: Tensor) -> Tensor:
        """Standardises the inputs; see the class."""
        dtype = keras.backend.result_type(self.variable_dtype, "float32")
        x, mean, variance = (ops.cast(value, dtype) for value in (inputs, self.mean, self.variance))
        # rounding leaves a constant feature a variance near 0, not 0: compare with the size of its values
        constant = variance <= 1e-10 * ops.maximum(ops.square(mean), 1e-10)
        return (x - mean) / ops.sqrt(ops.where(constant, ops.ones_like(variance), variance))

    def get_config(self) -> Config:
        """Every argument of the constructor."""
        return {**super().get_config(), "mean": self.initial_mean, "variance": self.initial_variance}
