"""Configuration and last layers of the zoo's networks."""

import inspect
from typing import Any

import keras

from crowdzoo.backend import Config
from crowdzoo.layers.label_unit import LabelUnit


class Network(keras.Model):
    """A functional model that is saved as the arguments of its constructor."""

    _arguments: Config

    def __new__(cls, *args: Any, **kwargs: Any) -> "Network":
        """Stores the arguments."""
        network = super().__new__(cls, *args, **kwargs)
        signature = inspect.signature(cls.__init__)
        bound = signature.bind_partial(network, *args, **kwargs)  # partial, as Keras creates one without arguments
        bound.apply_defaults()
        kinds = {name: parameter.kind for name, parameter in list(signature.parameters.items())[1:]}
        names = [name for name, kind in kinds.items() if kind != inspect.Parameter.VAR_KEYWORD]
        arguments = {name: _plain(bound.arguments[name]) for name in names if name in bound.arguments}
        object.__setattr__(network, "_arguments", arguments)  # else Keras would track a backbone twice
        return network

    def get_config(self) -> Config:
        """Every argument of the constructor."""
        return {**self._arguments, "name": self.name, "trainable": self.trainable}


def _plain(value: Any) -> Any:
    """Copies an argument for JSON, with NumPy numbers and arrays as Python's."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def class_head(num_classes: int | None) -> list[keras.Layer]:
    """Layers for logits and their softmax, float32, also under mixed precision; empty if num_classes is None."""
    if num_classes is None:
        return []
    softmax = keras.layers.Softmax(dtype=keras.backend.result_type(keras.config.floatx(), "float32"))
    return [keras.layers.Dense(num_classes, name="logits"), softmax]


def rating_head(center: float, unit: float, head: bool = True) -> list[keras.Layer]:
    """Layers for a standardised number and its conversion to the labels' unit; empty without a head."""
    return [keras.layers.Dense(1, name="value"), LabelUnit(center, unit, name="label_unit")] if head else []
