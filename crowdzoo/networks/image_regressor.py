"""From an image to one number."""

from collections.abc import Sequence
from typing import Any

import keras

from crowdzoo.checks.constraints import FLAG, Choice, checked
from crowdzoo.layers.label_unit import LabelUnit
from crowdzoo.layers.ranges import BATCH, CENTER, DROPOUT, HIDDEN, PIXEL_SCALES, UNIT
from crowdzoo.networks.image_network import ImageNetwork

__all__ = ["ImageRegressor"]


@keras.saving.register_keras_serializable(package="crowdzoo")
class ImageRegressor(ImageNetwork):
    """The network of `ImageClassifier`, with one number in the labels' unit in place of the softmax.

    The network itself gives a number about zero; `center` and `unit` turn it into the labels' unit (`LabelUnit`).

    Args:
        height: H, rows of an image.
        width: W, columns.
        filters: see `ImageClassifier`, as for the six arguments that follow.
        hidden: units of each hidden layer.
        dropout: share dropped in training.
        backbone: a Keras model, or None.
        pixel_scale: what the backbone takes.
        fine_tune: whether the backbone's weights are trained.
        augment: whether images are mirrored and shifted in training.
        center: mean of the ratings, such as of `crowdzoo.models.rating_unit`.
        unit: their standard deviation, above 0.
        head: False leaves out the last layer, for crowd layers that stand on a hidden layer (`RatingDoctorNet`).
        **kwargs: `keras.Model`'s `name`, `trainable`.

    Call arguments:
        inputs: pixels `[B, H, W, 3]`, 0 to 255.

    Returns:
        Estimates of the true rating `[B, 1]`, in the labels' unit, float32 under mixed precision too; without a head
        the last hidden layer's output `[B, units]`.

    Raises:
        ConfigError: impossible sizes, or a backbone that does not take the images.
    """

    @checked(
        height=BATCH, width=BATCH, filters=HIDDEN, hidden=HIDDEN, dropout=DROPOUT, pixel_scale=Choice(PIXEL_SCALES),
        fine_tune=FLAG, augment=FLAG, center=CENTER, unit=UNIT, head=FLAG,
    )  # fmt: skip
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
        def layers() -> list[Any]:
            last = [keras.layers.Dense(1, name="value"), LabelUnit(center, unit, name="label_unit")]
            return last if head else []

        super().__init__(
            height, width, filters, hidden, dropout, backbone, pixel_scale, fine_tune, augment, layers, **kwargs
        )
        self.scale = {"center": float(center), "unit": float(unit), "head": head}

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {**super().get_config(), **self.scale}
