"""Converts the standardised output of a network to the unit of the labels."""

from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Config, Tensor
from crowdzoo.checks.constraints import CENTER, UNIT, checked


@keras.saving.register_keras_serializable(package="crowdzoo")
class LabelUnit(keras.layers.Layer):
    """`center + unit * x`: undoes the standardisation of labels, so that a model predicts in their unit.

    Both numbers are arguments, not weights: they are saved with the model, and nothing trains them. Computation is in
    float32 (or wider), also under mixed precision.

    Args:
        center: mean of the labels, in their unit.
        unit: their standard deviation, above 0.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: numbers of any shape.

    Returns:
        The numbers in the labels' unit.

    Raises:
        ValueError: center is not finite, or unit not above 0 and finite.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import LabelUnit
        >>> np.asarray(LabelUnit(center=3.0, unit=0.5)(np.array([[0.0], [2.0]]))).tolist()
        [[3.0], [4.0]]
    """

    @checked(center=CENTER, unit=UNIT)
    def __init__(self, center: float = 0.0, unit: float = 1.0, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.center, self.unit = float(center), float(unit)

    def call(self, inputs: Tensor) -> Tensor:
        """See the class."""
        return self.center + self.unit * ops.cast(inputs, keras.backend.result_type(self.variable_dtype, "float32"))

    def get_config(self) -> Config:
        """Every argument of the constructor; Keras would keep NumPy numbers as they are, and cannot save them."""
        return {**super().get_config(), "center": self.center, "unit": self.unit}
