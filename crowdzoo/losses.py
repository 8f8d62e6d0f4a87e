"""Losses for labels from many annotators, which ignore missing labels.

All of them divide by the number of **observed** labels of the batch. (The authors' code averages over all cells, so
that its loss shrinks with every annotator without labels.)
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Config, Shape, Tensor, over_all_replicas
from crowdzoo.checks.constraints import UNIT, checked

__all__ = [
    "MaskedCrossentropy",
    "MaskedCrowdCrossentropy",
    "MaskedCrowdEvidence",
    "MaskedCrowdMeanSquaredError",
    "MaskedMean",
    "RatingSquaredError",
]


def __dir__() -> list[str]:
    return __all__


class MaskedMean(keras.losses.Loss):
    """Mean over the observed labels; 0 with gradient 0 for a batch without labels.

    Example:
        >>> from keras import ops
        >>> from crowdzoo.losses import MaskedMean
        >>> class MaskedAbsoluteError(MaskedMean):
        ...     def costs(self, y_true, y_pred):
        ...         observed = ops.logical_not(ops.isnan(y_true))
        ...         return ops.where(observed, ops.abs(y_true - y_pred), 0.0), observed
        >>> round(float(MaskedAbsoluteError()([[1.0, float("nan")]], [[3.0, 5.0]])), 2)  # the second label is missing
        2.0
    """

    def __init__(self, name: str | None = None, dtype: Any = None):
        super().__init__(name=name, reduction="sum_over_batch_size", dtype=dtype)

    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> Any:
        """Computes the mean; see the class."""
        # Keras' own reduction would divide by the number of cells. A mask on y_pred is ignored.
        with keras.name_scope(self.name):
            y_pred = ops.convert_to_tensor(y_pred)
            y_pred = ops.cast(y_pred, keras.backend.result_type(y_pred.dtype, self.dtype, "float32"))
            costs, observed = self.costs(ops.convert_to_tensor(y_true), y_pred)
            if sample_weight is not None:
                weight = ops.cast(ops.convert_to_tensor(sample_weight), costs.dtype)
                while len(weight.shape) < len(costs.shape):
                    weight = ops.expand_dims(weight, axis=-1)
                costs = costs * weight
            count = over_all_replicas(ops.sum(ops.cast(observed, costs.dtype)))
            return ops.sum(costs) / ops.maximum(count, 1)

    def costs(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
        """Cost of every cell, 0 where the label is missing, and a mask of labelled cells (bool); same shapes."""
        raise NotImplementedError

    def get_config(self) -> Config:
        """Every argument of the constructor."""
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="crowdzoo")
class MaskedCrowdCrossentropy(MaskedMean):
    """Softmax cross-entropy of the annotators' labels, averaged over the observed ones.

    For classification and sequences, in the dense and the sparse form: there is one integer label for each distribution
    of the crowd layer. With S the observed (task, annotator) pairs,
    `loss = -1/|S| sum_(i,r in S) log softmax(a_ir)[y_ir]`.

    Args:
        name: the loss' name.
        dtype: dtype of the computation, at least float32.

    Call arguments:
        y_true: labels 0..K-1, negative where missing: `[B, R]`, sequences
            `[B, T, R]`, in the sparse form `[B, M]` and `[B, T, M]`.
        y_pred: logits, `y_true`'s shape and K.
        sample_weight: `[B]`, or any leading axes of `y_true`; weights the labels' costs, but not the number of labels.

    Returns:
        A scalar. A label of K or more makes it NaN on every backend (`CrowdModel.fit` rejects it beforehand).

    Example:
        >>> import numpy as np
        >>> from crowdzoo.losses import MaskedCrowdCrossentropy
        >>> labels = np.array([[0, -1], [1, 1]])  # two tasks, two annotators; -1: no label
        >>> logits = np.array([[[2.0, 0.0], [0.0, 2.0]], [[0.0, 2.0], [0.0, 2.0]]], "float32")
        >>> round(float(MaskedCrowdCrossentropy()(labels, logits)), 3)
        0.127

    Source:
        F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section 4; the mean is over the
        observed labels.
    """

    def costs(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
        """See `MaskedMean.costs`."""
        if not same_shape(y_true.shape, y_pred.shape[:-1]):
            raise ValueError(
                f"{type(self).__name__}: labels must have the predictions' shape without the last axis (classes), "
                f"got labels {tuple(y_true.shape)} and predictions {tuple(y_pred.shape)}"
            )
        classes = y_pred.shape[-1]
        labels = ops.cast(y_true, "int32")
        observed = labels >= 0
        # one_hot of -1 is a row of zeros: no cost and no gradient, without a division or a gather
        picked = ops.one_hot(ops.minimum(labels, classes - 1), classes, dtype=y_pred.dtype)
        costs = -ops.sum(picked * self.log_probabilities(y_pred), axis=-1)
        # backends differ for labels out of range (error, garbage, silence): NaN on all of them
        return ops.where(labels >= classes, float("nan"), costs), observed

    def log_probabilities(self, y_pred: Tensor) -> Tensor:
        """Log-probabilities of the labels from logits; same shape."""
        return ops.log_softmax(y_pred, axis=-1)


@keras.saving.register_keras_serializable(package="crowdzoo")
class MaskedCrowdEvidence(MaskedCrowdCrossentropy):
    """`MaskedCrowdCrossentropy` that also accepts answers as distributions over the classes.

    With s the answer of annotator r on task i, `loss = -1/|S| sum_(i,r in S) log sum_l s_ir(l) softmax(a_ir)[l]`: an
    answer is evidence about the label that the annotator has in mind. A certain answer costs the same as its label.

    Args:
        name: the loss' name.
        dtype: dtype of the computation, at least float32.

    Call arguments:
        y_true: labels as in `MaskedCrowdCrossentropy`; or answers `[B, W, K]`, rows sum to one, or rows of zeros where
            missing. W may exceed the M of `y_pred`; the rest is ignored.
        y_pred: logits `[B, M, K]`.
        sample_weight: as in `MaskedCrowdCrossentropy`.

    Returns:
        A scalar, nats.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.losses import MaskedCrowdEvidence
        >>> answers = np.array([[[0.9, 0.1], [0.0, 0.0]]], "float32")  # the second annotator did not answer
        >>> logits = np.array([[[2.0, 0.0], [0.0, 2.0]]], "float32")
        >>> round(float(MaskedCrowdEvidence()(answers, logits)), 3)
        0.217
    """

    def costs(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
        """See `MaskedMean.costs`."""
        if len(y_true.shape) < len(y_pred.shape):
            return super().costs(y_true, y_pred)
        soft_labels = ops.cast(y_true[:, : ops.shape(y_pred)[1]], y_pred.dtype)
        # in log-space; the maximum keeps the gradient of log finite where a share is 0
        shares = ops.where(soft_labels > 0, ops.log(ops.maximum(soft_labels, 1e-30)), -1e30)
        evidence = ops.logsumexp(shares + self.log_probabilities(y_pred), axis=-1)
        observed = ops.sum(soft_labels, axis=-1) > 0
        return ops.where(observed, -evidence, 0.0), observed


@keras.saving.register_keras_serializable(package="crowdzoo")
class MaskedCrossentropy(MaskedMean):
    """Cross-entropy between given distributions of tags and the base's, averaged over the tokens that have one.

    Args:
        name: the loss' name.
        dtype: dtype of the computation, at least float32.

    Call arguments:
        y_true: distributions `[B, T, K]` (or `[B, K]`), rows sum to one, or rows of zeros where unknown.
        y_pred: probabilities, same shape.
        sample_weight: `[B]` or `[B, T]`; weights the tokens' costs, but not the number of tokens.

    Returns:
        A scalar, nats.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.losses import MaskedCrossentropy
        >>> targets = np.array([[[0.8, 0.2], [0.0, 0.0]]], "float32")  # nothing is known of the second token
        >>> probabilities = np.array([[[0.5, 0.5], [0.9, 0.1]]], "float32")
        >>> round(float(MaskedCrossentropy()(targets, probabilities)), 3)
        0.693
    """

    def costs(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
        """See `MaskedMean.costs`."""
        _check_same_shape("MaskedCrossentropy: distributions and probabilities", y_true.shape, y_pred.shape)
        targets = ops.cast(y_true, y_pred.dtype)
        costs = -ops.sum(targets * ops.log(ops.maximum(y_pred, 1e-30)), axis=-1)
        return costs, ops.sum(targets, axis=-1) > 0


@keras.saving.register_keras_serializable(package="crowdzoo")
class MaskedCrowdMeanSquaredError(MaskedMean):
    """Squared error of the annotators' numbers, averaged over the observed ones.

    Args:
        name: the loss' name.
        dtype: dtype of the computation, at least float32.

    Call arguments:
        y_true: numbers `[B, R]` or `[B, M]`, NaN where missing.
        y_pred: the crowd layer's answers, same shape.
        sample_weight: `[B]` or `[B, R]`; weights the labels' costs, but not the number of labels.

    Returns:
        A scalar, in the labels' unit squared.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.losses import MaskedCrowdMeanSquaredError
        >>> ratings = np.array([[3.0, np.nan], [1.0, 2.0]], "float32")  # two tasks, two annotators; NaN: no rating
        >>> answers = np.array([[2.0, 5.0], [1.0, 4.0]], "float32")
        >>> round(float(MaskedCrowdMeanSquaredError()(ratings, answers)), 3)
        1.667

    Source:
        F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, section 4; the mean is over the
        observed labels.
    """

    def costs(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
        """See `MaskedMean.costs`."""
        _check_same_shape("MaskedCrowdMeanSquaredError: labels and answers", y_true.shape, y_pred.shape)
        labels = ops.cast(y_true, y_pred.dtype)
        observed = ops.logical_not(ops.isnan(labels))
        # the inner where keeps NaN out of the gradient, which an outer mask alone would not
        error = ops.where(observed, labels - y_pred, ops.zeros_like(y_pred))
        return ops.square(error), observed


@keras.saving.register_keras_serializable(package="crowdzoo")
class RatingSquaredError(MaskedCrowdMeanSquaredError):
    """`MaskedCrowdMeanSquaredError` divided by the square of the ratings' unit.

    Then ratings from 0 to 10 and from 0 to 1 train alike, with gradients well above Adam's epsilon. The loss is the
    share of the ratings' variance that is not explained.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.losses import RatingSquaredError
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
        # divided before squaring, as the square of a small unit may underflow in float32
        return super().costs(y_true / self.unit, y_pred / self.unit)

    def get_config(self) -> Config:
        """Every argument of the constructor."""
        return {**super().get_config(), "unit": self.unit}


