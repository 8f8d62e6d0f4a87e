"""What the zoo's networks on images have in common."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from crowdzoo.errors import ConfigError
from crowdzoo.layers.mirror_and_shift import MirrorAndShift

__all__ = ["ImageNetwork"]

_MEAN = (123.675, 116.28, 103.53)
_DEVIATION = (58.395, 57.12, 57.375)
_MEAN_BGR = (103.939, 116.779, 123.68)


class ImageNetwork(keras.Model):
    """Parent of `ImageClassifier` and `ImageRegressor`, which have layers of their own after the hidden ones.

    Args:
        height: H, rows of an image.
        width: W, columns.
        filters: of each stage of the residual network.
        hidden: units of each hidden layer.
        dropout: share dropped in training, before each of the layers that follow the convolutions.
        backbone: a network in place of the residual one; or None.
        pixel_scale: what the backbone takes.
        fine_tune: whether the backbone's weights are trained.
        augment: whether images are mirrored and shifted in training.
        head: makes the child's own layers, once the hidden ones are made.
        **kwargs: `keras.Model`'s `name`, `trainable`.
    """

    def __init__(
        self,
        height: int,
        width: int,
        filters: Sequence[int],
        hidden: Sequence[int],
        dropout: float,
        backbone: keras.Model | None,
        pixel_scale: str,
        fine_tune: bool,
        augment: bool,
        head: Callable[[], list[Any]],
        **kwargs: Any,
    ):
        if not filters:
            raise ConfigError(f"{type(self).__name__}: filters must be a list of at least one number, got {filters!r}")
        inputs = keras.Input((height, width, 3), name="instances")
        outputs = inputs
        if augment:
            outputs = MirrorAndShift(name="augment")(outputs)
        if backbone is None:
            outputs = _residual(keras.layers.Rescaling(1 / 127.5, -1, name="scale")(outputs), filters)
        else:
            backbone.trainable = fine_tune
            outputs = _scaled(outputs, pixel_scale)
            try:
                outputs = backbone(outputs)
            except ValueError as error:
                raise ConfigError(f"the backbone does not take images [B, {height}, {width}, 3]: {error}") from error
            if not hasattr(outputs, "shape") or len(outputs.shape) not in (2, 4):
                raise ConfigError(
                    "a backbone gives features [B, D] or maps [B, H, W, D] of an image; this one does not"
                )
        if len(outputs.shape) == 4:
            outputs = keras.layers.GlobalAveragePooling2D(name="pool")(outputs)
        # by this name crowd layers find the features of an instance
        outputs = keras.layers.Identity(name="features")(outputs)
        for number, units in enumerate(hidden):
            if dropout:
                outputs = keras.layers.Dropout(dropout, name=f"dropout_{number}")(outputs)
            outputs = keras.layers.Dense(units, activation="relu", name=f"hidden_{number}")(outputs)
        last = head()
        if dropout and last:
            outputs = keras.layers.Dropout(dropout, name="dropout")(outputs)
        for layer in last:
            outputs = layer(outputs)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.backbone = backbone
        self.settings = {
            "height": height, "width": width, "filters": list(filters), "hidden": list(hidden),
            "dropout": float(dropout), "pixel_scale": pixel_scale, "fine_tune": fine_tune,
            "augment": augment,
        }  # fmt: skip

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        backbone = None if self.backbone is None else keras.saving.serialize_keras_object(self.backbone)
        return {**self.settings, "backbone": backbone, "name": self.name, "trainable": self.trainable}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Makes the model that the configuration describes; its weights are loaded afterwards."""
        backbone = config.get("backbone")
        if isinstance(backbone, dict):
            backbone = keras.saving.deserialize_keras_object(backbone, custom_objects)
        return cls(**{**config, "backbone": backbone})


def _residual(x: Any, filters: Sequence[int]) -> Any:
    """A convolution, and a residual block for each number of filters; each but the first halves the size."""

    def convolved(x: Any, number: int, size: int, stride: int, name: str) -> Any:
        x = keras.layers.Conv2D(
            number, size, stride, "same", use_bias=False, kernel_initializer="he_normal", name=name
        )(x)
        # few batches are seen in a training on few images, too few for Keras' momentum of 0.99
        return keras.layers.BatchNormalization(momentum=0.9, name=f"{name}_normalize")(x)

    x = ops.relu(convolved(x, filters[0], 3, 2, "begin"))
    for stage, number in enumerate(filters):
        name = f"stage_{stage}"
        stride = 1 if stage == 0 else 2
        y = ops.relu(convolved(x, number, 3, stride, f"{name}_first"))
        y = convolved(y, number, 3, 1, f"{name}_second")
        if stride > 1:
            x = convolved(x, number, 1, stride, f"{name}_past")
        x = ops.relu(x + y)
    return x


def _scaled(pixels: Any, scale: str) -> Any:
    """Pixels of 0 to 255 as a backbone takes them."""
    if scale == "0 to 1":
        return keras.layers.Rescaling(1 / 255, name="scale")(pixels)
    if scale == "-1 to 1":
        return keras.layers.Rescaling(1 / 127.5, -1, name="scale")(pixels)
    if scale == "imagenet":
        squares = [deviation**2 for deviation in _DEVIATION]
        return keras.layers.Normalization(mean=_MEAN, variance=squares, name="scale")(pixels)
    if scale == "imagenet-bgr":
        layer = keras.layers.Normalization(mean=_MEAN_BGR, variance=(1.0, 1.0, 1.0), name="scale")
        return layer(ops.flip(pixels, axis=-1))
    return pixels
