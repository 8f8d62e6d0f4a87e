"""The recipe of `ConfusionMatrices` and its kin: gradient descent, on labels or on answers with a confidence."""

from dataclasses import replace
from typing import Any

import keras
import numpy as np

from crowdzoo.tables.annotations import Annotations
from crowdzoo.training.expectation import soft_answers_of
from crowdzoo.training.recipes.descent import descend

__all__ = ["fit", "padded_answers"]


def fit(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """See `descend`; with `confidence` what is compared are the annotators' distributions."""
    layer = model.crowd
    if not layer.confidence:
        return descend(model, data, order, **kwargs)
    shares = soft_answers_of(data, type(layer).__name__).shares
    return model.fit_batches(data.batches(**order, targets=padded_answers(data.annotations, shares)), **kwargs)


def padded_answers(annotations: Annotations, shares: np.ndarray) -> np.ndarray:
    """Each task's answers side by side, in the order of `Annotations.padded`.

    Args:
        annotations: A annotations of N tasks.
        shares: their distributions, `[A, K]`.

    Returns:
        float32 `[N, W, K]`, zeros as padding; W is the most annotations of a task.
    """
    numbered = replace(annotations, labels=np.arange(len(annotations)))  # which annotation is where
    _, place = numbered.padded()
    found = np.zeros((*place.shape, shares.shape[1]), "float32")
    found[place >= 0] = shares[place[place >= 0]]
    return found
