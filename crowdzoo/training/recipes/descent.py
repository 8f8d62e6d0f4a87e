"""Gradient descent on the compiled loss: the default recipe, and its variants."""

from typing import Any

import keras
import numpy as np
from keras import ops

from crowdzoo.layers import CrowdLayer
from crowdzoo.losses import MaskedCrossentropy
from crowdzoo.training.data import BatchOrder, TrainingData, answer_shape
from crowdzoo.training.expectation import Labels, annotation_columns, padded_answers, soft_answers_of
from crowdzoo.training.phases import compile_temporarily


def descend(model: keras.Model, data: TrainingData, order: BatchOrder, **kwargs: Any) -> keras.callbacks.History:
    """Trains by gradient descent on the annotators' answers and labels, after `votes_first`.

    Args:
        model: a compiled `CrowdModel`.
        data: `crowdzoo.models.TrainingData`.
        order: `batch_size`, `seed` and `shuffle`, and `sample_weight` where tasks have weights `[N]`.
        **kwargs: as for `keras.Model.fit`.
    """
    votes_first(model, data, order, kwargs.get("verbose", "auto"))
    return model.fit_batches(data.batches(**order), **kwargs)


def votes_first(model: keras.Model, data: TrainingData, order: BatchOrder, verbose: str | int = "auto") -> None:
    """Trains the base alone on the votes, for the layer's `majority_epochs`.

    This phase has a new optimizer of the same settings and no callbacks; its loss is not in the history. It is skipped
    if the annotators' weights have changed since they were created. For the arguments see `descend`.
    """
    layer = model.crowd
    epochs = layer.num_majority_epochs
    if not epochs or not is_at_start(layer):
        return
    optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
    # no metrics: None would keep the present ones
    changes = {"optimizer": optimizer, "loss": MaskedCrossentropy(), "metrics": [], "weighted_metrics": []}
    votes = data.batches(**order, inputs=(), targets=_votes(data, layer.num_classes or 1))
    # the loss does not affect the layer's own weights, but weight decay would
    with compile_temporarily(model, frozen=layer.trainable_variables, **changes):
        model.fit_batches(votes, epochs=epochs, verbose=verbose)


def is_at_start(layer: CrowdLayer) -> bool:
    """Whether the annotators' weights still have their initial values, the same for all annotators."""
    values = (getattr(layer, name, None) for name in ("kernel", "bias", "right"))
    weights = [weight for weight in values if weight is not None]
    return all(bool(ops.convert_to_numpy(ops.all(weight == weight[:1]))) for weight in weights)


def _votes(data: TrainingData, num_classes: int) -> np.ndarray:
    """Shares of the votes `[N, K]`; for places `[N, T, K]`, 1 for the class with most votes, shared equally if tied."""
    shape = answer_shape(data)
    shares = Labels(annotation_columns(data), num_classes).mean(int(np.prod(shape)))
    if len(shape) == 1:
        return shares
    winners = (shares > 0) & (shares == shares.max(axis=1, keepdims=True))
    votes = (winners / np.maximum(winners.sum(axis=1, keepdims=True), 1)).astype("float32")
    return votes.reshape(*shape, -1)


# === Variants ===


def descend_on_matrices(model: keras.Model, data: Any, order: BatchOrder, **kwargs: Any) -> keras.callbacks.History:
    """The recipe of `ConfusionMatrices` and its subclasses; with `confidence`, targets are distributions of answers."""
    layer = model.crowd
    if not layer.confidence:
        return descend(model, data, order, **kwargs)
    votes_first(model, data, order, kwargs.get("verbose", "auto"))
    shares = soft_answers_of(data, type(layer).__name__).shares
    return model.fit_batches(data.batches(**order, targets=padded_answers(data.annotations, shares)), **kwargs)


def descend_and_anchor(
    model: keras.Model, data: TrainingData, order: BatchOrder, **kwargs: Any
) -> keras.callbacks.History:
    """The recipe of `CrowdsourcedLayer`: with `anchor` the biases of ratings are anchored at the end."""
    history = descend(model, data, order, **kwargs)
    if model.crowd.anchor:
        tasks, annotators, _ = annotation_columns(data)
        weights = order.get("sample_weight", np.ones(data.num_tasks))
        model.crowd.anchor_biases(annotators, weights[tasks])
    return history


def descend_from_votes(
    model: keras.Model, data: TrainingData, order: BatchOrder, **kwargs: Any
) -> keras.callbacks.History:
    """The recipe of `MaxMIG`: its matrices start from the votes."""
    layer = model.crowd
    labels = Labels(annotation_columns(data), layer.num_classes or 1)
    shares = labels.mean(data.num_tasks)
    layer.start_from(shares, labels.expected_counts(shares, layer.num_annotators))
    return model.fit_batches(data.batches(**order, inputs=("annotators", "labels")), **kwargs)


def descend_with_counts(
    model: keras.Model, data: TrainingData, order: BatchOrder, **kwargs: Any
) -> keras.callbacks.History:
    """The recipe of `PooledConfusions`: its penalty weighs annotators by their number of labels."""
    model.crowd.set_counts(np.bincount(annotation_columns(data)[1], minlength=model.crowd.num_annotators))
    return descend(model, data, order, **kwargs)
