"""The deep methods by the names that configurations and the command line use."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from crowdzoo.data.label_kinds import LABEL_KINDS, label_kind
from crowdzoo.errors import ConfigError, short_repr, unknown
from crowdzoo.plugins import Table, package_of

if TYPE_CHECKING:
    from crowdzoo.layers.crowd_layer import CrowdLayer

# Trains on one label distribution per task, from an aggregation; without a crowd layer
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

# The same for ratings
_RATING_LAYERS = {
    "crowdsourced-layer": "CrowdsourcedLayer",
    "rating-em": "RatingEM",
}
RATING_METHODS = (*_RATING_LAYERS, AGGREGATED)

# And for tagged sentences
_SEQUENCE_LAYERS = {name: _LAYERS[name] for name in ("crowdsourced-layer", "deep-em", "ccem", "doctor-net")}
SEQUENCE_METHODS = (*_SEQUENCE_LAYERS, AGGREGATED)

# And for preferences, on a network of scores
_PAIR_LAYERS = {"pair-annotators": "PairAnnotators"}
PREFERENCE_METHODS = (*_PAIR_LAYERS, AGGREGATED)

# And for regions of images, on a network of pixels; the first is the default (docs/papers/zhang.md)
_MASK_LAYERS = {AGGREGATED: None, "spatial-confusions": "SpatialConfusions"}
_MASK_LAYERS |= {name: _LAYERS[name] for name in ("trace-regularization", "ccem")}

# By the kind of a layer's labels; other kinds use those of classes
_LAYERS_OF: dict[str, Mapping[str, str | None]] = {
    "regression": _RATING_LAYERS,
    "sequence": _SEQUENCE_LAYERS,
    "preference": _PAIR_LAYERS,
    "segmentation": _MASK_LAYERS,
}

# Arguments that the data determine, not the user
_FROM_DATA = ("num_annotators", "num_classes", "kind", "center", "unit", "num_annotations")
# Arguments of a layer that ratings share with classes
_NOT_FOR_RATINGS = ("majority_epochs",)
_KERAS = ("self", "name", "dtype", "trainable", "kwargs")


def default_method(kind: str) -> str:
    """Name of the default method for a kind of labels.

    Args:
        kind: kind of labels, "classification", "regression", "sequence", "preference" or "region".

    Raises:
        ConfigError: an unknown kind, or one that no method learns from.
    """
    facts = label_kind(kind)
    if not facts.trained:
        fix = f"Aggregate them (crowdzoo aggregate FILE --kind {kind} --out DIR), and train your own model"
        raise ConfigError(f"no method learns from {facts.title}. {fix}.")
    return "ccem" if facts.one_class else next(iter(methods_of(kind)))  # docs/methods.md


def methods_of(kind: str) -> Table:
    """The methods for a kind of labels, by name, including those of packages and scripts.

    Args:
        kind: kind of labels, "classification", "regression", "sequence", "preference" or "region".

    Returns:
        Name -> class of the layer; for crowdzoo's own its name in `crowdzoo.layers`, for "aggregated" None.

    Raises:
        ConfigError: an unknown kind.
    """
    facts = label_kind(kind)
    own_methods = {**_LAYERS_OF.get(facts.learned.name, _LAYERS), AGGREGATED: None} if facts.trained else {}
    return Table("layer", own_methods, partial(_for_kind, kind))


def _for_kind(kind: str, layer: Any) -> Any:
    """Checks a class that is added to the `Table` of the methods for a kind of labels."""
    import keras

    from crowdzoo.layers import CrowdLayer

    if CrowdLayer not in getattr(layer, "__mro__", ()):
        raise ConfigError("a layer is a subclass of crowdzoo.layers.CrowdLayer")
    package, name = layer.__module__.partition(".")[0], keras.saving.get_registered_name(layer)
    if package_of(layer) and name != f"{package}>{layer.__name__}":
        raise ConfigError(
            f"saved models could not load {layer.__name__}. Write above the class: "
            f"@keras.saving.register_keras_serializable(package={package!r})"
        )
    return layer if label_kind(kind).learned.name in layer.traits.kinds else None


def crowd_layer_class(method: str, kind: str = "classification") -> Any:
    """The crowd layer's class of a method.

    Args:
        method: a name in `METHODS` (for ratings `RATING_METHODS`, for sentences `SEQUENCE_METHODS`, for preferences
            `PREFERENCE_METHODS`).
        kind: kind of labels, "classification", "regression", "sequence", "preference" or "region".

    Returns:
        A subclass of `CrowdLayer`; None for "aggregated", which has no crowd layer.

    Raises:
        ConfigError: an unknown method, with the nearest known one; or one that is not for this kind.
    """
    known = methods_of(kind)
    if not isinstance(method, str) or method not in known:
        if isinstance(method, str) and any(method in methods_of(other) for other in LABEL_KINDS):
            raise ConfigError(f"method {method!r} is not for kind {kind}; choose one of {', '.join(known)}.")
        raise ConfigError(unknown("method", method, known))
    layer = known[method]
    if not isinstance(layer, str):
        return layer
    from crowdzoo import layers

    return getattr(layers, layer)


def hyperparameters_of(method: str, kind: str = "classification") -> tuple[str, ...]:
    """Names of the settings of a method: arguments of its layer that the data do not determine.

    Args:
        method: as for `crowd_layer_class`.
        kind: kind of labels.

    Raises:
        ConfigError: an unknown method, or one that is not for this kind.
    """
    layer = crowd_layer_class(method, kind)
    if layer is None:
        return ()
    left_out = (*_FROM_DATA, *_KERAS, *(_NOT_FOR_RATINGS if label_kind(kind).has_numbers else ()))
    # signature of the constructor: a class that inherits it has Keras' own signature
    epochs = ["majority_epochs"] * layer.traits.starts_from_votes
    names = dict.fromkeys((*inspect.signature(layer.__init__).parameters, *epochs))
    return tuple(name for name in names if name not in left_out)


def create_crowd_layer(
    method: str,
    num_annotators: int,
    num_classes: int,
    arguments: Mapping[str, Any] | None = None,
    *,
    kind: str = "classification",
    center: float = 0.0,
    unit: float = 1.0,
    num_annotations: int | None = None,
) -> CrowdLayer | None:
    """Creates the crowd layer of a method for given data.

    Args:
        method: a name in `METHODS` (for ratings `RATING_METHODS`, for sentences `SEQUENCE_METHODS`, for preferences
            `PREFERENCE_METHODS`).
        num_annotators: R.
        num_classes: K; ratings have none.
        arguments: the method's hyperparameters: arguments of its layer. For ratings, the crowdsourced layer's
            connection is "B" by default.
        kind: kind of labels, "classification", "regression", "sequence", "preference" or "region".
        center: mean of the ratings, for a regression; see `rating_unit`.
        unit: their standard deviation.
        num_annotations: A, number of annotations for preferences; None is 1.

    Returns:
        The layer, not built yet; None for "aggregated".

    Raises:
        ConfigError: an unknown method or hyperparameter, or an invalid value; the message names it.
    """
    layer, arguments = crowd_layer_class(method, kind), {} if arguments is None else arguments
    if not isinstance(arguments, Mapping):
        raise ConfigError(f"method {method}: its settings must be names and values, got {short_repr(arguments)}.")
    known, facts = hyperparameters_of(method, kind), label_kind(kind)
    for name in arguments:
        if name not in known:
            if not known:
                raise ConfigError(f"method {method} has no settings, got {name!r}.")
            raise ConfigError(unknown(f"setting of {method}", name, known))
    if layer is None:
        return None
    sizes: dict[str, Any] = {
        "num_annotators": num_annotators,
        "num_classes": num_classes,
        "kind": facts.learned.name,
        "num_annotations": num_annotations or 1,
        "center": center,
        "unit": unit,
    }
    parameters = inspect.signature(layer.__init__).parameters
    layer_sizes = {name: value for name, value in sizes.items() if name in parameters}
    if facts.has_numbers and "connection" in parameters:
        arguments = {"connection": "B", **arguments}
    try:
        return layer(**layer_sizes, **arguments, name="crowd")
    except ValueError as error:
        raise ConfigError(str(error)) from error
    except TypeError as error:  # such as a string in place of a number
        raise ConfigError(f"method {method} cannot use {dict(arguments)}: {error}") from error


def check_method(method: str, arguments: Mapping[str, object], kind: str = "classification") -> None:
    """Raises ConfigError for an invalid method or hyperparameter; only hyperparameters need Keras."""
    if not isinstance(arguments, Mapping) or arguments or method not in methods_of(kind):
        create_crowd_layer(method, 2, 2, arguments, kind=kind)
