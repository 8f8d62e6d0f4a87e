"""The recipe of `RatingEM`: the network learns posterior means, biases and precisions have a closed form."""

from typing import Any

import keras
import numpy as np

from crowdzoo.training.expectation import ExpectationStep, annotation_columns
from crowdzoo.training.phases import answers_of_batch


def fit(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """EM; see `descend`.

    The history holds `log_likelihood`, of all ratings before the round given the network, in nats of standardised
    ratings.
    """
    layer = model.crowd
    columns = annotation_columns(data)
    targets = layer.start_from(data.num_tasks, *columns)

    def e_step() -> tuple[np.ndarray, float]:
        found = np.zeros(data.num_tasks)
        for x, _ in data.batches(256, 0, shuffle=False, inputs=("tasks",)):
            rows = np.asarray(x["tasks"])
            found[rows] = answers_of_batch(model, x["instances"], len(rows))[:, 0]
        return layer.update(found, *columns)

    step = ExpectationStep(data, targets, every=layer.epochs_per_round, e_step=e_step)
    callbacks = [step, *keras.tree.flatten(kwargs.pop("callbacks", None) or [])]
    return model.fit_batches(data.batches(**order, inputs=(), targets=targets), callbacks=callbacks, **kwargs)