@keras.saving.register_keras_serializable(package="crowdzoo")
class ExpectedLogLikelihood(keras.losses.Loss):
    """Objective of an M-step: `-1/B sum_i sum_k q_i(k) log p(truth k, labels | x_i)`.

    In validation and `evaluate`, answers are compared with labels: then the loss is `MaskedCrowdCrossentropy`, the mean
    of `-log P(label | x)`, which is not comparable with the training loss.

    Call arguments:
        y_true: posteriors q `[B, K]` of the last E-step, rows sum to one (sequences `[B, T, K]`, rows of zeros for
            tasks without labels); or labels int `[B, M]` (`[B, T, M]`), -1 where missing.
        y_pred: log-joints, shaped as the posteriors (`CrowdLayer.log_joint`); or log-probabilities of the labels,
            `[B, M, K]` (`[B, T, M, K]`).

    Returns:
        A number per task (for sequences the sum over its tokens, for masks the mean over their pixels), `[B]`, whose
        mean is the loss; for labels their mean.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.losses import ExpectedLogLikelihood
        >>> posteriors = np.array([[1.0, 0.0], [0.5, 0.5]], "float32")  # two tasks, two classes
        >>> log_joints = np.log(np.array([[0.5, 0.1], [0.25, 0.25]], "float32"))
        >>> round(float(ExpectedLogLikelihood()(posteriors, log_joints)), 3)  # (log 2 + log 4) / 2
        1.04
    """

    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> Any:
        """Computes the mean; see the class."""
        if len(y_true.shape) < len(y_pred.shape):
            return MaskedCrowdCrossentropy()(y_true, y_pred, sample_weight)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """See the class."""
        costs = -ops.sum(ops.cast(y_true, y_pred.dtype) * y_pred, axis=-1)
        if len(costs.shape) == 3:
            return ops.mean(costs, axis=(1, 2))
        return costs if len(costs.shape) == 1 else ops.sum(costs, axis=-1)


def _check_same_shape(what: str, shape: Shape, other_shape: Shape) -> None:
    if not same_shape(shape, other_shape):
        raise ValueError(f"{what} must have the same shape, got {tuple(shape)} and {tuple(other_shape)}")


def same_shape(shape: Sequence[int | None], other_shape: Sequence[int | None]) -> bool:
    """Whether two static shapes agree, None being any number; prevents silent broadcasting of axes of length 1."""
    pairs = zip(shape, other_shape, strict=False)
    return len(shape) == len(other_shape) and all(a is None or b is None or a == b for a, b in pairs)
