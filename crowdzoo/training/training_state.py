"""State of a training: weights, the optimizer's variables, the state of callbacks, the order of batches."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.backend import Config, KerasBatches

# Attributes of callbacks that Keras sets in each training. The sign of EarlyStopping's min_delta belongs to a function
# of it; CSVLogger checks whether its file has a header
SET_BY_KERAS = {"_model", "params", "validation_data", "min_delta", "append_header"}


class EpochCount:
    """Counts the epochs of a data set, each of which has its own order.

    An iteration is an epoch. On several devices Keras abandons some iterations, and TensorFlow reads ahead in them, so
    that Keras' epochs must be counted; see `epoch_callbacks`.

    Attributes:
        number: number of the epoch; -1 before the first one.
        pinned: whether epochs are counted from outside, and not by iterations.
    """

    def __init__(self) -> None:
        self.number = -1
        self.pinned = False

    def on_epoch_begin(self) -> None:
        """Counts an epoch."""
        self.number += 1

    def next(self) -> int:
        """Returns the number of the epoch of an iteration that begins."""
        if not self.pinned:
            self.on_epoch_begin()
        return max(self.number, 0)  # Keras reads a first batch before the first epoch


def epoch_callbacks(model: keras.Model, batches: KerasBatches) -> list[keras.callbacks.Callback]:
    """Callbacks that count Keras' epochs if several devices train; otherwise none are needed.

    Args:
        model: model that is trained.
        batches: its batches; those of `TrainingData` have an `EpochCount` as `epochs`.
    """
    strategy, epochs = getattr(model, "distribute_strategy", None), getattr(batches, "epochs", None)
    if strategy is None or epochs is None or strategy.num_replicas_in_sync == 1:
        return []
    epochs.pinned = True
    return [
        keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda *_: epochs.on_epoch_begin(), on_train_end=lambda *_: setattr(epochs, "pinned", False)
        )
    ]


def replay(batches: KerasBatches, epochs: int) -> None:
    """Advances the order of batches by a number of epochs.

    Args:
        batches: batches of `TrainingData`, with an `EpochCount` as `epochs`.
        epochs: number of epochs.
    """
    for _ in range(epochs):
        batches.epochs.on_epoch_begin()


def variables_of(model: keras.Model) -> list[np.ndarray]:
    """Copies of all variables that training changes in a compiled model: weights, random states, the optimizer's.

    Args:
        model: built model; its optimizer is built here.
    """
    return [exact_array(np.array(ops.convert_to_numpy(variable))) for variable in _variables(model)]


def restore_variables(model: keras.Model, values: Iterable[np.ndarray]) -> None:
    """Restores the result of `variables_of`."""
    for variable, value in zip(_variables(model), values, strict=True):
        variable.assign(value)


def state_of(callback: keras.callbacks.Callback) -> Config:
    """State of a callback: its attributes that are numbers, texts, arrays, or lists of them.

    A callback with more state has methods `state()` and `restore_state(state)`.
    """
    return {name: value for name, value in vars(callback).items() if name not in SET_BY_KERAS and _is_plain(value)}


def restore_state(callback: keras.callbacks.Callback, state: Mapping[str, object]) -> None:
    """Restores the result of `state_of`; arrays are changed in place, because others may refer to them."""
    for name, value in state.items():
        current = getattr(callback, name, None)
        if isinstance(current, np.ndarray) and isinstance(value, np.ndarray) and current.shape == value.shape:
            current[...] = value
        else:
            setattr(callback, name, value)


def _variables(model: keras.Model) -> list[Any]:
    if not model.optimizer.built:  # LossScaleOptimizer makes new variables when it is built again
        strategy = getattr(model, "distribute_strategy", None)  # TensorFlow makes variables of all devices in its scope
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            model.optimizer.build(model.trainable_variables)
    counted = {id(variable) for variable in model.metrics_variables}  # reset in every epoch
    return [*(variable for variable in model.variables if id(variable) not in counted), *model.optimizer.variables]


def exact_array(array: np.ndarray) -> np.ndarray:
    """Converts an array to a type that NumPy can store.

    Args:
        array: any numbers.

    Returns:
        The array; float32 for bfloat16, which NumPy does not have.
    """
    return array.astype("float32") if array.dtype.kind == "V" else array


def _is_plain(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufV"
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(part) for name, part in value.items())
    return value is None or isinstance(value, (bool, int, float, str, np.generic))
