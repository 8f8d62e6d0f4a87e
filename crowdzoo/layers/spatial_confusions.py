"""Masks: a confusion matrix for every annotator at every pixel, by a small network (Zhang et al.)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import checked
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.crowd_layer import SMALLEST
from crowdzoo.layers.ranges import DIAGONAL, HIDDEN, STRENGTH


@keras.saving.register_keras_serializable(package="crowdzoo")
class SpatialConfusions(ConfusionMatrices):
    """A confusion matrix for every annotator at every pixel of every image, with a penalty on its trace.

    An annotator who draws too wide makes errors along edges only. With p the base's probabilities at a pixel,

        P(r says l) = sum_k p[k] A_r[k, l],    A_r[k, :] = softmax(kernel_r[k, :] + sum_d z[d] slope_r[d, k, :])

    where z `[D']` is the output of 3 x 3 ReLU convolutions (`filters`) over the features around the pixel. The
    convolutions are one network for all annotators; kernel and slope are each annotator's own. Slopes start at zero, so
    that at first an annotator's errors are the same everywhere, and rare (`diagonal`).

    `strength` times the trace of A_r, averaged over pixels and over the annotators' images in the batch, is added to
    the loss, a mean over pixels with a label. Among pairs of truth and annotators that explain the labels equally well,
    the true one has the smallest trace if annotators are right more often than wrong overall. The same penalty with one
    matrix per annotator, the paper's global form, is `TraceRegularization(..., kind="segmentation")`.

    The paper has a separate network for each annotator, on the base's last hidden layer, and a softplus in place of the
    softmax.

    Args:
        num_annotators: R, number of annotators.
        strength: factor of the trace relative to the mean cross-entropy of a label, in nats, at least 0. A trace is 0
            to K.
        diagonal: P(right label) that all annotators start with.
        filters: filters of each convolution; with none, z is the features themselves, which suits a base's last hidden
            layer.
        **kwargs: arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`), and `majority_epochs`.

    Call arguments:
        inputs: class probabilities `[B, H, W, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None means all annotators. Outputs at padding are
            meaningless.
        features: `[B, H, W, D]`, such as the image or a hidden layer's output. `CrowdModel(base, layer)` passes the
            image, `CrowdModel(base, layer, features=NAME)` the output of the base's layer of that name.

    Returns:
        Log-probabilities of the labels, `[B, H, W, M, K]` (`[B, H, W, R, K]`).

    Raises:
        ValueError: invalid values, or an input of the wrong rank.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.layers import SpatialConfusions
        >>> from crowdzoo.models import CrowdModel, UNet
        >>> base = UNet(height=8, width=8, num_classes=2, filters=(4, 8))
        >>> model = CrowdModel(base, SpatialConfusions(num_annotators=5), features="features")
        >>> images, annotators = np.zeros((2, 8, 8, 3), "float32"), np.array([[0, 2]] * 2)  # labelled by 0 and 2
        >>> tuple(model({"instances": images, "annotators": annotators}).shape)
        (2, 8, 8, 2, 2)

    Source:
        L. Zhang et al.: Disentangling Human Error from the Ground Truth in Segmentation of Medical Images. NeurIPS
        2020, section 3.

    Needs:
        Images, and annotators who are right at most pixels.
    """

    traits = replace(
        ConfusionMatrices.traits,
        kinds=("segmentation",),
        uses_features=True,
        why_no_confusions=(
            "confusion matrices differ from pixel to pixel. Use calibrated_confusions(x, labels) of "
            "the CrowdModel for means over images, log_confusions(x, annotators) for given images"
        ),
    )

    @checked(strength=STRENGTH, diagonal=DIAGONAL, filters=HIDDEN)
    def __init__(
        self,
        num_annotators: int,
        strength: float = 0.1,
        diagonal: float = 0.9,
        filters: Sequence[int] = (),
        **kwargs: Any,
    ):
        super().__init__(num_annotators, diagonal, **{"kind": self.traits.kinds[0], **kwargs})
        self.strength = strength
        self.filters = list(filters)

    def build(self, inputs_shape: tuple[int | None, ...], features_shape: tuple[int | None, ...] | None = None) -> None:
        """Creates the network and the annotators' weights.

        Args:
            inputs_shape: shape of the bottleneck; its last axis (K) must be known.
            features_shape: shape of the features `[B, H, W, D]`; D must be known.
        """
        *places, width = self._check_features(features_shape)
        self._convolutions = []
        for number, units in enumerate(self.filters):
            convolution = keras.layers.Conv2D(
                units, 3, padding="same", activation="relu", dtype=self._computing_dtype(), name=f"convolution_{number}"
            )
            convolution.build((*places, width))
            self._convolutions.append(convolution)
            width = units
        classes = self._check_shape(inputs_shape)
        self.slope = self._weight("slope", (self.num_annotators, width or 1, classes, classes))
        super().build(inputs_shape)

    def log_confusions(self, annotators: Tensor, features: Tensor | None = None) -> Tensor:
        """See `CrowdLayer.log_confusions`; `[B, H, W, M, K, K]`."""
        self._check_built()
        if features is None:
            raise ValueError(f"SpatialConfusions: {self.traits.why_no_confusions}")
        hidden = self._cast(features)
        for convolution in self._convolutions:
            hidden = convolution(hidden)
        logits = ops.einsum("bhwd,bmdkl->bhwmkl", hidden, self.rows_of(self.slope, annotators))
        return ops.log_softmax(logits + self.rows_of(self.kernel, annotators)[:, None, None], axis=-1)

    def call(
        self, inputs: Tensor, annotators: Tensor | None = None, training: bool = False, features: Tensor | None = None
    ) -> Tensor:
        """Log-probabilities of the labels; see the class for shapes."""
        self._check_call(inputs, training)
        self._check_features(getattr(features, "shape", None))
        if annotators is None:
            annotators = self._everybody(inputs)
        confusions = ops.exp(self.log_confusions(annotators, features))
        if self.strength > 0:
            traces = ops.mean(ops.trace(confusions, axis1=-2, axis2=-1), axis=(1, 2))  # [B, M]
            mask = self._cast(annotators >= 0)
            self.add_loss(self.strength * ops.sum(mask * traces) / ops.maximum(ops.sum(mask), 1))
        probabilities = ops.einsum("bhwk,bhwmkl->bhwml", self._cast(inputs), confusions)
        return ops.log(ops.maximum(probabilities, SMALLEST))
