"""A base with what prepares raw instances for it, in one model."""

from collections.abc import Mapping
from typing import Any

import keras

from crowdzoo.backend import Config, Shape, Tensor
from crowdzoo.errors import ConfigError


@keras.saving.register_keras_serializable(package="crowdzoo")
class Preprocessed(keras.Model):
    """A base that takes raw strings or images, as its preprocessor does: a task of Keras Hub, or a base of your own.

    The preprocessor runs in the model's own graph, on TensorFlow, so that it is saved and served with it.

    Args:
        base: model of what the preprocessor gives.
        preprocessor: layer from raw instances, strings `[B]` or images `[B, H, W, C]`, to what the base takes, in
            TensorFlow's operations; None: the base's own, `base.preprocessor`, as tasks of Keras Hub have it.
        shape: of an image, (H, W, C), None where it may differ between batches; None for strings.
        **kwargs: `keras.Model`'s `name`, `trainable`.

    Attributes:
        inputs: what the model takes.

    Call arguments:
        inputs: strings `[B]` or `[B, 1]`, or images; or what the preprocessor makes of strings, for the base alone.

    Returns:
        What the base gives.

    Raises:
        ConfigError: there is no preprocessor.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from crowdzoo.models import Preprocessed
        >>> words = keras.layers.TextVectorization(vocabulary=["good", "bad"], output_sequence_length=3)
        >>> average = [keras.layers.Embedding(4, 8), keras.layers.GlobalAveragePooling1D()]
        >>> base = keras.Sequential([keras.Input((3,)), *average, keras.layers.Dense(4, activation="softmax")])
        >>> Preprocessed(base, words).predict(np.array(["a good film", "bad"], object), verbose=0).shape
        (2, 4)
    """

    def __init__(self, base: keras.Model, preprocessor: Any = None, shape: Any = None, **kwargs: Any):
        super().__init__(autocast=False, **kwargs)  # whole numbers stay whole
        self.base = base
        self.preprocessor: Any = getattr(base, "preprocessor", None) if preprocessor is None else preprocessor
        self.shape = shape
        dtype = "string" if shape is None else "float32"
        self.inputs = [keras.KerasTensor((None, *(shape or ())), dtype, name="instances")]
        if self.preprocessor is None:
            raise ConfigError(f"{type(base).__name__} has no preprocessor. Give one: Preprocessed(base, preprocessor).")

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """What the base gives for raw instances."""
        if self.shape is None:
            if keras.backend.standardize_dtype(getattr(inputs, "dtype", "int32")) != "string":
                return self.base(inputs, training=training)
            inputs = keras.ops.reshape(inputs, (-1,))
        return self.base(self.preprocessor(inputs), training=training)

    def build(self, input_shape: Shape) -> None:
        """Nothing: the base is built, and the preprocessor looks at its files when it is called."""
        self.built = True

    def compute_output_spec(self, inputs: Tensor, training: bool = False) -> Tensor:
        """That of the base; the preprocessor, whose files may not be loaded yet, is not run."""
        return keras.KerasTensor(self.base.output_shape, self.base.compute_dtype)

    def get_config(self) -> Config:
        """Base and preprocessor, serialised; None for the base's own, which is saved with it."""
        is_of_base = self.preprocessor is getattr(self.base, "preprocessor", None)
        return {
            "base": keras.saving.serialize_keras_object(self.base),
            "preprocessor": None if is_of_base else keras.saving.serialize_keras_object(self.preprocessor),
            "shape": self.shape,
            "name": self.name,
            "trainable": self.trainable,
        }

    @classmethod
    def from_config(cls, config: Config, custom_objects: Mapping[str, type] | None = None) -> "Preprocessed":
        """A model with fresh weights from `get_config`'s result."""
        base, preprocessor = (
            keras.saving.deserialize_keras_object(config.pop(name), custom_objects) for name in ("base", "preprocessor")
        )
        return cls(base, preprocessor, **config)
