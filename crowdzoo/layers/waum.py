"""WAUM: find the tasks on which a network cannot agree with its crowd, leave them out, train on the rest."""

from dataclasses import replace
from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import checked
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.crowd_layer import SMALLEST
from crowdzoo.layers.ranges import DENOMINATOR, DIAGONAL, DROPOUT, MARGIN, PHASE, PSEUDO_COUNT
from crowdzoo.losses import MaskedCrowdCrossentropy


@keras.saving.register_keras_serializable(package="crowdzoo")
class VotesCrossentropy(MaskedCrowdCrossentropy):
    """Cross-entropy of class probabilities and votes, divided by the number of votes; tasks without votes are ignored.

    `-sum_ik v_ik log p_ik / sum_ik v_ik`. With v the number of votes it is the mean over all labels of a batch, as if
    every (task, label) pair were a row; with soft labels the mean over the tasks that have one.

    Call arguments:
        y_true: votes or soft labels `[B, K]`, rows of zeros for tasks that do not count. Or labels int `[B, M]`, -1
            where missing, with annotators' answers: then it is the parent's loss (`evaluate`, validation).
        y_pred: class probabilities `[B, K]`; or annotators' log-probabilities `[B, M, K]`.

    Returns:
        A scalar, in nats; 0 for a batch without votes.
    """

    def costs(self, y_true: Tensor, y_pred: Tensor) -> tuple[Tensor, Tensor]:
        """See the parent; the second result weights the first."""
        if len(y_pred.shape) == 3:
            return super().costs(y_true, y_pred)
        votes = ops.cast(y_true, y_pred.dtype)
        return -votes * ops.log(ops.maximum(y_pred, SMALLEST)), votes


@keras.saving.register_keras_serializable(package="crowdzoo")
class WAUM(ConfusionMatrices):
    """Trains the base twice: once to find ambiguous tasks, and again without them.

    1. Dawid-Skene on all annotations gives confusion matrices pi.
    2. The base learns every label ("stacked": cross-entropy to each). After each of `margin_epochs` epochs the margins
       for AUM are recorded in evaluation mode.
    3. `WAUM_i = sum_r s_r AUM_ir / sum_r s_r`, with trust `s_r(x_i) = sum_k pi[r, k, k] p_k(x_i)` at the last epoch.
    4. Tasks with a WAUM of at most the quantile `prune` are left out; Dawid-Skene again on the rest.
    5. Base and optimizer are reset to their start, and the base learns the soft labels of the rest,
       `q_i(k) ~ sum_r pi[r, k, k] 1[y_ir = k]`.

    The epochs, callbacks and validation data of `CrowdModel.fit` are for step 5. Afterwards `scores` holds the
    measures, and the layer the matrices of step 4. To only rank tasks, fit for one epoch:
    `model.crowd.scores.worst(0.1)`.

    Pruned tasks have soft labels of zeros: they cost nothing and are not counted, though they still pass through a
    base's batch normalisation. The authors' code records margins during training (dropout on) and not after it. The
    matrices are not trained by gradient descent. WAUM is good at finding bad tasks; whether training without them helps
    depends on the data.

    Args:
        num_annotators: R, number of annotators.
        prune: alpha, the quantile of WAUM up to which tasks are left out, at least 0 (none) and below 1.
        margin_epochs: epochs of step 2.
        margin: "top-2" or "pleiss", see `crowdzoo.quality.aum.label_margins`.
        denominator: "trust" or "redundancy", see `crowdzoo.quality.aum.weighted_margins`.
        smoothing: pseudo-count of every cell in Dawid-Skene's matrices, above 0.
        diagonal: P(right label) that all annotators have before `fit`.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`).

    Attributes:
        scores: `crowdzoo.quality.aum.Waum` of the last `fit`, or None; not saved with the model.

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`).

    Raises:
        ValueError: invalid values, or an input of the wrong rank.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import WAUM
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), WAUM(num_annotators=5, prune=0.05))
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)

    Source:
        T. Lefort, B. Charlier, A. Joly, J. Salmon: Identify Ambiguous Tasks Combining Crowdsourced Labels by Weighting
        Areas Under the Margin. TMLR 2024.

    Needs:
        Instances, and some tasks that are too ambiguous to learn from.
    """

    traits = replace(
        ConfusionMatrices.traits,
        kinds=("classification",),
        starts_from_votes=False,
        accepts_sample_weight=False,  # tasks are ranked, and Dawid-Skene counts each once
        accepts_confidence=False,
        extra_training="the base is trained twice, without ambiguous tasks the second time",
    )

    @checked(
        diagonal=DIAGONAL,
        prune=DROPOUT,
        margin_epochs=PHASE,
        margin=MARGIN,
        denominator=DENOMINATOR,
        smoothing=PSEUDO_COUNT,
    )
    def __init__(
        self,
        num_annotators: int,
        prune: float = 0.01,
        margin_epochs: int = 50,
        margin: str = "top-2",
        denominator: str = "trust",
        smoothing: float = 0.01,
        diagonal: float = 0.8,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, diagonal, **kwargs)
        self.prune = prune
        self.margin_epochs = margin_epochs
        self.margin = margin
        self.denominator = denominator
        self.smoothing = smoothing
        self.scores: Any = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """See `ConfusionMatrices.build`; the matrices are not trained by gradients."""
        super().build(inputs_shape)
        self.kernel.trainable = False

    def default_loss(self) -> keras.losses.Loss:
        """The loss of both trainings."""
        return VotesCrossentropy()
