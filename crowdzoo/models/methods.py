"""The deep methods by the names that configurations and the command line use."""

import inspect
from collections.abc import Mapping
from typing import Any

from crowdzoo.errors import ConfigError, did_you_mean

__all__ = ["AGGREGATED", "METHODS", "check_method", "create_crowd_layer", "crowd_layer_class"]

# Trains on one label distribution a task, which an aggregation made: no crowd layer
AGGREGATED = "aggregated"

# name -> class of the crowd layer; read when first used, because Keras takes seconds to import
_LAYERS = {
    "crowdsourced-layer": "CrowdsourcedLayer",
    "deep-em": "DeepEM",
    "cross-fitted-em": "CrossFittedEM",
    "ccem": "ConfusionMatrices",
    "geo-crowd-net": "GeoCrowdNet",
    "trace-regularization": "TraceRegularization",
    "pooled-confusions": "PooledConfusions",
    "conal": "CoNAL",
    "union-net": "UnionNet",
    "max-mig": "MaxMIG",
    "doctor-net": "DoctorNet",
    "lia": "LIA",
    "waum": "WAUM",
}
METHODS = (*_LAYERS, AGGREGATED)

# What the data decide, not the user
_FROM_DATA = ("num_annotators", "num_classes")
_KERAS = ("self", "name", "dtype", "trainable", "kwargs")


def crowd_layer_class(method: str) -> Any:
    """The crowd layer's class of a method.

    Args:
        method: a name in `METHODS`.

    Returns:
        A subclass of `CrowdLayer`; None for "aggregated", which has no crowd layer.

    Raises:
        ConfigError: an unknown method, with the nearest known one.
    """
    if method == AGGREGATED:
        return None
    if method not in _LAYERS:
        raise ConfigError(
            f"unknown method {method!r}; choose one of {', '.join(METHODS)}.{did_you_mean(method, METHODS)}"
        )
    from crowdzoo import layers

    return getattr(layers, _LAYERS[method])


def create_crowd_layer(
    method: str, num_annotators: int, num_classes: int, arguments: Mapping[str, Any] | None = None
) -> Any:
    """A method's crowd layer for given data.

    Args:
        method: a name in `METHODS`.
        num_annotators: R.
        num_classes: K.
        arguments: the method's hyperparameters: arguments of its layer.

    Returns:
        The layer, not built yet; None for "aggregated".

    Raises:
        ConfigError: an unknown method or hyperparameter, or a value that makes no sense; it names it.
    """
    layer, arguments = crowd_layer_class(method), arguments or {}
    known = [] if layer is None else _hyperparameters(layer)
    for name in arguments:
        if name not in known:
            there_are = f"there are {', '.join(known)}" if known else "it has none"
            raise ConfigError(f"method {method} has no setting {name!r}; {there_are}.{did_you_mean(name, known)}")
    if layer is None:
        return None
    sizes = {"num_annotators": num_annotators, "num_classes": num_classes}
    parameters = inspect.signature(layer.__init__).parameters
    given = {name: value for name, value in sizes.items() if name in parameters}
    try:
        return layer(**given, **arguments, name="crowd")
    except ValueError as error:
        raise ConfigError(str(error)) from error
    except TypeError as error:  # such as a word where a number belongs
        raise ConfigError(f"method {method} cannot use {dict(arguments)}: {error}") from error


def check_method(method: str, arguments: Mapping[str, Any]) -> None:
    """Raises ConfigError where a method or its hyperparameters cannot be used; only the latter need Keras."""
    if arguments or method not in METHODS:
        create_crowd_layer(method, 2, 2, arguments)


def _hyperparameters(layer: Any) -> list[str]:
    # of the constructor: a class that inherits it has Keras' own signature
    return [name for name in inspect.signature(layer.__init__).parameters if name not in (*_FROM_DATA, *_KERAS)]
