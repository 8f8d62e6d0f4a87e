"""Networks on images: `ImageClassifier`, `ImageRegressor` and their parent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Config, Tensor
from crowdzoo.checks.constraints import CENTER, FLAG, UNIT, Choice, checked
from crowdzoo.errors import ConfigError, bad_setting
from crowdzoo.layers.mirror_and_shift import MirrorAndShift
from crowdzoo.layers.ranges import BATCH, CLASSES, DROPOUT, HIDDEN, PIXEL_SCALES
from crowdzoo.networks.network import Network, class_head, rating_head

_MEAN = (123.675, 116.28, 103.53)
_DEVIATION = (58.395, 57.12, 57.375)
_MEAN_BGR = (103.939, 116.779, 123.68)


class ImageNetwork(Network):
    """Parent of `ImageClassifier` and `ImageRegressor`, which add their own layers after the hidden ones.

    Args:
        height: H, rows of an image.
        width: W, columns.
        filters: filters of each stage of the residual network.
        hidden: units of each hidden layer.
        dropout: share dropped in training before each layer after the convolutions.
        backbone: a network in place of the residual one; or None.
        pixel_scale: values of pixels that the backbone expects.
        fine_tune: whether the backbone's weights are trained.
        augment: whether images are flipped and shifted in training.
        head: function that makes the subclass' own layers after the hidden ones.
        **kwargs: `name` and `trainable` of `keras.Model`.
    """

    @checked(
        height=BATCH,
        width=BATCH,
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
            raise bad_setting("filters", "must be a list of at least one number", filters, type(self).__name__)
        inputs = keras.Input((height, width, 3), name="instances")
        outputs = inputs
        if augment:
            outputs = MirrorAndShift(name="augment")(outputs)
        if backbone is None:
            outputs = _residual(keras.layers.Rescaling(1 / 127.5, -1, name="scale")(outputs), filters)
        else:
            backbone.trainable = fine_tune
            outputs = _scale(outputs, pixel_scale)
            try:
                outputs = backbone(outputs)
            except ValueError as error:
                raise ConfigError(f"the backbone does not take images [B, {height}, {width}, 3]: {error}") from error
            if not hasattr(outputs, "shape") or len(outputs.shape) not in (2, 4):
                raise ConfigError("a backbone must output features [B, D] or maps [B, H, W, D]; this one does not")
        if len(outputs.shape) == 4:
            outputs = keras.layers.GlobalAveragePooling2D(name="pool")(outputs)
        # name by which crowd layers find the features of an instance
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

    def get_config(self) -> Config:
        """Every argument of the constructor."""
        backbone = None if self.backbone is None else keras.saving.serialize_keras_object(self.backbone)
        return {**super().get_config(), "backbone": backbone}

    @classmethod
    def from_config(cls, config: Config, custom_objects: Mapping[str, type] | None = None) -> "ImageNetwork":
        """Makes the model that the configuration describes; its weights are loaded afterwards."""
        backbone = config.get("backbone")
        if isinstance(backbone, dict):
            backbone = keras.saving.deserialize_keras_object(backbone, custom_objects)
        return cls(**{**config, "backbone": backbone})


@keras.saving.register_keras_serializable(package="crowdzoo")
class ImageClassifier(ImageNetwork):
    """A small residual network or a given backbone, hidden ReLU layers with dropout, and a softmax over classes.

    The residual network has a convolution and one residual block for each number of filters, with batch normalisation;
    each stage after the first halves height and width, and the last layer averages over all positions. It is meant for
    training from scratch on hundreds to thousands of images. With fewer, use a pretrained backbone
    (`crowdzoo.models.load_backbone`). Weights and dropout depend on `keras.utils.set_random_seed`.

    Args:
        height: H, rows of an image.
        width: W, columns.
        num_classes: K, number of classes; None leaves out the softmax, for crowd layers that use a hidden layer.
        filters: filters of each stage of the residual network, at least one stage; ignored with a backbone.
        hidden: units of each hidden layer after the convolutions; may be empty.
        dropout: share dropped in training before each dense layer, 0 <= dropout < 1.
        backbone: a Keras model from pixels `[B, H, W, 3]` to features `[B, D]` or maps `[B, h, w, D]`, which are
            averaged; None is the residual network.
        pixel_scale: values of pixels that the backbone expects: "0 to 255", "0 to 1", "-1 to 1", "imagenet" (mean 0 and
            deviation 1 of each colour on ImageNet) or "imagenet-bgr" (mean 0, blue first).
        fine_tune: whether the backbone's weights are trained. Otherwise its batch normalisation is frozen as well.
        augment: whether images are flipped horizontally and shifted by up to a tenth at random in training.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Call arguments:
        inputs: pixels `[B, H, W, 3]`, 0 to 255, as from `crowdzoo.models.ImagePixels`.

    Returns:
        Class probabilities `[B, K]`, rows sum to one, float32, also under mixed precision; without classes the last
        hidden layer's output `[B, units]` (the features if there is no hidden layer).

    Raises:
        ConfigError: invalid sizes, or a backbone that does not accept the images.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import ImageClassifier
        >>> base = ImageClassifier(height=16, width=16, num_classes=4, filters=(8, 16))
        >>> tuple(base(np.zeros((2, 16, 16, 3), "float32")).shape)  # probabilities
        (2, 4)

    Source:
        Residual blocks: K. He, X. Zhang, S. Ren, J. Sun: Deep Residual Learning for Image Recognition. CVPR 2016.
    """

    @checked(num_classes=replace(CLASSES, optional=True))
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
        last_layers = partial(class_head, num_classes)
        super().__init__(
            height, width, filters, hidden, dropout, backbone, pixel_scale, fine_tune, augment, last_layers, **kwargs
        )
        self.num_classes = num_classes


@keras.saving.register_keras_serializable(package="crowdzoo")
class ImageRegressor(ImageNetwork):
    """The network of `ImageClassifier`, with one number in the labels' unit in place of the softmax.

    The network itself outputs a standardised number; `center` and `unit` convert it to the labels' unit (`LabelUnit`).

    Args:
        height: H, rows of an image.
        width: W, columns.
        filters: see `ImageClassifier`, as for the following six arguments.
        hidden: units of each hidden layer.
        dropout: share dropped in training.
        backbone: a Keras model, or None.
        pixel_scale: values of pixels that the backbone expects.
        fine_tune: whether the backbone's weights are trained.
        augment: whether images are flipped and shifted in training.
        center: mean of the ratings, for example from `crowdzoo.models.rating_unit`.
        unit: their standard deviation, above 0.
        head: False leaves out the last layer, for crowd layers that use a hidden layer.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Call arguments:
        inputs: pixels `[B, H, W, 3]`, 0 to 255.

    Returns:
        Estimates of the true rating `[B, 1]`, in the labels' unit, float32, also under mixed precision; without a head
        the last hidden layer's output `[B, units]`.

    Raises:
        ConfigError: invalid sizes, or a backbone that does not accept the images.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import ImageRegressor
        >>> base = ImageRegressor(height=16, width=16, filters=(8, 16), center=3.0, unit=1.2)
        >>> tuple(base(np.zeros((2, 16, 16, 3), "float32")).shape)
        (2, 1)
    """

    @checked(center=CENTER, unit=UNIT, head=FLAG)
    def __init__(
        self,
        height: int,
        width: int,
        filters: Sequence[int] = (32, 64, 128),
        hidden: Sequence[int] = (),
        dropout: float = 0.5,
        backbone: keras.Model | None = None,
        pixel_scale: str = "0 to 255",
        fine_tune: bool = False,
        augment: bool = False,
        center: float = 0.0,
        unit: float = 1.0,
        head: bool = True,
        **kwargs: Any,
    ):
        last_layers = partial(rating_head, center, unit, head)
        super().__init__(
            height, width, filters, hidden, dropout, backbone, pixel_scale, fine_tune, augment, last_layers, **kwargs
        )


def _residual(x: Tensor, filters: Sequence[int]) -> Tensor:
    """A convolution, and a residual block for each number of filters; each but the first halves the size."""

    def convolve(x: Tensor, number: int, size: int, stride: int, name: str) -> Tensor:
        x = keras.layers.Conv2D(
            number, size, stride, "same", use_bias=False, kernel_initializer="he_normal", name=name
        )(x)
        # training on few images has few batches, too few for Keras' momentum of 0.99
        return keras.layers.BatchNormalization(momentum=0.9, name=f"{name}_normalize")(x)

    x = ops.relu(convolve(x, filters[0], 3, 2, "begin"))
    for stage, number in enumerate(filters):
        name = f"stage_{stage}"
        stride = 1 if stage == 0 else 2
        y = ops.relu(convolve(x, number, 3, stride, f"{name}_first"))
        y = convolve(y, number, 3, 1, f"{name}_second")
        if stride > 1:
            x = convolve(x, number, 1, stride, f"{name}_past")
        x = ops.relu(x + y)
    return x


def _scale(pixels: Tensor, scale: str) -> Tensor:
    """Scales pixels of 0 to 255 for a backbone."""
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
