"""The recipe of `CrowdsourcedLayer`: gradient descent, and biases of ratings that are anchored."""

from typing import Any

import keras

from crowdzoo.training.expectation import annotation_columns
from crowdzoo.training.recipes.descent import descend


def fit(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """See `descend`; with `anchor` the biases of ratings are anchored at the end."""
    history = descend(model, data, order, **kwargs)
    if model.crowd.anchor:
        model.crowd.anchor_biases(annotation_columns(data)[1])
    return history
