"""The identity of a training: its data, model, settings and versions."""

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

import crowdzoo
from crowdzoo.backend import Config, flattened_layers
from crowdzoo.training.digest import digest_of

# Keys of configurations: names and numbers that Keras assigns, which differ between equal models of one process
GIVEN = {"name", "inbound_nodes", "input_layers", "output_layers", "shared_object_id", "build_config", "keras_history"}
# Callbacks that observe a training and change nothing
LOOKING_ON = (
    keras.callbacks.CSVLogger,
    keras.callbacks.LambdaCallback,
    keras.callbacks.RemoteMonitor,
    keras.callbacks.TensorBoard,
    keras.callbacks.TerminateOnNaN,
)
# Messages about hashes that differ
HASHED = {"model": "its layers, loss or metrics are different", "data": "its data are different"}


def identity_of(
    model: keras.Model,
    arguments: Mapping[str, object],
    data: object,
    settings: Mapping[str, object] | None = None,
    *,
    callbacks: Sequence[keras.callbacks.Callback] | None = None,
) -> Config:
    """Values that a checkpoint and a training that continues from it must have in common.

    Args:
        model: a compiled and built model.
        arguments: arguments of the training, such as `epochs`.
        data: training data: arrays, `Annotations`, paths of files, and lists and dictionaries of them.
        settings: settings of the model, such as its method and seed; None if unknown.
        callbacks: callbacks of `keras.Model.fit`, or None. Those that only observe, such as `CSVLogger`, are ignored.

    Returns:
        Name -> value, or a hash of it; causes come before what follows from them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about objects that cannot be saved, which does not matter here
        parts = [_description(layer) for layer in flattened_layers(model)]
        compiled = {**(_plain_config(model.get_compile_config()) or {}), "optimizer": None}
    names = (
        type(callback).__name__ for callback in keras.tree.flatten(callbacks or []) if type(callback) not in LOOKING_ON
    )
    optimizer = {"class": type(model.optimizer).__name__, **_plain_config(model.optimizer.get_config())}
    identity = {
        "crowdzoo": crowdzoo.__version__,
        "Keras": keras.__version__,
        "backend": keras.backend.backend(),
        **arguments,
        **(settings or {}),
        "set of callbacks": ", ".join(sorted(names)) or "none",
        **{f"{name} of the optimizer": value for name, value in optimizer.items()},
        "model": hashlib.sha256(json.dumps([parts, compiled], sort_keys=True).encode()).hexdigest(),
        "data": digest_of(data),
    }
    as_stored: dict[str, Any] = json.loads(json.dumps(identity, default=str))  # JSON turns tuples into lists
    return as_stored


def difference(stored: Config, here: Config) -> str | None:
    """The first difference between two trainings, as a clause; None if they are the same.

    Args:
        stored: result of `identity_of` in a checkpoint.
        here: that of the training that begins.
    """
    for name in (name for name in {**here, **stored} if stored.get(name) != here.get(name)):
        value_there, value_here = (
            f"{value:.7g}" if isinstance(value, float) else value for value in (stored.get(name), here.get(name))
        )
        return HASHED.get(name, f"{name} is {value_there} there and {value_here} here")
    return None


def _description(layer: Any) -> list[Any]:
    try:
        config = _plain_config(layer.get_config())
    except Exception:  # a custom layer without a configuration
        config = None
    return [type(layer).__name__, config, [list(map(str, weight.shape)) for weight in layer.weights]]


def _plain_config(value: Any) -> Any:
    """A configuration without names and numbers that Keras assigns to each object of a process."""
    if isinstance(value, Mapping):
        return {str(name): _plain_config(part) for name, part in value.items() if name not in GIVEN}
    if isinstance(value, (list, tuple)):
        return [_plain_config(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__
