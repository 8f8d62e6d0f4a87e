"""What makes two trainings the same: their data, the model, the settings, and the versions."""

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

# Of configurations: names and numbers that Keras gives, which differ between two equal models of one process
GIVEN = {"name", "inbound_nodes", "input_layers", "output_layers", "shared_object_id", "build_config", "keras_history"}
# Of callbacks: those that look on and change nothing in a training
LOOKING_ON = (
    keras.callbacks.CSVLogger,
    keras.callbacks.LambdaCallback,
    keras.callbacks.RemoteMonitor,
    keras.callbacks.TensorBoard,
    keras.callbacks.TerminateOnNaN,
)
# What is said of a hash that differs
HASHED = {"model": "its layers, its loss or its metrics are other ones", "data": "its data are other ones"}


def identity_of(
    model: keras.Model,
    arguments: Mapping[str, object],
    data: object,
    settings: Mapping[str, object] | None = None,
    *,
    callbacks: Sequence[keras.callbacks.Callback] | None = None,
) -> Config:
    """What a checkpoint must have in common with a training that goes on from it.

    Args:
        model: a compiled and built model.
        arguments: of the training, such as `epochs`.
        data: what is trained on: arrays, `Annotations`, paths of files, and lists and dictionaries of them.
        settings: what the model was made by, such as its method and its seed; None where nobody knows.
        callbacks: of `keras.Model.fit`, or None. Those that only look on, such as `CSVLogger`, do not count.

    Returns:
        Name of what has to be equal -> its value, or a hash of it; first what decides about what comes later.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what cannot be saved, which nobody does here
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
    as_stored: dict[str, Any] = json.loads(json.dumps(identity, default=str))  # a tuple is a list there
    return as_stored


def difference(stored: Config, here: Config) -> str | None:
    """The first of what differs between two trainings, as a clause; None where they are the same.

    Args:
        stored: result of `identity_of`, in a checkpoint.
        here: the same of the training that begins.
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
    except Exception:  # a layer of the user's that does not say what it is made of
        config = None
    return [type(layer).__name__, config, [list(map(str, weight.shape)) for weight in layer.weights]]


def _plain_config(value: Any) -> Any:
    """A configuration without what Keras gives each object of a process."""
    if isinstance(value, Mapping):
        return {str(name): _plain_config(part) for name, part in value.items() if name not in GIVEN}
    if isinstance(value, (list, tuple)):
        return [_plain_config(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__
