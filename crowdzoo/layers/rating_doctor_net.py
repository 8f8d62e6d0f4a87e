"""Doctor Net for ratings: one linear head an annotator, and the weighted mean of all heads as the truth."""

from dataclasses import replace
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from crowdzoo.checks.constraints import Choice, checked
from crowdzoo.layers.annotator_heads import LOWEST, AnnotatorHeads
from crowdzoo.layers.ranges import CENTER, PHASE, UNIT
from crowdzoo.layers.rating_squared_error import RatingSquaredError

WEIGHTINGS = ("uniform", "ratings", "learned")


@keras.saving.register_keras_serializable(package="crowdzoo")
class MeanRatingError(keras.losses.Loss):
    """Squared error between a task's mean rating and the weighted mean of its annotators' heads.

    Call arguments:
        y_true: ratings `[B, M]`, NaN where there is none.
        y_pred: answers and logarithms of the weights, side by side: `[B, 2 M]`.

    Returns:
        A number a task, `[B]`, in squares of the ratings' deviation, 0 where nobody rated; their mean is the loss.

    Args:
        unit: standard deviation of the ratings, above 0.
        name: the loss' name.
        reduction: Keras' own.
        dtype: dtype of the computation.
    """

    def __init__(
        self, unit: float = 1.0, name: str | None = None, reduction: str = "sum_over_batch_size", dtype: Any = None
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.unit = float(unit)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """See the class."""
        ratings = ops.cast(y_true, y_pred.dtype)
        there = ops.logical_not(ops.isnan(ratings))
        answers, logs = ops.split(y_pred, 2, axis=1)
        weights = ops.softmax(ops.where(there, logs, LOWEST), axis=1)
        number = ops.maximum(ops.sum(ops.cast(there, y_pred.dtype), axis=1), 1)
        mean = ops.sum(ops.where(there, ratings, ops.zeros_like(ratings)), axis=1) / number
        rated = ops.any(there, axis=1)
        error = (mean - ops.sum(weights * ops.where(there, answers, ops.zeros_like(answers)), axis=1)) / self.unit
        return ops.where(rated, ops.square(error), ops.zeros_like(error))

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {**super().get_config(), "unit": self.unit}


@keras.saving.register_keras_serializable(package="crowdzoo")
class RatingDoctorNet(AnnotatorHeads):
    """A linear head for every annotator on a shared hidden layer; the truth is the heads' weighted mean.

    With h the last hidden layer's output, r's rating is `h w_r + b_r`, trained on r's own ratings. The truth is
    estimated as `sum_r v_r (h w_r + b_r)` over all annotators who rated anything in training, with weights v

    | weighting | v_r |
    |-----------|-----|
    | uniform   | equal: Doctor Net |
    | ratings   | proportional to r's number of ratings: heads that saw more count more |
    | learned   | learnt in a second phase: so that the mean of a task's raters' heads meets the task's mean rating |

    The layer stands on a base without an output of its own, such as `FeatureClassifier(num_features, None)`, and cannot
    be taken off. A head looks at the instance and knows no truth: there are no biases and no posteriors.

    The second phase has a fresh optimizer of the same settings, the base and the heads stand still in it, and dropout
    stays on. The phases' losses stand one after the other in the history and cannot be compared.

    Args:
        num_annotators: R, number of annotators.
        weighting: "uniform", "ratings" or "learned".
        weight_epochs: epochs of the second phase; None is as many as `fit` is given for the first.
        center: mean of the ratings, in their unit; see `crowdzoo.models.rating_unit`.
        unit: standard deviation of the ratings, above 0.
        **kwargs: `keras.layers.Layer`'s own (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: the last hidden layer's output `[B, D]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators. What comes out at a padded
            place means nothing.

    Returns:
        Ratings `[B, M]` (`[B, R]`), in the labels' unit.

    Raises:
        ValueError: impossible values, or an input of the wrong shape.

    Source:
        M. Guan, V. Gulshan, A. Dai, G. Hinton: Who Said What: Modeling Individual Labelers Improves Classification.
        AAAI 2018, carried over to ratings by us.

    Needs:
        Instances, and a base that ends in a hidden layer; annotators with many ratings each.
    """

    kinds: ClassVar[tuple[str, ...]] = ("regression",)
    no_confusions = "heads look at the instance and know no truth; see annotator_weights()"

    beyond_descent: ClassVar[str | None] = (
        "fit notes who gave ratings, whose heads are the truth, and trains the weights in a second phase"
    )

    @checked(weighting=Choice(WEIGHTINGS), weight_epochs=replace(PHASE, optional=True), center=CENTER, unit=UNIT)
    def __init__(
        self,
        num_annotators: int,
        weighting: str = "uniform",
        weight_epochs: int | None = None,
        center: float = 0.0,
        unit: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, **kwargs)
        self.weighting = weighting
        self.weight_epochs = weight_epochs
        self.center, self.unit = float(center), float(unit)
        self.learns_weights = weighting == "learned"

    # === What a layer says ===

    def call(self, inputs: Any, annotators: Any = None, training: bool = False) -> Any:
        """Ratings of the heads; see the class."""
        self.check_training(training)
        self._check_hidden(inputs.shape)
        hidden, kernel, bias = self._cast(inputs), self._of(self.kernel, annotators), self._of(self.bias, annotators)
        if annotators is None:
            values = ops.matmul(hidden, ops.transpose(kernel))
        else:
            values = ops.sum(hidden[:, None] * kernel, axis=-1)
        return self.center + self.unit * (values + bias)

    def with_labels(self, inputs: Any, annotators: Any, labels: Any, features: Any = None) -> Any:
        """What the second phase looks at: answers and logarithms of weights, `[B, 2 M]`."""
        answers = self(inputs, annotators=annotators)
        if self.log_weight is None:
            raise ValueError("RatingDoctorNet: heads know no truth, so ratings say nothing about it")
        return ops.concatenate([answers, self._of(self.log_weight, annotators)], axis=1)

    def truth(self, bottleneck: Any) -> Any:
        """Weighted mean of the heads.

        Args:
            bottleneck: the last hidden layer's output `[B, D]`.

        Returns:
            Ratings `[B, 1]`, in the labels' unit.
        """
        # linear heads: the mean of their answers is the answer of their mean
        weights = self._weights()
        kernel = ops.sum(weights[:, None] * self._cast(self.kernel), axis=0)
        bias = ops.sum(weights * self._cast(self.bias))
        return self.center + self.unit * (ops.matmul(self._cast(bottleneck), kernel[:, None]) + bias)

    # === How a model is trained ===

    def default_loss(self) -> keras.losses.Loss:
        """Squared error of the heads' answers."""
        return RatingSquaredError(self.unit)

    weight_inputs: ClassVar[tuple[str, ...]] = ("annotators", "labels")  # of the second phase

    def weight_loss(self) -> keras.losses.Loss:
        """The loss of the second phase."""
        return MeanRatingError(self.unit)

    def count_labels(self, counts: np.ndarray) -> None:
        """Adds to the ratings that each annotator gave in training, int `[R]`."""
        self.seen.assign(ops.convert_to_numpy(self.seen) + counts.astype("float32"))

    def _log_weights(self, seen: Any) -> Any:
        return ops.log(ops.maximum(seen, 1)) if self.weighting == "ratings" else super()._log_weights(seen)
