"""A small network for masks, which predicts the class of each pixel of an image."""

from collections.abc import Sequence
from typing import Any

import keras

from crowdzoo.checks.constraints import checked
from crowdzoo.errors import ConfigError
from crowdzoo.layers.ranges import CLASSES, DROPOUT, HIDDEN, SIDE, UNITS
from crowdzoo.networks.network import Network, class_head


@keras.saving.register_keras_serializable(package="crowdzoo")
class UNet(Network):
    """A small U-Net: class probabilities of every pixel.

    Each stage is two 3 x 3 convolutions with batch normalisation. On the way down, max pooling over 2 x 2 pixels halves
    the map between stages; on the way up it is doubled and joined with the map of the same size. Images of any size are
    padded at the lower right edge, and the padding is removed at the end. Batch normalisation scales the colours, so
    that pixels may be 0 to 255 or 0 to 1. Weights depend on `keras.utils.set_random_seed`.

    Args:
        height: H, rows of an image.
        width: W, columns.
        num_classes: K, including the background.
        channels: C, colours of an image.
        filters: filters of each stage on the way down, at least one; (16, 32, 64) has 0.1 million weights.
        dropout: share dropped in training in the deepest stage, 0 <= dropout < 1.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Call arguments:
        inputs: images `[B, H, W, C]`, float.

    Returns:
        Class probabilities `[B, H, W, K]`, float32, also under mixed precision. The layer "features" has the last
        hidden map `[B, H, W, filters[0]]`.

    Raises:
        ConfigError: invalid sizes, or an image smaller than the deepest stage needs, `2 ** (len(filters) - 1)`.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import UNet
        >>> base = UNet(height=8, width=8, num_classes=2, filters=(4, 8))
        >>> tuple(base(np.zeros((1, 8, 8, 3), "float32")).shape)  # probabilities of each pixel
        (1, 8, 8, 2)

    Source:
        O. Ronneberger, P. Fischer, T. Brox: U-Net: Convolutional Networks for Biomedical Image Segmentation. MICCAI
        2015; padded convolutions and batch normalisation are later practice.
    """

    @checked(height=SIDE, width=SIDE, num_classes=CLASSES, channels=UNITS, filters=HIDDEN, dropout=DROPOUT)
    def __init__(
        self,
        height: int,
        width: int,
        num_classes: int,
        channels: int = 3,
        filters: Sequence[int] = (16, 32, 64),
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        step = 2 ** (len(filters) - 1)
        if not filters or step > min(height, width):
            most = min(height, width).bit_length()
            raise ConfigError(
                f"UNet: filters must be a list of 1 to {most} numbers for images of {height} x {width}, as each stage "
                f"halves the one before; got {list(filters)}"
            )
        inputs = keras.Input((height, width, channels), name="instances")
        padding = ((0, -height % step), (0, -width % step))
        x = keras.layers.BatchNormalization(momentum=0.9, name="scale")(inputs)
        x = keras.layers.ZeroPadding2D(padding, name="pad")(x)
        past = []
        for stage, number in enumerate(filters):
            if stage:
                past.append(x)
                x = keras.layers.MaxPooling2D(name=f"halve_{stage}")(x)
            x = _twice(x, number, f"down_{stage}")
        x = keras.layers.Dropout(dropout, name="dropout")(x)
        for stage in reversed(range(len(past))):
            x = keras.layers.UpSampling2D(name=f"double_{stage}")(x)
            x = keras.layers.Concatenate(name=f"join_{stage}")([past[stage], x])
            x = _twice(x, filters[stage], f"up_{stage}")
        x = keras.layers.Cropping2D(padding, name="features")(x)
        for layer in class_head(num_classes):
            x = layer(x)
        super().__init__(inputs=inputs, outputs=x, **kwargs)


def _twice(x: Any, number: int, name: str) -> Any:
    """Two convolutions with batch normalisation."""
    for place in ("first", "second"):
        x = keras.layers.Conv2D(
            number, 3, padding="same", use_bias=False, kernel_initializer="he_normal", name=f"{name}_{place}"
        )(x)
        # training on few images has few batches, too few for Keras' momentum of 0.99
        x = keras.layers.BatchNormalization(momentum=0.9, name=f"{name}_{place}_normalize")(x)
        x = keras.layers.ReLU(name=f"{name}_{place}_rectify")(x)
    return x
