"""Random changes of images in training, so that a model does not memorise them."""

from typing import Any

import keras
from keras import ops

from crowdzoo.backend import Tensor
from crowdzoo.checks.constraints import Number, checked


@keras.saving.register_keras_serializable(package="crowdzoo")
class MirrorAndShift(keras.layers.Layer):
    """Flips half of the images horizontally and shifts each by whole pixels, in training only.

    Pixels that a shift leaves empty show the image's edge mirrored. Keras' own layers of this kind also change images
    when a model is called without `training=False`.

    Args:
        share: largest shift, as a share of height and width, 0 to 0.5.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: images `[B, H, W, C]`.
        training: whether to change them.

    Returns:
        Images of the same shape.

    Raises:
        ConfigError: `share` is out of its range.
    """

    @checked(share=Number(0, 0.5))
    def __init__(self, share: float = 0.1, **kwargs: Any):
        super().__init__(**kwargs)
        self.share = float(share)
        self.seed_generator = keras.random.SeedGenerator()

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """See the class."""
        if not training:
            return inputs
        number = ops.shape(inputs)[0]
        mirrored = keras.random.uniform((number, 1, 1, 1), seed=self.seed_generator) < 0.5
        images = ops.where(mirrored, ops.flip(inputs, axis=2), inputs)
        for axis in (1, 2):
            size = images.shape[axis]
            most = int(self.share * size)
            steps = keras.random.randint((number, 1), -most, most + 1, seed=self.seed_generator)
            places = ops.abs(ops.arange(size, dtype="int32")[None] + ops.cast(steps, "int32"))
            places = size - 1 - ops.abs(size - 1 - places)
            shape = (-1, size, 1, 1) if axis == 1 else (-1, 1, size, 1)
            images = ops.take_along_axis(images, ops.broadcast_to(ops.reshape(places, shape), ops.shape(images)), axis)
        return images
