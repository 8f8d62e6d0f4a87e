"""What makes two trainings the same: their data, the model, the settings, and the code."""

import hashlib
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

import crowdzoo
from crowdzoo.backend import flattened_layers
from crowdzoo.training.digest import digest_of

# What decides about what comes out of a training
ROOMS = ("layers", "networks", "optimizers", "training", "backend.py", "losses.py")
# Of configurations: names and numbers that Keras gives, which differ between two equal models of one process
GIVEN = {"name", "inbound_nodes", "input_layers", "output_layers", "shared_object_id", "build_config", "keras_history"}
# Of callbacks: those that look on and change nothing in a training
LOOKING_ON = (
    keras.callbacks.CSVLogger, keras.callbacks.LambdaCallback, keras.callbacks.RemoteMonitor,
    keras.callbacks.TensorBoard, keras.callbacks.TerminateOnNaN,
)  # fmt: skip


def callback_names(callbacks: Any) -> list[str]:
    """Names of the classes of callbacks, sorted, without those that only look on, such as `CSVLogger`.

    Args:
        callbacks: of `keras.Model.fit`; None is none.
    """
    given = keras.tree.flatten(callbacks or [])
    return sorted(type(each).__name__ for each in given if type(each) not in LOOKING_ON)


def identity_of(
    model: Any,
    arguments: Mapping[str, Any],
    data: Any,
    settings: Mapping[str, Any] | None = None,
    *,
    callbacks: Any = None,
) -> dict[str, Any]:
    """What a checkpoint must have in common with a training that goes on from it.

    Args:
        model: a compiled and built model.
        arguments: of the training, such as `epochs`.
        data: what is trained on: arrays, `Annotations`, paths of files, and lists and dictionaries of them.
        settings: what the model was made by, such as its method and its seed; None where nobody knows.
        callbacks: of `keras.Model.fit`; None is none.

    Returns:
        Name of what has to be equal -> its value, or a hash of it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what cannot be saved, which nobody does here
        parts = [_description(layer) for layer in flattened_layers(model)]
        compiled = {**(_plain_config(model.get_compile_config()) or {}), "optimizer": None}
    identity = {
        "crowdzoo": crowdzoo.__version__,
        "Keras": keras.__version__,
        "backend": keras.backend.backend(),
        "code": _code(),
        "settings": {**arguments, **(settings or {}), "callbacks": callback_names(callbacks)},
        "optimizer": {"class": type(model.optimizer).__name__, **_plain_config(model.optimizer.get_config())},
        "model": _hash([parts, compiled]),
        "data": digest_of(data),
    }
    as_stored: dict[str, Any] = json.loads(json.dumps(identity, default=str))  # a tuple is a list there
    return as_stored


def differences(stored: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """What differs between two trainings, as clauses: the versions, else the settings, else model and data.

    Args:
        stored: result of `identity_of`, in a checkpoint.
        here: its result now.
    """
    versions = [name for name in ("crowdzoo", "Keras", "backend") if stored.get(name) != here[name]]
    if versions:
        return [_values(name, stored.get(name), here[name]) for name in versions]
    if stored.get("code") != here["code"]:
        return ["another version of crowdzoo's code wrote it"]
    clauses = _other_values(stored["settings"], here["settings"])
    if not clauses:
        of_optimizer = _other_values(stored["optimizer"], here["optimizer"], " of the optimizer")
        clauses = of_optimizer[:1]  # its class comes first
    if not clauses and stored["model"] != here["model"]:
        clauses.append("its layers, its loss or its metrics are other ones")
    if not clauses and stored["data"] != here["data"]:
        clauses.append("its data are other ones")
    return clauses


def _other_values(there: Mapping[str, Any], here: Mapping[str, Any], more: str = "") -> list[str]:
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return [_values(name + more, there.get(name), here.get(name)) for name in names]


def _values(name: str, stored: Any, value: Any) -> str:
    if name == "callbacks":
        return "its callbacks are {} there and {} here".format(*(", ".join(each) or "none" for each in (stored, value)))
    one, two = (f"{each:.7g}" if isinstance(each, float) else each for each in (stored, value))
    return f"{name} is {one} there and {two} here"


def _description(layer: Any) -> list[Any]:
    try:
        config = _plain_config(layer.get_config())
    except Exception:  # a layer of the user's that does not say what it is made of
        config = None
    return [type(layer).__name__, config, [list(map(str, weight.shape)) for weight in layer.weights]]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _plain_config(value: Any) -> Any:
    """A configuration without what Keras gives each object of a process."""
    if isinstance(value, Mapping):
        return {str(name): _plain_config(part) for name, part in value.items() if name not in GIVEN}
    if isinstance(value, (list, tuple)):
        return [_plain_config(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__


def _code() -> str:
    """Hash of the code that trains."""
    digest, root = hashlib.sha256(), Path(crowdzoo.__file__).parent
    for room in ROOMS:
        place = root / room
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()
