"""What the zoo's networks have in common: their configuration, and their last layers."""

import inspect
from typing import Any

import keras

from crowdzoo.backend import Config
from crowdzoo.layers.label_unit import LabelUnit


class Network(keras.Model):
    """A functional model that is saved as the arguments of its constructor."""

    _arguments: Config

    def __new__(cls, *args: Any, **kwargs: Any) -> "Network":
        """Notes the arguments."""
        network = super().__new__(cls, *args, **kwargs)
        signature = inspect.signature(cls.__init__)
        bound = signature.bind_partial(network, *args, **kwargs)  # partial, as Keras makes one without arguments
        bound.apply_defaults()
        kinds = {name: parameter.kind for name, parameter in list(signature.parameters.items())[1:]}
        names = [name for name, kind in kinds.items() if kind != inspect.Parameter.VAR_KEYWORD]
        arguments = {name: _plain(bound.arguments[name]) for name in names if name in bound.arguments}
        object.__setattr__(network, "_arguments", arguments)  # Keras would count a backbone among them twice
        return network

    def get_config(self) -> Config:
        """Every argument of the constructor."""
        return {**self._arguments, "name": self.name, "trainable": self.trainable}


def _plain(value: Any) -> Any:
    """An argument as JSON has it, apart from the caller's lists; NumPy's numbers and arrays as Python's."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def class_head(num_classes: int | None) -> list[keras.Layer]:
    """Logits and their softmax, float32 under mixed precision too; none of None classes."""
    if num_classes is None:
        return []
    softmax = keras.layers.Softmax(dtype=keras.backend.result_type(keras.config.floatx(), "float32"))
    return [keras.layers.Dense(num_classes, name="logits"), softmax]


def rating_head(center: float, unit: float, head: bool = True) -> list[keras.Layer]:
    """A number about zero, turned into the labels' unit; nothing without a head."""
    return [keras.layers.Dense(1, name="value"), LabelUnit(center, unit, name="label_unit")] if head else []
