"""UnionNet: one distribution over all pairs of annotator and label."""

from dataclasses import replace
from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.crowd_layer import SMALLEST
from crowdzoo.losses import MaskedCrowdCrossentropy


@keras.saving.register_keras_serializable(package="crowdzoo")
class MaskedNegativeLogLikelihood(MaskedCrowdCrossentropy):
    """Mean of minus the log-probabilities of the observed labels, which are not normalised again.

    Unlike `crowdzoo.losses.MaskedCrowdCrossentropy` it does not normalise over the labels: the probabilities of
    `UnionNet` sum to one over all annotators and labels together.

    Args:
        name: the loss' name.
        dtype: dtype of the computation, at least float32.

    Call arguments:
        y_true: labels 0..K-1, negative where missing: `[B, R]`, in the sparse form `[B, M]`.
        y_pred: log-probabilities, `y_true`'s shape and K.
        sample_weight: `[B]` or `y_true`'s shape; weights the labels' costs, not their number.

    Returns:
        A scalar, in nats per label. A label of K or more makes it NaN.
    """

    def log_probabilities(self, y_pred: Tensor) -> Tensor:
        """Returns `y_pred` unchanged."""
        return y_pred


@keras.saving.register_keras_serializable(package="crowdzoo")
class UnionNet(ConfusionMatrices):
    """One matrix from the truth to all pairs of annotator and label, in which annotators compete.

    `P(r, l | k) = exp(kernel[r, k, l]) / sum_(r', l') exp(kernel[r', k, l'])`: for each true class, one softmax over
    the labels of all annotators, where `ConfusionMatrices` has one for each annotator. So the model also learns which
    annotators give which labels. A label costs `-log sum_k p(k) P(r, l | k)`.

    The denominator is a sum over all R K^2 weights, which every step computes; the rest of the cost grows with the
    number of annotations.

    Args:
        num_annotators: R, number of annotators.
        diagonal: share of right labels that every annotator starts with; see `ConfusionMatrices`.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators. Outputs at padding are
            meaningless.

    Returns:
        `log P(r, l | x)`, `[B, M, K]` (`[B, R, K]`): probabilities sum to one over all annotators and labels, so the
        softmax over the last axis is r's label distribution given that r labels. `log_confusions` and
        `annotator_confusions` are conditional on r as well: rows sum to one. `log_joint`, and so the posterior of the
        truth, uses the model's `P(r, l | k)`: `q_i(k) ~ p_i(k) prod_m P(r_m, l_m | k)`. So it also depends on who
        labelled, if some annotators label certain classes more often.

    Raises:
        ValueError: invalid sizes, or an input of the wrong rank.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import UnionNet
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), UnionNet(num_annotators=5))
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)

    Source:
        H. Wei et al.: Deep Learning From Multiple Noisy Annotators as A Union. IEEE TNNLS 2022, section III.

    Needs:
        Instances, and annotators with several labels each.
    """

    traits = replace(
        ConfusionMatrices.traits,
        kinds=("classification",),
        returns_logits=True,  # over all annotators and labels
        accepts_confidence=False,
    )

    def call(self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False) -> Tensor:
        """Log-probabilities of annotators and labels; see the class for shapes."""
        self._check_call(inputs, training)
        kernel = self._cast(self.kernel)
        # dividing p(k), not the matrices, by the softmax denominator of class k is cheaper
        top = ops.stop_gradient(ops.max(kernel, axis=(0, 2)))
        total = ops.sum(ops.exp(kernel - top[:, None]), axis=(0, 2))
        p = self._cast(inputs) / total
        weights = ops.exp(self.rows_of(self.kernel, annotators) - top[:, None])
        probabilities = ops.einsum("bk,rkl->brl" if annotators is None else "bk,bmkl->bml", p, weights)
        return ops.log(ops.maximum(probabilities, SMALLEST))

    def _log_given_truth(self, annotators: Tensor, features: Tensor) -> Any:
        """`log P(r, l | k)`, `[B, M, K, K]`; not `log_confusions`, which ignores who labels what."""
        self._check_built()
        everything = ops.logsumexp(self._cast(self.kernel), axis=(0, 2))
        return self.rows_of(self.kernel, annotators) - everything[:, None]

    def default_loss(self) -> keras.losses.Loss:
        """Minus the log-probability of annotator and label."""
        return MaskedNegativeLogLikelihood()
