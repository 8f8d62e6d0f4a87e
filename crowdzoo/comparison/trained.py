"""A deep method trained on some tasks, and what it says of others."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.reading.instances.instances import take_rows
from crowdzoo.training.encoded import encoded
from crowdzoo.training.instance_training import train
from crowdzoo.training.methods import AGGREGATED

CHECKPOINTS = 4  # lengths of a training that are compared: a quarter, half, three quarters, all of its epochs


def lengths(epochs: int) -> list[int]:
    """Numbers of epochs that are compared, the longest training's last."""
    return sorted({max(1, epochs * (step + 1) // CHECKPOINTS) for step in range(CHECKPOINTS)})


def trained_answers(
    settings: Any,
    x: Any,
    annotations: Annotations,
    kept: NDArray[Any],
    hidden: NDArray[Any],
    targets: NDArray[np.float64] | None,
    epochs: Sequence[int],
    callbacks: Iterable[keras.callbacks.Callback] = (),
    base: Any = None,
) -> list[NDArray[np.float64]]:
    """Trains once, and asks the model about other tasks after some numbers of epochs.

    Args:
        settings: of the training.
        x: instances, row i is task code i.
        annotations: of all tasks.
        kept: codes of the tasks that are trained on.
        hidden: codes of the tasks that are asked for, sorted.
        targets: what method "aggregated" learns from, one row for each kept task.
        epochs: after which the model is asked, ascending; the last are all.
        callbacks: Keras callbacks.
        base: see `train`.

    Returns:
        For each number of epochs, class probabilities or ratings, `[n, K]`.
    """
    trained_on = annotations.select_tasks(kept)
    given: dict[str, Any] = {"annotations": trained_on, "tasks": trained_on.tasks}
    if settings.method == AGGREGATED:
        given = {"label_distribution" if annotations.label_kind.has_classes else "ratings": targets}
    weights = _Weights(epochs)
    model, encoder = train(settings, take_rows(x, kept), callbacks=[*callbacks, weights], base=base, **given)
    rows = np.zeros(annotations.num_tasks, dtype=bool)
    rows[hidden] = True
    instances, answers = encoded(x, rows, encoder), []
    for taken in weights.taken:
        model.set_weights(taken)
        answers.append(np.asarray(model.predict(instances, verbose=0), np.float64))
    return answers


class _Weights(keras.callbacks.Callback):
    """Keeps copies of the weights after some epochs; after the last one where a training ends before."""

    def __init__(self, epochs: Sequence[int]):
        super().__init__()
        self.epochs = epochs
        self.taken: list[list[np.ndarray]] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if len(self.taken) < len(self.epochs) and epoch + 1 == self.epochs[len(self.taken)]:
            self.taken.append(self.model.get_weights())

    def on_train_end(self, logs: Any = None) -> None:
        while len(self.taken) < len(self.epochs):
            self.taken.append(self.model.get_weights())
