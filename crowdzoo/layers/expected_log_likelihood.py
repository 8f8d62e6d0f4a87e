"""What the M-step of a network inside EM minimises."""

from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.losses import MaskedCrowdCrossentropy


@keras.saving.register_keras_serializable(package="crowdzoo")
class ExpectedLogLikelihood(keras.losses.Loss):
    """What an M-step minimises: `-1/B sum_i sum_k q_i(k) log p(truth k, labels | x_i)`.

    Validation and `evaluate` compare answers with labels instead: then it is `MaskedCrowdCrossentropy`, the mean of
    `-log P(label | x)`, which is not comparable with the loss of the training.

    Call arguments:
        y_true: posteriors q `[B, K]` of the last E-step, rows sum to one (sequences `[B, T, K]`, rows of zeros where
            nobody labelled); or labels int `[B, M]` (`[B, T, M]`), -1 where missing.
        y_pred: log-joints, shaped as the posteriors (`CrowdLayer.log_joint`); or log-probabilities of the labels,
            `[B, M, K]` (`[B, T, M, K]`).

    Returns:
        A number a task (of sequences the sum over its tokens, of masks the mean over their pixels), `[B]`, their mean
        is the loss; for labels their mean.
    """

    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> Any:
        """The mean; see the class."""
        if len(y_true.shape) < len(y_pred.shape):
            return MaskedCrowdCrossentropy()(y_true, y_pred, sample_weight)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """See the class."""
        costs = -ops.sum(ops.cast(y_true, y_pred.dtype) * y_pred, axis=-1)
        if len(costs.shape) == 3:
            return ops.mean(costs, axis=(1, 2))
        return costs if len(costs.shape) == 1 else ops.sum(costs, axis=-1)
