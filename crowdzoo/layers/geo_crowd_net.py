"""GeoCrowdNet: confusion matrices, held apart by the volume that predictions or annotators span."""

from dataclasses import replace
from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import Choice, checked
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.ranges import FLOOR, STRENGTH


@keras.saving.register_keras_serializable(package="crowdzoo")
class GeoCrowdNet(ConfusionMatrices):
    """Confusion matrices whose training rewards volume, so that truth and annotators can be told apart.

    The likelihood is that of `ConfusionMatrices`. If no instance is clearly of one class, or no annotator is an expert,
    many pairs of truth and annotators explain the labels; a penalty then prefers the pair with the largest volume:

        | regularization | penalty                              | suits                                          |
        |----------------|--------------------------------------|------------------------------------------------|
        | "F"            | -strength log det(K F F^T / B + eI)  | many instances, no expert among the annotators |
        | "W"            | -strength log det(W^T W / Q + eI)    | few instances, an expert for every class       |
        | None           | none (CCEM)                          |                                                |

    F `[K, B]` holds the base's predictions for the batch, W `[Q K, K]` the matrices `[said, true]` of the Q distinct
    annotators of the batch, and e is the `floor`. Both penalties are near 0 at best (certain and balanced predictions,
    annotators who are always right), grow as the volume shrinks, and stay finite where a batch lacks classes. They are
    means over the batch, so the effect of `strength` does not depend on batch size or number of annotators. (The
    paper's sums differ by a constant from these; a batch that is not much larger than K spans less by chance.) Padding
    and tasks without labels are ignored, and each annotator counts once.

    Args:
        num_annotators: R, number of annotators.
        regularization: `"F"`, `"W"` or None.
        strength: factor of the penalty relative to the mean cross-entropy of a label, in nats; 0 or more. Too much "F"
            spreads predictions before the labels give them a meaning: with 10 classes 0.01 is safe and 0.1 is not. Too
            much of "W" spreads the annotators beyond their true volume: where all are wrong more often than right,
            0.01 was far too much and 0.003 was best (docs/papers/ibrahim.md).
        diagonal: P(right label) that all annotators start with, in place of `scale`.
        floor: e, 1e-6 to 1, added to the diagonal of the Gram matrix, which is 1 for certain and balanced predictions
            (for annotators who are always right). A class that a batch lacks costs -log e. A lower floor pulls harder
            where the volume is small: in simulated crowds it helped "F" when the strength was too weak (0.001), changed
            nothing at 0.01, and made "W" worse (benchmarks/reproduce/geo_crowd_net.py).
        confidence: see `ConfusionMatrices`.
        scale: see `ConfusionMatrices`; with the authors' 1 the base may lose classes (docs/methods.md).
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators, and all tasks count.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`).

    Raises:
        ValueError: invalid values, or an input of the wrong rank.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import GeoCrowdNet
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), GeoCrowdNet(num_annotators=5))
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)

    Source:
        S. Ibrahim, T. Nguyen, X. Fu: Deep Learning from Crowdsourced Labels: Coupled Cross-Entropy Minimization,
        Identifiability, and Regularization. ICLR 2023, section 4.

    Needs:
        Instances, and annotators with several labels each.
    """

    traits = replace(ConfusionMatrices.traits, kinds=("classification",))

    @checked(regularization=Choice(("F", "W"), optional=True), strength=STRENGTH, floor=FLOOR)
    def __init__(
        self,
        num_annotators: int,
        regularization: str | None = "F",
        strength: float = 0.01,
        diagonal: float | None = None,
        floor: float = 0.1,
        confidence: bool = False,
        scale: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, diagonal, confidence=confidence, scale=scale, **kwargs)
        self.floor = floor
        self.regularization = regularization
        self.strength = strength

    def call(self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False) -> Tensor:
        """Log-probabilities of the labels; see the class for shapes."""
        answers = super().call(inputs, annotators, training)
        if self.regularization is not None and self.strength > 0:
            self.add_loss(self.strength * self._penalty(inputs, annotators))
        return answers

    def _penalty(self, inputs: Tensor, annotators: Tensor) -> Any:
        """Minus the log-volume of a batch, about 0 to `-K log floor`; 0 without labels."""
        if self.regularization == "F":
            gram, count = self._gram_of_predictions(inputs, annotators)
        else:
            gram, count = self._gram_of_annotators(annotators)
        gram = gram / ops.maximum(count, 1) + self.floor * ops.eye(self._num_classes, dtype=gram.dtype)
        # the Cholesky factor's diagonal gives the log-determinant of a positive definite matrix, never NaN
        log_volume = 2 * ops.sum(ops.log(ops.diagonal(ops.cholesky(gram))))
        return ops.where(count > 0, -log_volume, 0.0)

    def _gram_of_predictions(self, inputs: Tensor, annotators: Tensor) -> tuple[Any, Any]:
        """`K F F^T` `[K, K]` and the number of tasks in F."""
        p = self._cast(inputs)
        if annotators is None:
            labelled = ops.ones_like(p[:, :1])
        else:
            labelled = ops.cast(ops.any(annotators >= 0, axis=1, keepdims=True), p.dtype)
        return p.shape[-1] * ops.matmul(ops.transpose(p * labelled), p), ops.sum(labelled)

    def _gram_of_annotators(self, annotators: Tensor) -> tuple[Any, Any]:
        """`W^T W` `[K, K]`, the sum over distinct annotators of `pi_r pi_r^T`, and their number."""
        if annotators is None:
            annotators = ops.arange(self.num_annotators, dtype="int32")[:, None]
        confusions = ops.exp(self.log_confusions(annotators))
        once = self._distinct_weights(annotators)
        gram = ops.einsum("bmkl,bmjl->kj", confusions * once[..., None, None], confusions)
        return gram, ops.sum(once)
