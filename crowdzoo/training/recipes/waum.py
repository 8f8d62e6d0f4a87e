"""The recipe of `WAUM`: train, leave the most ambiguous tasks out, and train again."""

from typing import Any

import keras
import numpy as np

from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.aum import Waum, label_margins, label_trust, trusted_votes
from crowdzoo.training.data import ArrayData, BatchOrder
from crowdzoo.training.expectation import annotation_columns
from crowdzoo.training.phases import answers_of_batch
from crowdzoo.training.training_state import restore_variables, variables_of


def fit(model: keras.Model, data: ArrayData, order: BatchOrder, **kwargs: Any) -> keras.callbacks.History:
    """All steps of `crowdzoo.layers.WAUM`; see `descend` for the arguments.

    The history is that of step 5. That of step 2 is under `margin_loss` and so on, one value for each of
    `margin_epochs`.
    """
    layer = model.crowd
    start = variables_of(model)
    layer.scores, first = measure(model, data, order, verbose=kwargs.get("verbose", "auto"))
    rest = layer.scores.annotations
    rest = rest.select_rows(~layer.scores.prunable(layer.prune)[rest.task_ids])  # tasks keep their codes
    confusions = dawid_skene_confusions(rest, layer.smoothing)
    restore_variables(model, start)
    layer.set_confusions(confusions)
    soft = trusted_votes(confusions, rest.task_ids, rest.annotator_ids, rest.labels, data.num_tasks)
    history = model.fit_batches(data.batches(**order, inputs=(), targets=soft), **kwargs)
    history.history.update({f"margin_{name}": values for name, values in first.history.items()})
    return history


def measure(
    model: keras.Model, data: ArrayData, order: BatchOrder, *, verbose: str | int = "auto"
) -> tuple[Waum, keras.callbacks.History]:
    """Steps 1 to 3. The base is trained from its current weights and keeps the result.

    Args:
        model: a compiled `CrowdModel` with a `WAUM` layer.
        data: `crowdzoo.models.TrainingData`.
        order: `batch_size`, `seed` and `shuffle`.
        verbose: Keras' verbosity.

    Returns:
        The measures, with annotations in the order of `annotation_columns`; and Keras' `History`.
    """
    layer = model.crowd
    annotations = Annotations(
        "classification",
        *annotation_columns(data),
        tasks=np.arange(data.num_tasks),
        annotators=np.arange(layer.num_annotators),
        classes=np.arange(layer.num_classes or 1),
    )
    confusions = dawid_skene_confusions(annotations, layer.smoothing)
    recorder = record_margins(
        model, data, annotations, layer.margin, order, epochs=layer.margin_epochs, verbose=verbose
    )
    trust = label_trust(confusions, recorder.probabilities, annotations.task_ids, annotations.annotator_ids)
    return Waum.of(annotations, recorder.aum, trust, layer.denominator), recorder.model.history


def dawid_skene_confusions(annotations: Annotations, smoothing: float) -> Any:
    """Dawid-Skene's matrices `[R, K, K]`, `[annotator, true, said]`, with a pseudo-count in every cell."""
    return DawidSkene(prior=smoothing, diagonal=0.0).fit(annotations).confusions


class MarginRecorder(keras.callbacks.Callback):
    """Records the margins of all labels after every epoch, in evaluation mode. Stores [A] and [N, K] numbers.

    Args:
        data: `crowdzoo.models.TrainingData`.
        annotations: the same annotations: N tasks, A labels, K classes.
        margin: see `crowdzoo.quality.aum.label_margins`.
        batch_size: tasks in a batch of the evaluation.

    Attributes:
        probabilities: the base's last predictions, float32 `[N, K]`; zeros for tasks without labels.
    """

    def __init__(self, data: ArrayData, annotations: Annotations, margin: str, batch_size: int = 256):
        super().__init__()
        self.batches = data.batches(batch_size, 0, shuffle=False, inputs=("tasks",))
        self.annotations = annotations
        self.margin = margin
        self.probabilities = np.zeros((annotations.num_tasks, annotations.num_classes), "float32")
        self._total = np.zeros(len(annotations))
        self._epochs = 0

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Predicts every task with the base."""
        for x, _ in self.batches:
            tasks = np.asarray(x["tasks"])
            self.probabilities[tasks] = answers_of_batch(self.model, x["instances"], len(tasks))
        rows = self.annotations
        self._total += label_margins(self.probabilities, rows.labels, rows.task_ids, self.margin)
        self._epochs += 1

    @property
    def aum(self) -> np.ndarray:
        """Mean margin of every label over the epochs, float64 `[A]`."""
        return self._total / max(self._epochs, 1)


def record_margins(
    model: keras.Model,
    data: ArrayData,
    annotations: Annotations,
    margin: str,
    order: BatchOrder,
    *,
    epochs: int,
    verbose: str | int = "auto",
) -> MarginRecorder:
    """Trains the base on every label, and records the margins.

    A batch holds tasks with all their labels, where the authors' holds (task, label) pairs; the loss is the mean over
    the labels either way.

    Args:
        model: a compiled `CrowdModel` with a `WAUM` layer.
        data: `crowdzoo.models.TrainingData`.
        annotations: the same annotations.
        margin: see `crowdzoo.quality.aum.label_margins`.
        order: `batch_size`, `seed` and `shuffle`.
        epochs: passes over the data.
        verbose: Keras' verbosity.

    Returns:
        The recorder, whose `model.history` is that of the training.
    """
    shape = (annotations.num_tasks, annotations.num_classes)
    cells = np.ravel_multi_index((annotations.task_ids, annotations.labels), shape)
    votes = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype("float32")
    recorder = MarginRecorder(data, annotations, margin)
    batches = data.batches(**order, inputs=(), targets=votes)
    model.fit_batches(batches, epochs=epochs, callbacks=[recorder], verbose=verbose)
    return recorder
