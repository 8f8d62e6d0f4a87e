"""A base and its preprocessor of raw instances as one model."""

from collections.abc import Mapping
from typing import Any

import keras

from crowdzoo.backend import Config, Shape, Tensor
from crowdzoo.errors import ConfigError


@keras.saving.register_keras_serializable(package="crowdzoo")
class Preprocessed(keras.Model):
    """A base that accepts raw strings or images through its preprocessor: a Keras Hub task, or a custom base.

    The preprocessor runs in the model's own graph, on TensorFlow, so that it is saved and served with it.

    Args:
        base: model on the preprocessor's output.
        preprocessor: layer from raw instances, strings `[B]` or images `[B, H, W, C]`, to the base's input, in
            TensorFlow operations; None uses `base.preprocessor`, as in Keras Hub tasks.
        shape: shape of an image, (H, W, C), with None for sizes that differ between batches; None for strings.
        **kwargs: `name` and `trainable` of `keras.Model`.

    Attributes:
        inputs: inputs of the model.

    Call arguments:
        inputs: strings `[B]` or `[B, 1]`, or images; or preprocessed strings, which go to the base directly.

    Returns:
        The base's output.

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
        super().__init__(autocast=False, **kwargs)  # keeps integers unchanged
        self.base = base
        self.preprocessor: Any = getattr(base, "preprocessor", None) if preprocessor is None else preprocessor
        self.shape = shape
        dtype = "string" if shape is None else "float32"
        self.inputs = [keras.KerasTensor((None, *(shape or ())), dtype, name="instances")]
        if self.preprocessor is None:
            raise ConfigError(f"{type(base).__name__} has no preprocessor. Give one: Preprocessed(base, preprocessor).")

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Returns the base's output for raw instances."""
        if self.shape is None:
            if keras.backend.standardize_dtype(getattr(inputs, "dtype", "int32")) != "string":
                return self.base(inputs, training=training)
            inputs = keras.ops.reshape(inputs, (-1,))
        return self.base(self.preprocessor(inputs), training=training)

    def build(self, input_shape: Shape) -> None:
        """Does nothing: the base is built already, and the preprocessor reads its files when called."""
        self.built = True

    def compute_output_spec(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Output spec of the base; the preprocessor is not run, as its files may not be loaded yet."""
        return keras.KerasTensor(self.base.output_shape, self.base.compute_dtype)

    def get_config(self) -> Config:
        """Returns the serialised base and preprocessor; None for the base's own, which is saved with it."""
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
        """Creates a model with new weights from the result of `get_config`."""
        base, preprocessor = (
            keras.saving.deserialize_keras_object(config.pop(name), custom_objects) for name in ("base", "preprocessor")
        )
        return cls(base, preprocessor, **config)
