"""EM for methods with a likelihood of labels: the E-step between epochs, the M-step by Keras' training."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import keras
import numpy as np

from crowdzoo.aggregation.engine.soft_answers import SoftAnswers, has_confidence
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers.crowd_layer import SMALLEST
from crowdzoo.training.data import BatchOrder, TrainingData, answer_shape
from crowdzoo.training.phases import answers_of_batch


class ExpectationStep(keras.callbacks.Callback):
    """Updates the posteriors before every round of epochs.

    The history has `log_likelihood` from the second round on, as there is no E-step before.

    Args:
        data: `crowdzoo.models.TrainingData`.
        posteriors: float `[N, K]` (sequences `[N, T, K]`), the targets of the training, changed in place; until then
            they keep the given values (the shares of the votes, which break the symmetry between classes).
        every: epochs in a round.
        after: function of the posteriors, and of whether it is the first call, called after each E-step and before the
            first epoch, for example a closed-form M-step of the annotators; or None.
        e_step: returns posteriors `[N, K]` and the log-likelihood of all labels; None uses the model's.
    """

    def __init__(
        self,
        data: Any,
        posteriors: np.ndarray,
        *,
        every: int = 1,
        after: Callable[[np.ndarray, bool], None] | None = None,
        e_step: Callable[[], tuple[np.ndarray, float]] | None = None,
    ):
        super().__init__()
        self.data = data
        self.posteriors = posteriors
        self.every = every
        self.after = after
        self.e_step = e_step
        self.log_likelihood = float("nan")
        self._epochs = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Runs the E-step every `every` epochs."""
        if self._epochs and self._epochs % self.every == 0:
            e_step = self.e_step or partial(self.model.e_step, self.data)
            self.posteriors[:], self.log_likelihood = e_step()
        if self.after is not None and self._epochs % self.every == 0:
            self.after(self.posteriors, self._epochs == 0)
        self._epochs += 1

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Logs the log-likelihood of the last E-step next to the loss."""
        if logs is not None and np.isfinite(self.log_likelihood):
            logs["log_likelihood"] = self.log_likelihood


def e_step(model: keras.Model, data: TrainingData, batch_size: int = 256) -> tuple[np.ndarray, float]:
    """Posteriors of the annotated tasks, and the log-likelihood of their labels; see `CrowdModel.e_step`."""
    counts_confidence = getattr(model.crowd, "confidence", False)
    soft = counts_confidence and has_confidence(getattr(data, "annotations", None))
    if soft and not model.crowd.traits.uses_features:  # one matrix per annotator is enough
        return _e_step_of_soft_answers(model, data, batch_size)
    posteriors, likelihood = np.zeros((*answer_shape(data), model.crowd.num_classes or 1), "float32"), 0.0
    inputs, answers = ("annotators", "labels", "tasks"), answer_inputs(model, data) if soft else {}
    for x, _ in data.batches(batch_size, 0, shuffle=False, inputs=inputs, **answers):
        parts = answers_of_batch(model, x, len(x["tasks"])).astype("float64")
        joint = parts.reshape(*parts.shape[:-1], -1, posteriors.shape[-1]).sum(axis=-2)
        place = (np.asarray(x["tasks"]), *(slice(width) for width in joint.shape[1:-1]))
        labelled = np.asarray(x["annotators"] if soft else x["labels"]) >= 0
        posteriors[place], of_batch = _normalise(joint, labelled.any(axis=-1))
        likelihood += of_batch
    return posteriors, likelihood


def answer_inputs(model: keras.Model, data: Any) -> BatchOrder:
    """Answers that batches need in place of labels if a layer uses the annotations' confidence; else empty.

    Args:
        model: a `CrowdModel`.
        data: `crowdzoo.models.TrainingData`.

    Returns:
        Arguments of `TrainingData.batches`.

    Raises:
        DataError: the confidence is missing or not a probability, or the annotations are not in memory.
    """
    if not model.crowd.confidence:
        return {}
    return {"answers": padded_answers(data.annotations, soft_answers_of(data, type(model.crowd).__name__).shares)}


def padded_answers(annotations: Annotations, shares: np.ndarray) -> np.ndarray:
    """Each task's answers side by side, in the order of `Annotations.padded`.

    Args:
        annotations: A annotations of N tasks.
        shares: their distributions, `[A, K]`.

    Returns:
        float32 `[N, W, K]`, zeros as padding; W is the largest number of annotations of a task.
    """
    numbered = replace(annotations, labels=np.arange(len(annotations)))  # the number of each annotation
    _, place = numbered.padded()
    padded = np.zeros((*place.shape, shares.shape[1]), "float32")
    padded[place >= 0] = shares[place[place >= 0]]
    return padded


def _e_step_of_soft_answers(model: Any, data: Any, batch_size: int) -> tuple[np.ndarray, float]:
    """`e_step` with the annotations' confidence."""
    log_prior = np.zeros((data.num_tasks, model.crowd.num_classes))
    for x, _ in data.batches(batch_size, 0, shuffle=False, inputs=("tasks",), targets=log_prior):
        tasks = np.asarray(x["tasks"])
        log_prior[tasks] = np.log(np.maximum(answers_of_batch(model, x["instances"], len(tasks)), SMALLEST))
    answers = soft_answers_of(data, type(model.crowd).__name__)
    return posteriors_given_answers(log_prior, answers, model.annotator_confusions())


def _normalise(joint: np.ndarray, labelled: np.ndarray) -> tuple[np.ndarray, float]:
    """Posteriors from log-joints `[..., K]`, zeros for tasks without labels, and the log-likelihood of all labels."""
    top = joint.max(axis=-1, keepdims=True)
    odds = np.exp(joint - top)
    total = odds.sum(axis=-1, keepdims=True)
    return odds / total * labelled[..., None], float((top + np.log(total))[labelled].sum())


