"""What makes two trainings the same: their data, the model as it begins, settings, and the code."""

import hashlib
import inspect
import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

import crowdzoo
from crowdzoo.backend import flattened_layers
from crowdzoo.files.regular import open_regular
from crowdzoo.reading.instances.opened import opened
from crowdzoo.training.training_state import exact_array

__all__ = ["callback_names", "callback_settings", "differences", "digest_of", "identity_of"]

# Rooms whose code decides about what comes out of a training
ROOMS = ("layers", "models", "optimizers", "training", "backend.py", "losses.py")
# Of configurations: names and numbers that Keras gives, which differ between two equal models of one process
GIVEN = {"name", "inbound_nodes", "input_layers", "output_layers", "shared_object_id", "build_config", "keras_history"}
# Of callbacks: those that look on and change nothing in a training
LOOKING_ON = (
    keras.callbacks.CSVLogger, keras.callbacks.LambdaCallback, keras.callbacks.RemoteMonitor,
    keras.callbacks.TensorBoard, keras.callbacks.TerminateOnNaN,
)  # fmt: skip
VERSIONS = ("crowdzoo", "Keras", "backend", "code")
# Settings that do not decide about what is trained on, as a method does whose targets are computed
APART_FROM_DATA = {"batch_size", "callbacks", "dropout", "epochs", "learning_rate", "shuffle"}
ROWS = 256  # of texts and images, hashed at a time
BYTES = 1 << 20  # of a file, read at a time


def callback_names(callbacks: Any) -> list[str]:
    """Names of the classes of callbacks, sorted, without those that only look on, such as `CSVLogger`.

    Args:
        callbacks: of `keras.Model.fit`; None is none.
    """
    given = keras.tree.flatten(callbacks or [])
    return sorted(type(each).__name__ for each in given if type(each) not in LOOKING_ON)


def callback_settings(callbacks: Any) -> dict[str, Any]:
    """Settings of callbacks that change something in a training.

    Args:
        callbacks: as for `callback_names`.

    Returns:
        "patience of EarlyStopping" -> 3, and so on: arguments of the class that the callback keeps under their names
        and that are numbers or texts.
    """
    changing = [each for each in keras.tree.flatten(callbacks or []) if type(each) not in LOOKING_ON]
    number: Counter[str] = Counter()
    found = {}
    for each in sorted(changing, key=lambda callback: type(callback).__name__):  # of one class as they come
        name = type(each).__name__
        number[name] += 1
        which = f"{name} {number[name]}" if number[name] > 1 else name
        for argument in inspect.signature(type(each)).parameters:
            value = vars(each).get(argument)
            if argument == "min_delta" and isinstance(value, (int, float)):
                value = abs(value)  # Keras turns its sign in each training
            if argument != "verbose" and isinstance(value, (bool, int, float, str)):
                found[f"{argument} of {which}"] = value
    return found


def digest_of(data: Any) -> str:
    """A hash of data.

    Args:
        data: arrays, `Annotations`, paths of files, and lists and dictionaries of them.
    """
    digest = hashlib.sha256()
    _add(digest, data)
    return digest.hexdigest()


