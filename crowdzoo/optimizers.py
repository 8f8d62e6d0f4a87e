"""Adam for weights of which a batch uses few rows; it reads and writes only these rows."""

from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor, by_row, put_rows, sparse_gradient, take_rows
from crowdzoo.checks.constraints import Number, checked
from crowdzoo.layers.ranges import DROPOUT, LEARNING_RATE

__all__ = ["LazyAdam"]


def __dir__() -> list[str]:
    return __all__


EPSILON = Number(0, 1, above=True)


@keras.saving.register_keras_serializable(package="crowdzoo")
class LazyAdam(keras.optimizers.Adam):
    """Adam whose cost per step depends on the batch and not on the number of annotators.

    Keras' Adam updates all R rows of the annotators' weights in each step, though a batch has labels from few
    annotators. `LazyAdam` updates the rows `r` that the batch used, with t the number of steps so far:

        m_r = beta_1 m_r + (1 - beta_1) g_r
        v_r = beta_2 v_r + (1 - beta_2) g_r^2
        w_r = w_r - learning_rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m_r / (sqrt(v_r) + epsilon)

    All other rows and their moments are unchanged. Weights that are not gathered by row (the base's) get exactly Adam's
    step.

    With Adam, momentum keeps moving a row for some ten steps after its last label, and its moments fade between labels.
    If every annotator is in every batch, the two optimizers are the same. An annotator who occurs once in a hundred
    steps or more moves by 10 to 30 learning rates per label with Adam, and by 2 to 6 with `LazyAdam`.

    | backend | cost of a step |
    |---|---|
    | TensorFlow, PyTorch | the rows of the batch, for weights gathered by `crowdzoo.backend.take_rows` |
    | JAX | all R rows: its gradients are dense, and a dense gradient gets Adam's own step |

    It works with `jit_compile`, `tf.distribute`, learning rate schedules, clipping (by norms of a row's gradient,
    summed over its labels) and mixed precision. Prefer "mixed_bfloat16": "mixed_float16" needs
    `keras.optimizers.LossScaleOptimizer`, which processes all rows on TensorFlow and does not support sparse gradients
    on PyTorch.

    Args:
        learning_rate: a float, or a `keras.optimizers.schedules.LearningRateSchedule`.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the root of the second moment.
        name: the optimizer's name.
        **kwargs: as for `keras.optimizers.Adam`: `clipnorm`, `clipvalue`, `global_clipnorm`.

    Raises:
        ValueError: `amsgrad`, `gradient_accumulation_steps`, `loss_scale_factor`, `use_ema` or `weight_decay` is set,
            each of which would update every row in every step.

    Example:
        >>> from crowdzoo.layers import ConfusionMatrices
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> from crowdzoo.optimizers import LazyAdam
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), ConfusionMatrices(num_annotators=5))
        >>> model.compile(LazyAdam(learning_rate=1e-3))
        >>> type(model.optimizer).__name__
        'LazyAdam'

    Source:
        D. Kingma, J. Ba: Adam: A Method for Stochastic Optimization. ICLR 2015, Algorithm 1 in the order of section 2.
        The lazy form is common for embeddings (TensorFlow Addons' LazyAdam, PyTorch's SparseAdam).
    """

    @checked(beta_1=DROPOUT, beta_2=DROPOUT, epsilon=EPSILON)
    def __init__(
        self,
        learning_rate: Tensor = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        name: str = "lazy_adam",
        **kwargs: Any,
    ):
        # Keras' own config has these as well, at values that switch them off
        for setting in ("amsgrad", "gradient_accumulation_steps", "loss_scale_factor", "use_ema", "weight_decay"):
            if kwargs.get(setting):
                raise ValueError(
                    f"LazyAdam: {setting}={kwargs[setting]!r} would update the rows of all annotators in every "
                    "step; leave it out, or use keras.optimizers.Adam"
                )
        schedules = (keras.optimizers.schedules.LearningRateSchedule, keras.Variable)
        if not (callable(learning_rate) or isinstance(learning_rate, schedules)):
            learning_rate = LEARNING_RATE.checked("LazyAdam", "learning_rate", learning_rate)
        super().__init__(
            learning_rate=learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, name=name, **kwargs
        )

    def build(self, variables: list[keras.Variable]) -> None:
        """Creates the moments.

        Args:
            variables: the weights that will be trained.
        """
        super().build(variables)
        for variable in variables:
            variable.sparse_gradient = True  # see take_rows

    def update_step(self, gradient: Tensor, variable: keras.Variable, learning_rate: Tensor) -> None:
        """Updates one weight.

        Args:
            gradient: gradient of the weight, dense or of single rows (`tf.IndexedSlices`, on PyTorch a sparse tensor).
            variable: the weight.
            learning_rate: learning rate of this step.
        """
        rows, change = by_row(gradient)
        if rows is None:
            return super().update_step(gradient, variable, learning_rate)
        index = self._get_variable_index(variable)
        momentum, velocity = self._momentums[index], self._velocities[index]
        dtype = variable.dtype
        change = ops.cast(change, dtype)
        step = ops.cast(self.iterations + 1, dtype)
        correction = ops.sqrt(1 - ops.power(ops.cast(self.beta_2, dtype), step))
        correction = correction / (1 - ops.power(ops.cast(self.beta_1, dtype), step))
        m = self.beta_1 * take_rows(momentum, rows) + (1 - self.beta_1) * change
        v = self.beta_2 * take_rows(velocity, rows) + (1 - self.beta_2) * ops.square(change)
        rate = ops.cast(learning_rate, dtype) * correction
        put_rows(momentum, rows, m)
        put_rows(velocity, rows, v)
        put_rows(variable, rows, rate * m / (ops.sqrt(v) + self.epsilon), subtract=True)

    def _clip_gradients(self, grads: list[Tensor]) -> list[Any]:
        """Clips gradients of whole rows, not of single labels."""
        if not (self.clipnorm or self.clipvalue or self.global_clipnorm):
            return grads
        parts = [by_row(gradient) for gradient in grads]
        clipped = super()._clip_gradients([change for _, change in parts])
        return [
            change if rows is None else sparse_gradient(rows, change, gradient)
            for (rows, _), change, gradient in zip(parts, clipped, grads, strict=True)
        ]