def annotation_columns(data: Any, batch_size: int = 4096) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All training annotations, as columns.

    Args:
        data: `crowdzoo.models.TrainingData`.
        batch_size: tasks in a batch.

    Returns:
        Tasks, annotators and labels, int `[A]` each (ratings float64 in the data's unit); every token or pixel counts
        as a task, numbered row by row as in an array of `answer_shape`.
    """
    parts: list[tuple[np.ndarray, ...]] = []
    for x, labels in data.batches(batch_size, 0, shuffle=False, inputs=("annotators", "tasks")):
        labels, annotators, tasks = np.asarray(labels), np.asarray(x["annotators"]), np.asarray(x["tasks"])
        cells = np.nonzero(~np.isnan(labels) if labels.dtype.kind == "f" else labels >= 0)
        task = tasks[cells[0]]
        if labels.ndim > 2:
            task = np.ravel_multi_index((task, *cells[1:-1]), answer_shape(data))
        parts.append((task, annotators[cells[0], cells[-1]], labels[cells]))
    task, annotator, label = (np.concatenate(column) for column in zip(*parts, strict=True))
    return task, annotator.astype("int32"), label.astype("float64" if label.dtype.kind == "f" else "int32")


class Labels:
    """All annotations of a training, for EM between epochs; `SoftAnswers` is the same with confidence.

    Args:
        columns: result of `annotation_columns`.
        num_classes: K.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.training.expectation import Labels
        >>> tasks, annotators, labels = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 1]])  # three annotations of two tasks
        >>> Labels((tasks, annotators, labels), num_classes=2).mean(num_tasks=2).tolist()
        [[0.5, 0.5], [0.0, 1.0]]
    """

    def __init__(self, columns: tuple[np.ndarray, np.ndarray, np.ndarray], num_classes: int):
        self.tasks, self.annotators, self.labels = columns
        self.num_classes = num_classes

    def mean(self, num_tasks: int) -> np.ndarray:
        """Shares of the votes of each task, from which EM starts, float32 `[N, K]`; zeros for tasks without labels."""
        cells = self.tasks.astype("int64") * self.num_classes + self.labels
        counts = np.bincount(cells, minlength=num_tasks * self.num_classes).reshape(num_tasks, self.num_classes)
        return (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).astype("float32")

    def expected_counts(
        self, posteriors: np.ndarray, num_annotators: int, confusions: np.ndarray | None = None
    ) -> np.ndarray:
        """Expected number of each annotator's labels by true class: `sum_i q_i(k) 1[y_ir = l]`.

        Args:
            posteriors: q `[N, K]`.
            num_annotators: R.
            confusions: only needed with confidence.

        Returns:
            float64 `[R, K, K]`, `[annotator, true, said]`.
        """
        size = num_annotators * self.num_classes
        cells = self.annotators.astype("int64") * self.num_classes + self.labels
        counts = [np.bincount(cells, weights=shares[self.tasks], minlength=size) for shares in posteriors.T]
        return np.stack([count.reshape(num_annotators, -1) for count in counts], axis=1)

    def log_evidence(self, confusions: np.ndarray, num_tasks: int) -> np.ndarray:
        """Log-likelihood of each task's answers by true class, nats, `[N, K]`."""
        # one class at a time: an array [A, K] of many annotations would be larger than they are
        logs = np.log(confusions).swapaxes(0, 1)
        columns = [np.bincount(self.tasks, rows[self.annotators, self.labels], num_tasks) for rows in logs]
        return np.stack(columns, axis=1)


Answers = Labels | SoftAnswers


def answers_of(data: TrainingData, num_classes: int, confidence_for: str | None = None) -> Answers:
    """The annotations of a training.

    Args:
        data: `crowdzoo.models.TrainingData`.
        num_classes: K.
        confidence_for: name of the layer that uses the annotations' confidence; None ignores confidence.

    Raises:
        DataError: the confidence is missing or not a probability, or the annotations are not in memory.
    """
    if confidence_for is None:
        return Labels(annotation_columns(data), num_classes)
    return soft_answers_of(data, confidence_for)


def soft_answers_of(data: TrainingData, layer: str) -> SoftAnswers:
    """The annotations of a training with their confidence.

    Args:
        data: `crowdzoo.models.TrainingData`.
        layer: name of the layer, for messages.

    Raises:
        DataError: the confidence is missing or not a probability, or the annotations are not in memory.
    """
    annotations = getattr(data, "annotations", None)
    if annotations is None:
        raise DataError(
            f"{layer}: confidence=True needs annotations in memory, and these batches have none. "
            "Pass annotations to CrowdModel.fit, or set confidence=False."
        )
    return SoftAnswers(annotations, layer)


def posteriors_given_answers(
    log_prior: np.ndarray, answers: Answers, confusions: np.ndarray
) -> tuple[np.ndarray, float]:
    """Runs an E-step outside a model, in log-space.

    Args:
        log_prior: `[N, K]`, log-probabilities of the truth before the answers.
        answers: answers of the annotators.
        confusions: `[R, K, K]`, `[annotator, true, said]`, all above 0.

    Returns:
        q float32 `[N, K]`, rows sum to one; zeros for tasks without labels. And the log-likelihood of all answers, in
        nats.
    """
    evidence = answers.log_evidence(confusions, len(log_prior))
    labelled = answers.mean(len(log_prior)).sum(axis=1) > 0
    posteriors, likelihood = _normalise(np.float64(log_prior) + evidence, labelled)
    return posteriors.astype("float32"), likelihood
