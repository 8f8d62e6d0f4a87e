"""Confusion matrices that are kept as unreliable as the labels allow (Tanno et al.)."""

from dataclasses import replace
from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import Choice, checked
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.ranges import STRENGTH

TRACES = ("mean", "sum")


@keras.saving.register_keras_serializable(package="crowdzoo")
class TraceRegularization(ConfusionMatrices):
    """Confusion matrices with a penalty on their trace, so that the base, and not the annotators, explains the labels.

    The likelihood is that of `ConfusionMatrices`; `strength` times a penalty is added to the loss, a mean over labels.
    Among pairs of truth and annotators that explain the labels equally well, the true one has the smallest trace if
    annotators are right more often than wrong overall.

        | traces | penalty, with R annotators, and M labels per task on average                             |
        |--------|----------------------------------------------------------------------------------------|
        | "mean" | mean of trace(pi_r) over the distinct annotators r of the batch                        |
        | "sum"  | sum of trace(pi_r) over all R annotators, divided by M: the paper's equation           |

    The paper adds the sum of the traces of all annotators to a cross-entropy that is summed over a task's labels and
    averaged over tasks; divided by M, that is "sum", and `strength` is the paper's lambda. Where everybody labels every
    task (M = R), both penalties are the same. **On sparse data "mean" is R / M times weaker** than the paper's
    equation: with 59 annotators and 2.5 labels per task, a strength of .01 is a lambda of .0004. "mean" is the same for
    every batch size and number of annotators, and its cost grows with the number of annotations; "sum" reads all R
    matrices in
    every step. (The code printed with the paper adds the mean of the traces to the summed cross-entropy: that is "mean"
    with strength / M, weaker still.)

    The paper's matrices start at a near-identity through a softplus; here they go through a softmax, which hardly moves
    from there (6 I - 5 freezes it), hence the softer start.

    Args:
        num_annotators: R, number of annotators.
        strength: factor of the penalty relative to the mean cross-entropy of a label, in nats, at least 0. A trace is 0
            to K.
        diagonal: P(right label) that all annotators start with; see `ConfusionMatrices`.
        traces: `"mean"` or `"sum"`.
        confidence: see `ConfusionMatrices`.
        scale: see `ConfusionMatrices`; with 1 the base may lose classes (docs/methods.md).
        kind: "classification" or "segmentation"; see `ConfusionMatrices`.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: class probabilities `[B, K]` (masks `[B, H, W, K]`).
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators, who then all label every
            task (M = R).

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`); for masks `[B, H, W, M, K]`.

    Raises:
        ValueError: invalid values, or an input of the wrong rank.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import TraceRegularization
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> layer = TraceRegularization(num_annotators=5, strength=0.01)
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), layer)
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)

    Source:
        R. Tanno et al.: Learning from Noisy Labels by Regularized Estimation of Annotator Confusion. CVPR 2019,
        equation 4. For masks it is the global form of L. Zhang et al., see `SpatialConfusions`.

    Needs:
        Instances, and annotators who are right more often than wrong overall.
    """

    traits = replace(ConfusionMatrices.traits, kinds=("classification", "segmentation"))

    @checked(strength=STRENGTH, traces=Choice(TRACES))
    def __init__(
        self,
        num_annotators: int,
        strength: float = 0.01,
        diagonal: float | None = None,
        traces: str = "mean",
        confidence: bool = False,
        scale: float | None = None,
        kind: str = "classification",
        **kwargs: Any,
    ):
        super().__init__(num_annotators, diagonal, kind, confidence, scale, **kwargs)
        self.strength = strength
        self.traces = traces

    def call(self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False) -> Tensor:
        """Log-probabilities of the labels; see the class for shapes."""
        answers = super().call(inputs, annotators, training)
        if self.strength > 0:
            self.add_loss(self.strength * self._penalty(annotators))
        return answers

    def _penalty(self, annotators: Tensor) -> Any:
        """See the class; 0 where there is only padding."""
        if self.traces == "mean" or annotators is None:
            return self._mean_trace(annotators)
        mask = self._cast(annotators >= 0)
        tasks = ops.sum(ops.max(mask, axis=1))
        return self.num_annotators * self._mean_trace(None) * tasks / ops.maximum(ops.sum(mask), 1)

    def _mean_trace(self, annotators: Tensor) -> Any:
        """Mean trace of the distinct annotators' matrices, 0 to K; 0 where there is only padding."""
        if annotators is None:
            annotators = ops.arange(self.num_annotators, dtype="int32")[:, None]
        right = ops.diagonal(self.log_confusions(annotators), axis1=-2, axis2=-1)
        traces = ops.sum(ops.exp(right), axis=-1)
        count = ops.sum(self._distinct_weights(annotators))
        return self._distinct_sum(traces, annotators) / ops.maximum(count, 1)
