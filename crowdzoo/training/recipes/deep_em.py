"""The recipe of `DeepEM`: an E-step between epochs, matrices in closed form."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from crowdzoo.training.expectation import ExpectationStep, annotation_columns, expected_counts, vote_shares

__all__ = ["fit", "fit_rounds"]


def fit(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """EM; see `descend`. The history holds `log_likelihood`, of all labels before the round, in nats."""
    layer = model.crowd

    def rounds(columns: tuple[np.ndarray, np.ndarray, np.ndarray], posteriors: np.ndarray) -> ExpectationStep:
        def maximise(posteriors: np.ndarray) -> None:
            rows = posteriors.reshape(-1, posteriors.shape[-1])
            layer.update(expected_counts(rows, *columns, layer.num_annotators))

        return ExpectationStep(data, posteriors, every=layer.epochs_per_round, after=maximise)

    return fit_rounds(model, data, order, rounds, **kwargs)


def fit_rounds(
    model: Any, data: Any, order: dict[str, Any], rounds: Callable[..., ExpectationStep], **kwargs: Any
) -> keras.callbacks.History:
    """Epochs on posteriors that start as the shares of the votes.

    Args:
        model: a compiled `CrowdModel`.
        data: `crowdzoo.models.TrainingData`.
        order: `batch_size`, `seed` and `shuffle`.
        rounds: from the columns of `annotation_columns` and the posteriors to what happens between epochs.
        **kwargs: as for `keras.Model.fit`.
    """
    columns = annotation_columns(data)
    cells = data.num_tasks * (data.num_tokens or 1)
    posteriors = vote_shares(columns[0], columns[2], cells, model.crowd.num_classes or 1)
    if data.num_tokens:
        posteriors = posteriors.reshape(data.num_tasks, data.num_tokens, -1)
    callbacks = [rounds(columns, posteriors), *keras.tree.flatten(kwargs.pop("callbacks", None) or [])]
    batches = data.batches(**order, inputs=("annotators", "labels"), targets=posteriors)
    return model.fit_batches(batches, callbacks=callbacks, **kwargs)
