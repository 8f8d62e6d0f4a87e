"""Gradient descent on the compiled loss: the recipe of every method that needs no other."""

from typing import Any

import keras

__all__ = ["descend"]


def descend(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """Compares the annotators' answers with their labels.

    Args:
        model: a compiled `CrowdModel`.
        data: `crowdzoo.models.TrainingData`.
        order: `batch_size`, `seed` and `shuffle`.
        **kwargs: as for `keras.Model.fit`.
    """
    return model.fit_batches(data.batches(**order), **kwargs)
