"""A deep method trained on some tasks, and what it says of others."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from crowdzoo.kinds import kind_of
from crowdzoo.kinds.compared import Compared, Scores
from crowdzoo.reading.instances.instances import take_rows

CHECKPOINTS = 4  # lengths of a training that are compared: a quarter, half, three quarters, all of its epochs


def lengths(epochs: int) -> list[int]:
    """Numbers of epochs that are compared, the longest training's last."""
    return sorted({max(1, epochs * (step + 1) // CHECKPOINTS) for step in range(CHECKPOINTS)})


def trained_answers(
    settings: Any,
    x: Any,
    measure: Compared,
    kept: NDArray[Any],
    hidden: NDArray[Any],
    targets: Any,
    epochs: Sequence[int],
    callbacks: Iterable[keras.callbacks.Callback] = (),
    base: Any = None,
) -> list[Scores]:
    """Trains once, and asks the model about other tasks after some numbers of epochs.

    Args:
        settings: of the training.
        x: instances, row i is task code i.
        measure: labels of all tasks.
        kept: codes of the tasks that are trained on.
        hidden: codes of the tasks that are asked for, sorted.
        targets: what method "aggregated" learns from; see `Kind.targets`.
        epochs: after which the model is asked, ascending; the last are all.
        callbacks: Keras callbacks.
        base: see `train`.

    Returns:
        For each number of epochs the answers, as the kind has them.
    """
    crowd, weights = measure.of_tasks(kept), _Weights(epochs)
    model, encoder = kind_of(settings.kind).train(
        settings, take_rows(x, kept), getattr(crowd, "annotations", crowd), targets=targets, crowd=crowd,
        callbacks=[*callbacks, weights], **({} if base is None else {"base": base}),
    )  # fmt: skip
    answers = []
    for taken in weights.taken:
        model.set_weights(taken)
        answers.append(measure.predicted(model, encoder, x, hidden))
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
