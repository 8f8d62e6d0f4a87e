"""For methods that train in phases: another loss for a while, one history of all, and answers in between."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from crowdzoo.backend import Tensor, flattened_layers
from crowdzoo.layers import CrowdLayer


@contextmanager
def allow_training(layer: CrowdLayer) -> Iterator[None]:
    """While a recipe runs; outside of it, layers that need more than gradient descent refuse to be trained."""
    layer.is_fitted_now = True
    try:
        yield
    finally:
        layer.is_fitted_now = False


@contextmanager
def compile_temporarily(
    model: keras.Model,
    *,
    frozen: Sequence[keras.Layer | keras.Variable] = (),
    trained: Sequence[keras.Layer | keras.Variable] = (),
    **changes: Any,
) -> Iterator[None]:
    """Compiles a model with other arguments for a while, then as before; its optimizer keeps its state.

    Loss and metrics are taken down and put back by their configuration, so they must be registered with Keras.

    Args:
        model: a compiled model.
        frozen: layers and variables that no step changes meanwhile.
        trained: layers and variables that steps change meanwhile, though otherwise they do not.
        **changes: arguments of `compile` that differ.
    """
    settings = keras.saving.deserialize_keras_object(model.get_compile_config())
    settings["optimizer"] = model.optimizer
    parts: list[Any] = []  # layers before their parts before the variables: a layer hands its flag down
    for part in (*frozen, *trained):
        parts.extend((*flattened_layers(part), *part.variables) if isinstance(part, keras.Layer) else (part,))
    flags = [part.trainable for part in parts]
    for part in frozen:
        part.trainable = False
    for part in trained:
        part.trainable = True
    model.compile(**{**settings, **changes})
    try:
        yield
    finally:
        # before the model is compiled again, which looks at what is to be trained
        for part, flag in zip(parts, flags, strict=True):
            part.trainable = flag
        model.compile(**settings)


def join_histories(
    model: keras.Model, first: keras.callbacks.History, second: keras.callbacks.History
) -> keras.callbacks.History:
    """The history of two phases, one after the other; it becomes the model's.

    Args:
        model: the model that was trained.
        first: of the first phase; it is extended.
        second: of the second.

    Returns:
        The first.
    """
    first.epoch.extend(second.epoch)
    for name, values in second.history.items():
        first.history.setdefault(name, []).extend(values)
    model.history = first
    return first


def answers_of_batch(model: keras.Model, x: Tensor, rows: int) -> np.ndarray:
    """What a model answers to a batch, one row an instance on any number of devices.

    Under `tf.distribute` every replica answers the whole batch of `predict_on_batch`, one below the other.

    Args:
        model: a built model.
        x: a batch of its inputs.
        rows: B, instances in the batch.

    Returns:
        `[B, ...]`.
    """
    return np.asarray(model.predict_on_batch(x))[:rows]
