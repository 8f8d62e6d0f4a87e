"""The last layers of a network: probabilities of classes, or a number in the labels' unit."""

import keras

from crowdzoo.layers.label_unit import LabelUnit


def class_head(num_classes: int | None) -> list[keras.Layer]:
    """Logits and their softmax, float32 under mixed precision too; none of None classes."""
    if num_classes is None:
        return []
    softmax = keras.layers.Softmax(dtype=keras.backend.result_type(keras.config.floatx(), "float32"))
    return [keras.layers.Dense(num_classes, name="logits"), softmax]


def rating_head(center: float, unit: float, head: bool = True) -> list[keras.Layer]:
    """A number about zero, turned into the labels' unit; nothing without a head."""
    return [keras.layers.Dense(1, name="value"), LabelUnit(center, unit, name="label_unit")] if head else []
