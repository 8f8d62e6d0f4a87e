"""The recipe of `ConfusionMatrices` and its kin: gradient descent, on labels or on answers with a confidence."""

from typing import Any

import keras

from crowdzoo.training.expectation import padded_answers, soft_answers_of
from crowdzoo.training.recipes.descent import descend, votes_first


def fit(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """See `descend`; with `confidence` what is compared are the annotators' distributions."""
    layer = model.crowd
    if not layer.confidence:
        return descend(model, data, order, **kwargs)
    votes_first(model, data, order, kwargs.get("verbose", "auto"))
    shares = soft_answers_of(data, type(layer).__name__).shares
    return model.fit_batches(data.batches(**order, targets=padded_answers(data.annotations, shares)), **kwargs)
