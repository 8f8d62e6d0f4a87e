"""For methods that train in phases: a temporary loss, a joint history, and predictions between phases."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from crowdzoo.backend import Tensor, flattened_layers
from crowdzoo.layers import CrowdLayer


@contextmanager
def allow_training(layer: CrowdLayer) -> Iterator[None]:
    """Marks a layer as trained by its recipe; layers that need more than gradient descent raise an error otherwise."""
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
    """Compiles a model with other arguments temporarily, then as before; its optimizer keeps its state.

    Loss and metrics are restored from their configuration, so they must be registered with Keras.

    Args:
        model: a compiled model.
        frozen: layers and variables that are not trained meanwhile.
        trained: layers and variables that are trained only meanwhile.
        **changes: arguments of `compile` that differ.
    """
    settings = keras.saving.deserialize_keras_object(model.get_compile_config())
    settings["optimizer"] = model.optimizer
    parts: list[Any] = []  # layers, then their parts, then variables, because a layer passes its flag down
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
        # before the model is compiled again, which reads what is trainable
        for part, flag in zip(parts, flags, strict=True):
            part.trainable = flag
        model.compile(**settings)


def join_histories(
    model: keras.Model, first: keras.callbacks.History, second: keras.callbacks.History
) -> keras.callbacks.History:
    """Joins the histories of two phases; the result becomes the model's history.

    Args:
        model: the model that was trained.
        first: history of the first phase; it is extended.
        second: history of the second.

    Returns:
        The first.
    """
    first.epoch.extend(second.epoch)
    for name, values in second.history.items():
        first.history.setdefault(name, []).extend(values)
    model.history = first
    return first


def answers_of_batch(model: keras.Model, x: Tensor, rows: int) -> np.ndarray:
    """Predictions for a batch, with one row per instance on any number of devices.

    Under `tf.distribute` every replica predicts the whole batch in `predict_on_batch`, and the results are
    concatenated.

    Args:
        model: a built model.
        x: a batch of its inputs.
        rows: B, instances in the batch.

    Returns:
        `[B, ...]`.
    """
    return np.asarray(model.predict_on_batch(x))[:rows]
