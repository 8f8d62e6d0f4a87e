"""The recipe of `PooledConfusions`: its penalty weighs annotators by their number of labels."""

from typing import Any

import keras
import numpy as np

from crowdzoo.training.expectation import annotation_columns
from crowdzoo.training.recipes.descent import descend


def fit(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """Counts the annotators' labels, then trains; see `descend`."""
    model.crowd.set_counts(np.bincount(annotation_columns(data)[1], minlength=model.crowd.num_annotators))
    return descend(model, data, order, **kwargs)
