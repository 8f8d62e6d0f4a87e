"""Squared error of ratings, in units of their own spread."""

from typing import Any

import keras

from crowdzoo.backend import Config, Tensor
from crowdzoo.checks.constraints import checked
from crowdzoo.layers.ranges import UNIT
from crowdzoo.losses import MaskedCrowdMeanSquaredError


@keras.saving.register_keras_serializable(package="crowdzoo")
class RatingSquaredError(MaskedCrowdMeanSquaredError):
    """`MaskedCrowdMeanSquaredError` divided by the square of the ratings' unit.

    So stars from 0 to 10 and shares from 0 to 1 train alike: gradients keep away from Adam's epsilon. The loss reads as
    the share of the ratings' variance that is left unexplained.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import RatingSquaredError
        >>> loss = RatingSquaredError(unit=2.0)
        >>> round(float(loss(np.array([[4.0, np.nan]]), np.array([[3.0, 9.0]]))), 3)
        0.25

    Args:
        unit: standard deviation of the ratings, above 0, in the labels' unit.
        name: the loss' name.
        dtype: dtype of the computation, at least float32.

    Call arguments:
        y_true: numbers, NaN where missing: `[B, R]`, `[B, M]`, or targets `[B, 1]`.
        y_pred: answers or estimates, same shape.
        sample_weight: `[B]` or `y_true`'s shape.

    Returns:
        A scalar without unit.

    Raises:
        ValueError: unit is not above 0 and finite.
    """

    @checked(unit=UNIT)
    def __init__(self, unit: float = 1.0, name: str | None = None, dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        self.unit = float(unit)

    def costs(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
        """See `MaskedCrowdMeanSquaredError.costs`."""
        # divided before it is squared: the square of a small unit may be no float32 number
        return super().costs(y_true / self.unit, y_pred / self.unit)

    def get_config(self) -> Config:
        """Every argument of the constructor."""
        return {**super().get_config(), "unit": self.unit}
