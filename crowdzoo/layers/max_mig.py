"""Max-MIG: the base and the crowd as two views of the truth, trained to maximise their mutual information."""

from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import checked
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.ranges import DIAGONAL, PSEUDO_COUNT
from crowdzoo.losses import MaskedCrowdCrossentropy, MaskedMean


@keras.saving.register_keras_serializable(package="crowdzoo")
class MutualInformationGain(MaskedMean):
    """The loss of `MaxMIG`: minus a lower bound of the mutual information of instances and labels.

    With `h(x)` the base's probabilities, `g(y)` those of the annotators' labels together and `prior` the classes',
    `m_ij = sum_k h_k(x_i) g_k(y_j) / prior_k` and n tasks in the batch,

        loss = -1/n sum_i (1 + log m_ii) + 1/(n (n - 1)) sum_(i != j) m_ij

    The other tasks of the batch estimate agreement by chance; a batch of one task has none and costs 0. Tasks without
    labels are ignored.

    Args:
        name: the loss' name.
        dtype: dtype of the computation, at least float32.

    Call arguments:
        y_true: labels `[B, M]`, negative where missing.
        y_pred: `[B, 2 K]`, `log h(x)` and then `log (g(y) / prior)` (`MaxMIG.with_labels`). Or the annotators' answers
            `[B, M, K]`, as for validation data: then the loss is the cross-entropy of the labels.
        sample_weight: `[B]`; weights the tasks' costs, not their number.

    Returns:
        A scalar, in nats.

    Source:
        P. Cao et al.: Max-MIG: an Information Theoretic Approach for Joint Learning from Crowds. ICLR 2019, section 3,
        for the Kullback-Leibler divergence.
    """

    def costs(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
        """See `MaskedMean.costs`; a cost is a task's."""
        if len(y_pred.shape) == 3:
            return MaskedCrowdCrossentropy().costs(y_true, y_pred)
        log_h, log_ratio = ops.split(y_pred, 2, axis=-1)
        labelled = ops.any(y_true >= 0, axis=-1)
        counts = ops.cast(labelled, y_pred.dtype)
        n = ops.sum(counts)
        log_own = ops.logsumexp(log_h + log_ratio, axis=-1)
        # h is multiplied by the sum over all other tasks, so that pairs need no memory
        everybody = ops.matmul(ops.exp(log_h), ops.sum(counts[:, None] * ops.exp(log_ratio), axis=0))
        other_tasks = (everybody - ops.exp(log_own)) / ops.maximum(n - 1, 1)
        has_others = ops.cast(n > 1, y_pred.dtype)
        return counts * has_others * (other_tasks - 1 - log_own), labelled


@keras.saving.register_keras_serializable(package="crowdzoo")
class MaxMIG(ConfusionMatrices):
    """Two views of the truth, instances and labels, trained to agree on what only the truth can explain.

    The annotators' view is `g(y) = softmax(log prior + sum_r W_r[:, y_r])` over the labels of a task, with a matrix
    `W_r[true, said]` for every annotator (`kernel`). `MutualInformationGain` compares it with the base's `h(x)`;
    annotators need not be independent given the truth. The posterior of the truth is `~ h(x) g(y) / prior`.

    `fit` starts the matrices from the votes, `W_r = log(c_r + smoothing)` with `c_r` the confusion of annotator r
    against the shares of the votes, and fixes the prior at their mean; every `fit` does so again. The loss needs
    batches of some tens of tasks: the other tasks of a batch estimate agreement by chance. On validation data it is the
    cross-entropy of the labels.

    Adding a number to all `W_r[:, l]` does not change `g`, so training leaves that level where it started, and
    `annotator_confusions`, the softmax of W_r over labels, depends on the start.

    Args:
        num_annotators: R, number of annotators.
        smoothing: added to the shares of the votes before their logarithm; above 0.
        diagonal: P(right label) that all annotators start with before `fit`; see `ConfusionMatrices`.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`).

    Raises:
        ValueError: invalid values, or an input of the wrong rank.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import MaxMIG
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), MaxMIG(num_annotators=5))
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)

    Source:
        P. Cao et al.: Max-MIG: an Information Theoretic Approach for Joint Learning from Crowds. ICLR 2019, section 3.

    Needs:
        Instances, and batches of some tens of tasks.
    """

    traits = replace(
        ConfusionMatrices.traits,
        kinds=("classification",),
        starts_from_votes=False,
        accepts_sample_weight=False,  # the other tasks of a batch estimate agreement by chance
        accepts_confidence=False,
        extra_training="the matrices start from the votes, and the loss compares two views of the truth",
    )

    @checked(diagonal=DIAGONAL, smoothing=PSEUDO_COUNT)
    def __init__(self, num_annotators: int, smoothing: float = 0.01, diagonal: float = 0.8, **kwargs: Any):
        super().__init__(num_annotators, diagonal, **kwargs)
        self.smoothing = smoothing
        self.prior: Any = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """See `ConfusionMatrices.build`; the prior is not trained by gradient descent."""
        super().build(inputs_shape)
        classes = inputs_shape[-1] or 1
        self.prior = self._weight("prior", (classes,), keras.initializers.Constant(1 / classes), trainable=False)

    def log_joint(self, inputs: Tensor, annotators: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """Logarithm of `h(x) g(y) / prior`, up to a constant per task; see `CrowdLayer.log_joint`."""
        return self._log_prior(inputs) + self._evidence(annotators, labels)

    def with_labels(self, inputs: Tensor, annotators: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """Both views, which the loss compares: `log h(x)`, then `log (g(y) / prior)`, `[B, 2 K]`."""
        evidence = self._evidence(annotators, labels)
        prior = ops.log(ops.cast(self.prior, evidence.dtype))
        log_ratio = evidence - ops.logsumexp(evidence + prior, axis=-1, keepdims=True)
        return ops.concatenate([self._log_prior(inputs), log_ratio], axis=-1)

    def _evidence(self, annotators: Tensor, labels: Tensor) -> Any:
        """`sum_r W_r[:, y_r]` over the labels of each task, `[B, K]`."""
        kernel = self.rows_of(self.kernel, annotators)
        one_hot = ops.one_hot(ops.cast(labels, "int32"), self._num_classes, dtype=kernel.dtype)  # a row of 0 for -1
        return ops.einsum("bml,bmkl->bk", one_hot, kernel)

    def default_loss(self) -> keras.losses.Loss:
        """Minus the mutual information gain."""
        return MutualInformationGain()

    def start_from(self, shares: np.ndarray, counts: np.ndarray) -> None:
        """Sets the matrices and the prior.

        Args:
            shares: shares of the votes `[N, K]`, rows of zeros for tasks without labels.
            counts: `[R, K, K]`, expected labels `[annotator, true, said]`; rows of classes that an annotator never met
                start uniform.
        """
        total = counts.sum(axis=-1, keepdims=True)
        confusions = np.where(total > 0, counts / np.where(total > 0, total, 1), 1 / counts.shape[-1])
        self.kernel.assign(np.log(confusions + self.smoothing).astype("float32"))
        votes = shares.sum(axis=0, dtype="float64") + self.smoothing
        self.prior.assign((votes / votes.sum()).astype("float32"))
