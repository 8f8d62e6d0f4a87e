"""Scores a model by how well it predicts held-out annotations."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.registry import create
from crowdzoo.backend import Config, KerasBatches
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError, short_repr
from crowdzoo.training.expectation import Labels
from crowdzoo.training.pair_rows import Examples

FEWEST = 20  # labelled tasks
SHARE = 10  # one of this many tasks is held out
TEMPERATURES = np.geomspace(0.25, 8.0, 16)
FLOOR = 1e-6  # lower bound of class probabilities
ANNOTATORS = "hierarchical-dawid-skene"  # method that estimates the annotators' confusion matrices
MONITORED = "held_out_log_likelihood"


def held_out_tasks(labelled: NDArray[np.bool_], seed: int) -> NDArray[np.bool_]:
    """Draws a tenth of the labelled tasks at random, as a mask of tasks.

    Args:
        labelled: whether a task is labelled, `[N]`.
        seed: seed of the draw.

    Raises:
        DataError: fewer than 20 labelled tasks.
    """
    tasks = np.flatnonzero(labelled)
    if len(tasks) < FEWEST:
        raise DataError(
            f"training: patience holds out a tenth of the labelled tasks, and {len(tasks)} are too few for that. "
            f"Set epochs, or label at least {FEWEST}."
        )
    chosen = np.random.default_rng([seed, SHARE]).permutation(tasks)[: len(tasks) // SHARE]
    return np.isin(np.arange(len(labelled)), chosen)


def log_likelihoods(annotations: Annotations, rows: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Log-probability of each task's annotations given each class, `[N, K]`.

    Args:
        annotations: annotations of classes, from which `hierarchical-dawid-skene` estimates confusion matrices.
        rows: mask of the annotations to use, bool `[A]`; None is all.
    """
    confusions = create(ANNOTATORS).fit(annotations).confusions
    annotations = annotations if rows is None else annotations.select_rows(rows)
    columns = annotations.task_ids, annotations.annotator_ids, annotations.labels
    labels = Labels(columns, annotations.num_classes)
    return labels.log_evidence(np.maximum(confusions, FLOOR), annotations.num_tasks)


def scores(answers: np.ndarray, likelihoods: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-probability of each task's annotations at the best-fitting temperature.

    Args:
        answers: a model's class probabilities p, `[n, K]`.
        likelihoods: result of `log_likelihoods`, `[n, K]`.

    Returns:
        `[n]`, nats: `log sum_k p_ik^(1/T) prod_r pi_r[k, y_ir]`, with p^(1/T) normalised.
    """
    logs = np.log(np.maximum(answers, FLOOR))
    best = np.full(len(answers), -np.inf)
    for temperature in TEMPERATURES:
        cooled = logs / temperature
        cooled -= np.logaddexp.reduce(cooled, axis=1, keepdims=True)
        score = np.logaddexp.reduce(cooled + likelihoods, axis=1)
        if score.sum() > best.sum():
            best = score
    return best


def early_stopping(
    patience: int, x: Examples | KerasBatches, annotations: Annotations, held: NDArray[np.bool_]
) -> list[keras.callbacks.Callback]:
    """Callbacks that stop training when the prediction of held-out annotations no longer improves.

    The history gets `held_out_log_likelihood`, in nats per held-out annotation. The model gets the weights of the best
    epoch.

    Args:
        patience: number of epochs without improvement before training stops.
        x: held-out instances as the model's input, or a `tf.data.Dataset` of batches.
        annotations: all annotations.
        held: whether a task is held out, `[N]`.
    """
    stop = keras.callbacks.EarlyStopping(MONITORED, mode="max", patience=patience, restore_best_weights=True)
    return [HeldOutAnnotations(x, annotations, annotations.tasks[held]), stop]


class HeldOutAnnotations(keras.callbacks.Callback):
    """A score for callbacks and tuners that needs no gold: how well the model predicts held-out annotations.

    After each epoch `held_out_log_likelihood` is logged next to the loss: the mean log-probability of a held-out
    annotation in nats, given the model's class probabilities and confusion matrices estimated from the annotations
    alone (`hierarchical-dawid-skene`). Higher is better. `patience` uses the same score. Unlike with `val_loss`, the
    crowd layer cannot make up for a base that has lost a class, and scores of all methods are comparable.

    Args:
        x: instances of the held-out tasks, as the model's input.
        annotations: annotations of classes, of training tasks and held-out tasks. More annotations give better
            estimates of the annotators.
        tasks: ids of the rows of x.

    Raises:
        DataError: annotations of another kind, a task that is not among them, or none of these tasks is annotated.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.layers import CrowdsourcedLayer
        >>> from crowdzoo.models import CrowdModel, FeatureClassifier, HeldOutAnnotations
        >>> tasks, truth = np.arange(40), np.arange(40) % 2
        >>> x, annotations = np.eye(2, dtype="float32")[truth], Annotations.from_dense(np.stack([truth] * 3, axis=1))
        >>> score = HeldOutAnnotations(x[30:], annotations, tasks=tasks[30:])
        >>> stop = keras.callbacks.EarlyStopping("held_out_log_likelihood", mode="max", patience=5)
        >>> model = CrowdModel(FeatureClassifier(num_features=2, num_classes=2), CrowdsourcedLayer(num_annotators=3))
        >>> train = {"tasks": tasks[:30], "callbacks": [score, stop], "verbose": 0}
        >>> history = model.fit(x[:30], annotations.select_tasks(np.arange(30)), epochs=10, **train)
        >>> "held_out_log_likelihood" in history.history
        True
    """

    def __init__(self, x: Any, annotations: Annotations, tasks: Any):
        if not annotations.label_kind.one_class:
            raise DataError(f"HeldOutAnnotations: scores models of classes, got kind {annotations.kind}.")
        place = {task: code for code, task in enumerate(annotations.tasks.tolist())}
        tasks = np.asarray(tasks).tolist()
        for task in tasks:
            if task not in place:
                raise DataError(f"HeldOutAnnotations: task {short_repr(task)} is not in the annotations. Pass all.")
        rows = np.array([place[task] for task in tasks], int)
        number = int(annotations.redundancy[rows].sum())
        if not number:
            raise DataError("HeldOutAnnotations: none of these tasks is annotated. Hold out annotated tasks.")
        super().__init__()
        self.x = x
        self._likelihoods = log_likelihoods(annotations)[rows]
        self._num_annotations = number

    def state(self) -> Config:
        """Empty, as this callback has no state; see `crowdzoo.training.training_state.state_of`."""
        return {}

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Predicts the held-out tasks and logs the score."""
        if logs is not None:
            answers = np.asarray(self.model.predict(self.x, verbose=0), dtype=np.float64)
            if answers.shape != self._likelihoods.shape:
                raise ConfigError(
                    f"HeldOutAnnotations: predict gives shape {answers.shape}, not the class probabilities of the "
                    f"held-out tasks, {self._likelihoods.shape}. Train a CrowdModel(base, layer)."
                )
            logs[MONITORED] = float(scores(answers, self._likelihoods).sum() / self._num_annotations)
