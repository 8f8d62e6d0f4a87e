"""Probabilities that the left or the right of two tasks is better, or neither, from their scores."""

from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Config, Tensor
from crowdzoo.checks.constraints import Number, checked


@keras.saving.register_keras_serializable(package="crowdzoo")
class PairProbabilities(keras.layers.Layer):
    """Davidson's model of a comparison, on top of a network that scores both tasks.

    Left, right and equal have odds `exp(d / 2) : exp(-d / 2) : exp(tie)`, d the score of the left minus that of the
    right. `tie` is trained. The outputs are class probabilities of kind "classification" with the classes left, right
    and equal, so that any loss for classes and any crowd layer accepts them.

    Args:
        tie: initial value of the trained tie parameter; 0 makes "equal" as likely as the others for equal scores.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: scores, the left task's first and the right task's second, `[B, 2]`.

    Returns:
        Probabilities of left, right and equal, `[B, 3]`, float32 or wider.

    Raises:
        ConfigError: tie is not a finite number.
        ValueError: an input of the wrong shape.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from crowdzoo.layers import PairProbabilities
        >>> scores = np.array([[2.0, 0.0], [1.0, 1.0]], "float32")  # of the left and the right task, for two pairs
        >>> probabilities = ops.convert_to_numpy(PairProbabilities()(scores))  # left, right, equal
        >>> probabilities.astype("float64").round(2).tolist()
        [[0.67, 0.09, 0.24], [0.33, 0.33, 0.33]]

    Source:
        R. Davidson: On Extending the Bradley-Terry Model to Accommodate Ties in Paired Comparison Experiments. JASA 65,
        1970, equation 2.4; tie is log nu.
    """

    @checked(tie=Number(-100, 100))
    def __init__(self, tie: float = 0.0, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.tie = tie
        self.log_nu: Any = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """Creates the tie parameter.

        Args:
            inputs_shape: shape of the scores.
        """
        if len(inputs_shape) != 2 or inputs_shape[-1] != 2:
            raise ValueError(
                f"PairProbabilities: the input must have shape [batch, 2], the scores of left and right, got "
                f"{tuple(inputs_shape)}"
            )
        start = keras.initializers.Constant(self.tie)
        self.log_nu = self.add_weight(shape=(), initializer=start, name="log_nu", autocast=False)
        super().build(inputs_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """Probabilities; see the class for shapes."""
        scores = ops.cast(inputs, keras.backend.result_type(self.variable_dtype, "float32"))
        half = (scores[:, 0] - scores[:, 1]) / 2
        equal = ops.zeros_like(half) + ops.cast(self.log_nu, half.dtype)
        return ops.softmax(ops.stack([half, -half, equal], axis=-1), axis=-1)

    def get_config(self) -> Config:
        """Every argument of the constructor; Keras would keep NumPy numbers as they are, and cannot save them."""
        return {**super().get_config(), "tie": self.tie}