def identity_of(
    model: Any,
    arguments: Mapping[str, Any],
    data: Any,
    settings: Mapping[str, Any] | None = None,
    *,
    callbacks: Any = None,
    validation: Any = None,
) -> dict[str, Any]:
    """What a checkpoint must have in common with a training that goes on from it.

    Args:
        model: a compiled and built model, as it stands before the first epoch.
        arguments: of the training, such as `epochs`.
        data: what is trained on: arrays, `Annotations`, paths of files, and lists and dictionaries of them.
        settings: what the model was made by, such as its method and its seed; None where nobody knows.
        callbacks: of `keras.Model.fit`; None is none.
        validation: what the model is validated with, as `data`; None where that is nothing, or batches of the user's
            own, which are not looked at.

    Returns:
        Name of what has to be equal -> its value, or a hash of it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what cannot be saved, which nobody does here
        layers = [[type(layer).__name__, _hash(_description(layer))] for layer in flattened_layers(model)]
        compiled = {**(_plain_config(model.get_compile_config()) or {}), "optimizer": None}
    digest = hashlib.sha256()
    for variable in [*model.weights, *(model.optimizer.variables if model.optimizer.built else ())]:
        _add(digest, exact_array(np.asarray(ops.convert_to_numpy(variable))))
    identity = {
        "crowdzoo": crowdzoo.__version__,
        "Keras": keras.__version__,
        "backend": keras.backend.backend(),
        "code": _code(),
        "settings": settings if settings is None else dict(settings),
        "arguments": {**arguments, "callbacks": callback_names(callbacks)},
        "callback_settings": callback_settings(callbacks),
        "validation": None if validation is None else digest_of(validation),
        "layers": layers,
        "optimizer": {"class": type(model.optimizer).__name__, **_plain_config(model.optimizer.get_config())},
        "loss": _hash(compiled),
        "data": digest_of(data),
        "weights": digest.hexdigest(),
    }
    as_stored: dict[str, Any] = json.loads(json.dumps(identity, default=str))  # a tuple is a list there
    return as_stored


def differences(stored: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """What differs between two trainings, as clauses, without what only follows from something else that differs.

    Args:
        stored: result of `identity_of`, in a checkpoint.
        here: its result now.
    """
    names = {name for name in here if stored.get(name) != here[name]}
    if versions := [name for name in VERSIONS if name in names]:
        return [
            "another version of crowdzoo's code wrote it"
            if name == "code"
            else _values(name, stored.get(name), here[name])
            for name in versions
        ]
    there, now = (
        {**each["arguments"], **(each["settings"] or {}), **each.get("callback_settings", {})}
        for each in (stored, here)
    )
    other = [name for name in {**there, **now} if there.get(name) != now.get(name)]
    apart = {"callbacks"}  # said below
    if "callbacks" in other:
        apart |= {*stored.get("callback_settings", {}), *here["callback_settings"]}
    clauses = [_values(name, there.get(name), now.get(name)) for name in other if name not in apart]
    if "callbacks" in other:
        one, two = (", ".join(each.get("callbacks") or ["none"]) for each in (there, now))
        clauses.append(f"its callbacks are {one} there and {two} here")
    if "data" in names and ("settings" not in names or APART_FROM_DATA.issuperset(other)):
        clauses.append("its data are other ones")
    elif "validation" in names:
        clauses.append("its validation data are other ones")
    if "settings" not in names:
        if "layers" in names:
            clauses.append(_other_layers(stored["layers"], here["layers"]))
        if "optimizer" in names:
            clauses += _other_optimizer(stored["optimizer"], here["optimizer"])
        if "loss" in names:
            clauses.append("its loss or its metrics are other ones")
    if "weights" in names and not names & {"settings", "data", "layers"}:
        hint = " (call keras.utils.set_random_seed before the model is made)" if here["settings"] is None else ""
        clauses.append(f"it began with other weights{hint}")
    return clauses


def _values(name: str, stored: Any, value: Any) -> str:
    one, two = (f"{each:.7g}" if isinstance(each, float) else each for each in (stored, value))
    return f"{name} is {one} there and {two} here"


def _other_layers(stored: Sequence[Any], here: Sequence[Any]) -> str:
    there, now = (Counter(kind for kind, _ in layers) for layers in (stored, here))
    if there != now:
        one, two = (", ".join(sorted(each.elements())) or "none" for each in (there - now, now - there))
        return f"its model has other layers ({one} there, {two} here)"
    other = [kind for (kind, was), (_, now) in zip(stored, here, strict=True) if was != now]
    return f"its layer {other[-1]} has other settings"  # a layer comes before those inside it


def _other_optimizer(stored: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    if stored["class"] != here["class"]:
        return [f"its optimizer is {stored['class']} there and {here['class']} here"]
    return [_values(f"{name} of the optimizer", stored.get(name), here.get(name))
            for name in {**stored, **here} if stored.get(name) != here.get(name)]  # fmt: skip


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


def _add(digest: Any, value: Any) -> None:
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        for name in sorted(value, key=str):
            digest.update(f"{name}:".encode())
            _add(digest, value[name])
    elif isinstance(value, Path):
        with open_regular(value, unzip=False) as file:
            while part := file.read(BYTES):
                digest.update(part)
    elif isinstance(value, (list, tuple)):
        digest.update(f"[{len(value)}".encode())
        for part in value:
            _add(digest, part)
    elif hasattr(value, "dtype") and hasattr(value, "__len__") and value.dtype == object:  # in memory, or in a file
        digest.update(f"{value.shape}".encode())
        for start in range(0, len(value), ROWS):
            for part in np.asarray(opened(value[start : start + ROWS]), object).flat:
                content = part if isinstance(part, bytes) else repr(part).encode()
                digest.update(f"{len(content)}:".encode() + content)
    elif hasattr(value, "dtype"):
        array = np.asarray(value)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data if array.size else b"")
    else:
        digest.update(repr(value).encode())
