"""One confusion matrix per annotator, as probabilities: the likelihood that most methods share."""

from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import FLAG, checked
from crowdzoo.layers.crowd_layer import SMALLEST, CrowdLayer, LayerTraits
from crowdzoo.layers.ranges import DIAGONAL, SCALE
from crowdzoo.losses import MaskedCrowdEvidence


@keras.saving.register_keras_serializable(package="crowdzoo")
class ConfusionMatrices(CrowdLayer):
    """A confusion matrix per annotator, from the estimate of the truth to the annotator's label.

    `P(r says l | x) = sum_k p(k) pi[r, k, l]` with `pi[r, k, :] = softmax(kernel[r, k, :])`: the only softmax is in the
    base, so that, unlike in `CrowdsourcedLayer`, this is a likelihood. It is trained directly, on the coupled
    cross-entropy of the labels (CCEM).

    The matrices start with `diagonal` for the right label and spread the rest evenly over wrong ones. The authors' code
    starts kernels at the identity (`scale=1`): then P(right label) is only `e / (e + K - 1)`, .28 with eight classes,
    and the base may lose classes (docs/results.md). A `diagonal` near the annotators' real accuracy gives better
    confusion matrices.

    Args:
        num_annotators: R, number of annotators.
        diagonal: P(right label) that all annotators start with, above 0 and below 1; or None.
        kind: "classification", "sequence" or "segmentation". In the last two each token or pixel has its own truth, and
            an annotator has one matrix for all of them.
        confidence: whether the column `confidence` of the annotations is used as the probability of the label; the rest
            is spread evenly over the other classes. The likelihood of an answer is then `sum_l s(l) P(r says l | x)`.
            Only for classification with annotations in memory; evaluation ignores confidences.
        scale: factor of the identity that initializes kernels without a `diagonal`. None is log(K - 1), at least 1,
            with which P(right label) starts at 1/2; for sequences 1.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`), and `majority_epochs` of
            `CrowdLayer`: 5 for sequences, where almost nothing is learnt without them.

    Call arguments:
        inputs: class probabilities `[B, K]` (sequences `[B, T, K]`, masks `[B, H, W, K]`).
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators. Outputs at padding are
            meaningless.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`); for sequences `[B, T, M, K]` (`[B, T, R, K]`), for
        masks `[B, H, W, M, K]`.

    Raises:
        ValueError: invalid sizes, an input of the wrong rank, or `confidence` for sequences.
        DataError: (in `fit`) with `confidence=True`, an annotation has no confidence, or one outside 0 to 1.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import ConfusionMatrices
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier
        >>> model = CrowdModel(FeatureClassifier(num_features=20, num_classes=3), ConfusionMatrices(num_annotators=5))
        >>> x, annotators = np.zeros((4, 20), "float32"), np.array([[0, 2]] * 4)  # 4 tasks, labelled by 0 and 2
        >>> tuple(model({"instances": x, "annotators": annotators}).shape)
        (4, 2, 3)
        >>> model.annotator_confusions()[0].round(2).tolist()  # before training
        [[0.58, 0.21, 0.21], [0.21, 0.58, 0.21], [0.21, 0.21, 0.58]]

    Source:
        S. Ibrahim, T. Nguyen, X. Fu: Deep Learning from Crowdsourced Labels: Coupled Cross-Entropy Minimization,
        Identifiability, and Regularization. ICLR 2023, section 3 (their A_m is the transpose of pi).

    Needs:
        Instances, and annotators with several labels each.
    """

    traits = LayerTraits(
        kinds=("classification", "sequence", "segmentation"), starts_from_votes=True, accepts_confidence=True
    )

    @checked(diagonal=replace(DIAGONAL, optional=True), confidence=FLAG, scale=replace(SCALE, optional=True))
    def __init__(
        self,
        num_annotators: int,
        diagonal: float | None = None,
        kind: str = "classification",
        confidence: bool = False,
        scale: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, kind, **kwargs)
        self.scale = scale
        refused = "" if self.traits.accepts_confidence else "this layer"
        subject = refused if self.label_kind.one_class else f"kind {kind!r}"
        if confidence and subject:
            raise ValueError(f"{type(self).__name__}: confidence=True is not for {subject}; set confidence=False")
        self.confidence = confidence
        if confidence and self.traits.extra_training is None:
            clause = "annotations count by their confidence (confidence=True)"
            self.traits = replace(self.traits, extra_training=clause)
        self.diagonal = diagonal
        self.kernel: Any = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """Creates the annotators' weights.

        Args:
            inputs_shape: shape of the bottleneck; its last axis (K) must be known.
        """
        classes = self._num_classes = self._check_shape(inputs_shape)
        self.kernel = self._weight("kernel", (self.num_annotators, classes, classes), self._start)
        super().build(inputs_shape)

    def _start(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Logits of matrices with `diagonal` on the diagonal and the rest spread evenly."""
        return self._identities(shape, dtype, self.scale, self.diagonal)

    def default_loss(self) -> keras.losses.Loss:
        """See `CrowdLayer.default_loss`."""
        return MaskedCrowdEvidence() if self.confidence else super().default_loss()

    def log_confusions(self, annotators: Tensor, features: Tensor | None = None) -> Tensor:
        """See `CrowdLayer.log_confusions`."""
        self._check_built()
        return ops.log_softmax(self.rows_of(self.kernel, annotators), axis=-1)

    def call(self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False) -> Tensor:
        """Log-probabilities of the labels; see the class for shapes."""
        self._check_call(inputs, training)
        p = self._cast(inputs)
        if annotators is None:
            confusions = ops.softmax(self._cast(self.kernel), axis=-1)
            probabilities = ops.einsum(f"{self._axes}k,rkl->{self._axes}rl", p, confusions)
        else:
            probabilities = ops.einsum(
                f"{self._axes}k,bmkl->{self._axes}ml", p, ops.exp(self.log_confusions(annotators))
            )
        return ops.log(ops.maximum(probabilities, SMALLEST))

    def set_confusions(self, confusions: np.ndarray) -> None:
        """Sets the confusion matrices, for example to those of an aggregation.

        Args:
            confusions: `[R, K, K]`, `[annotator, true, said]`, rows sum to one; zeros are raised to 1e-6.

        Raises:
            ValueError: the wrong shape, or the layer has no weights yet.
        """
        self._check_built()
        if np.shape(confusions) != tuple(self.kernel.shape):
            raise ValueError(
                f"{type(self).__name__}: confusions must have shape {tuple(self.kernel.shape)}, "
                f"got {np.shape(confusions)}"
            )
        self.kernel.assign(np.log(np.maximum(confusions, 1e-6)).astype("float32"))
