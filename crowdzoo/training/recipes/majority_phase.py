"""The recipe of `CrowdsourcedLayer`: where it is wanted, the base learns the majority's labels first."""

from typing import Any

import keras
import numpy as np

from crowdzoo.losses import MaskedCrossentropy
from crowdzoo.training.expectation import annotation_columns, vote_shares
from crowdzoo.training.phases import compiled_with
from crowdzoo.training.recipes.descent import descend

__all__ = ["fit"]


def fit(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """Trains on the majority's labels first (`majority_epochs`), then on everybody's; see `descend`.

    The first phase trains the base alone, with a fresh optimizer of the same settings and without the callbacks;
    its loss is not in the history. It is skipped where the annotators' weights have changed since they were made.
    """
    layer = model.crowd
    epochs = layer.num_majority_epochs
    if epochs and layer.is_at_start():
        optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
        changes = {"optimizer": optimizer, "loss": MaskedCrossentropy(), "metrics": None, "weighted_metrics": None}
        majority = data.batches(**order, inputs=(), targets=_majority(data, layer.num_classes or 1))
        # no loss reaches the layer's own weights, but a weight decay would
        with compiled_with(model, frozen=layer.trainable_variables, **changes):
            model.fit_batches(majority, epochs=epochs, verbose=kwargs.get("verbose", "auto"))
    history = descend(model, data, order, **kwargs)
    if layer.anchor:
        layer.anchor_biases(annotation_columns(data)[1])
    return history


def _majority(data: Any, num_classes: int) -> np.ndarray:
    """One for the class with most votes, shared where several have; `[N, K]`, of sequences `[N, T, K]`."""
    tasks, _, labels = annotation_columns(data)
    shape = (data.num_tasks,) if data.num_tokens is None else (data.num_tasks, data.num_tokens)
    shares = vote_shares(tasks, labels, int(np.prod(shape)), num_classes)
    winners = (shares > 0) & (shares == shares.max(axis=1, keepdims=True))
    votes = (winners / np.maximum(winners.sum(axis=1, keepdims=True), 1)).astype("float32")
    return votes.reshape(*shape, -1)
