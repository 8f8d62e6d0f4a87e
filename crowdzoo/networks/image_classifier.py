"""From an image to probabilities of its classes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import keras

from crowdzoo.checks.constraints import FLAG, Choice, checked
from crowdzoo.layers.ranges import BATCH, CLASSES, DROPOUT, HIDDEN, PIXEL_SCALES
from crowdzoo.networks.image_network import ImageNetwork

__all__ = ["ImageClassifier"]


@keras.saving.register_keras_serializable(package="crowdzoo")
class ImageClassifier(ImageNetwork):
    """A small residual network, or a backbone of yours, hidden ReLU layers with dropout, and a softmax over classes.

    The residual network has a convolution and one residual block for each number of filters, with batch normalisation;
    each stage after the first halves height and width, and an average over the places stands at its end. It is meant
    for training from scratch on hundreds to thousands of images. With fewer, take a backbone that was trained on many
    others (`crowdzoo.models.load_backbone`). Weights and dropout follow `keras.utils.set_random_seed`.

    Args:
        height: H, rows of an image.
        width: W, columns.
        num_classes: K, number of classes; None leaves out the softmax, for crowd layers that stand on a hidden layer.
        filters: filters of each stage of the residual network, at least one stage; passed over with a backbone.
        hidden: units of each hidden layer after the convolutions; may be empty.
        dropout: share dropped in training before each dense layer, 0 <= dropout < 1.
        backbone: a Keras model from pixels `[B, H, W, 3]` to features `[B, D]` or maps `[B, h, w, D]`, whose average is
            taken; None is the residual network.
        pixel_scale: numbers that the backbone takes for a pixel: "0 to 255", "0 to 1", "-1 to 1", "imagenet" (mean 0
            and deviation 1 of each colour on ImageNet) or "imagenet-bgr" (mean 0, blue first).
        fine_tune: whether the backbone's weights are trained. Otherwise its batch normalisation stands still, too.
        augment: whether images are mirrored (left and right) and shifted by up to a tenth at random in training.
        **kwargs: `keras.Model`'s `name`, `trainable`.

    Call arguments:
        inputs: pixels `[B, H, W, 3]`, 0 to 255, as `crowdzoo.models.ImagePixels` gives.

    Returns:
        Class probabilities `[B, K]`, rows sum to one, float32 under mixed precision too; without classes the last
        hidden layer's output `[B, units]` (the features where there is none).

    Raises:
        ConfigError: impossible sizes, or a backbone that does not take the images.

    Source:
        Residual blocks: K. He, X. Zhang, S. Ren, J. Sun: Deep Residual Learning for Image Recognition. CVPR 2016.
    """

    @checked(
        height=BATCH,
        width=BATCH,
        num_classes=replace(CLASSES, optional=True),
        filters=HIDDEN,
        hidden=HIDDEN,
        dropout=DROPOUT,
        pixel_scale=Choice(PIXEL_SCALES),
        fine_tune=FLAG,
        augment=FLAG,
    )
    def __init__(
        self,
        height: int,
        width: int,
        num_classes: int | None,
        filters: Sequence[int] = (32, 64, 128),
        hidden: Sequence[int] = (),
        dropout: float = 0.5,
        backbone: keras.Model | None = None,
        pixel_scale: str = "0 to 255",
        fine_tune: bool = False,
        augment: bool = False,
        **kwargs: Any,
    ):
        def head() -> list[Any]:
            if num_classes is None:
                return []
            softmax = keras.layers.Softmax(dtype=keras.backend.result_type(keras.config.floatx(), "float32"))
            return [keras.layers.Dense(num_classes, name="logits"), softmax]

        super().__init__(
            height, width, filters, hidden, dropout, backbone, pixel_scale, fine_tune, augment, head, **kwargs
        )
        self.num_classes = num_classes

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {**super().get_config(), "num_classes": self.num_classes}
