"""WAUM: find the tasks that a network cannot agree with its crowd about, leave them out, train on the rest."""

from dataclasses import replace
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from crowdzoo.aggregation.classes.dawid_skene import DawidSkene
from crowdzoo.constraints import Choice
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.crowd_layer import SMALLEST
from crowdzoo.layers.expectation import annotation_columns
from crowdzoo.layers.phases import answers_of_batch
from crowdzoo.layers.ranges import DIAGONAL, DROPOUT, PHASE, PSEUDO_COUNT
from crowdzoo.losses import MaskedCrowdCrossentropy
from crowdzoo.quality.aum import DENOMINATORS, MARGINS, Waum, label_margins, label_trust, trusted_votes
from crowdzoo.tables.annotations import Annotations

__all__ = ["WAUM", "MarginRecorder", "TrainingStart", "VotesCrossentropy", "record_margins"]


@keras.saving.register_keras_serializable(package="crowdzoo")
class VotesCrossentropy(MaskedCrowdCrossentropy):
    """Cross-entropy of class probabilities to votes, divided by the votes: a task without any is not counted.

    `-sum_ik v_ik log p_ik / sum_ik v_ik`. With v the number of votes it is the mean over all labels of a batch, as if
    every (task, label) pair were a row; with soft labels the mean over the tasks that have one.

    Call arguments:
        y_true: votes or soft labels `[B, K]`, rows of zeros for tasks that do not count. Or labels int `[B, M]`, -1
            where there is none, beside annotators' answers: then it is the parent's loss (`evaluate`, validation).
        y_pred: class probabilities `[B, K]`; or annotators' log-probabilities `[B, M, K]`.

    Returns:
        A scalar, in nats; 0 for a batch without votes.
    """

    def costs(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        """See the parent; the second result weighs the first."""
        if len(y_pred.shape) == 3:
            return super().costs(y_true, y_pred)
        votes = ops.cast(y_true, y_pred.dtype)
        return -votes * ops.log(ops.maximum(y_pred, SMALLEST)), votes


@keras.saving.register_keras_serializable(package="crowdzoo")
class WAUM(ConfusionMatrices):
    """Trains the base twice: to see which tasks are too ambiguous, and without those.

    1. Dawid-Skene on all annotations gives confusion matrices pi.
    2. The base learns every label ("stacked": cross-entropy to each). After each of `margin_epochs` epochs the margins
       that make up AUM are taken, in evaluation mode.
    3. `WAUM_i = sum_r s_r AUM_ir / sum_r s_r`, with trust `s_r(x_i) = sum_k pi[r, k, k] p_k(x_i)` at the last epoch.
    4. Tasks with a WAUM of at most the quantile `prune` are left out; Dawid-Skene again on the rest.
    5. Base and optimizer are put back to their start, and the base learns the soft labels of the rest,
       `q_i(k) ~ sum_r pi[r, k, k] 1[y_ir = k]`.

    Steps 1 to 3 are `measure`, and `crowdzoo.quality.aum.waum` on its own. `fit`'s epochs, callbacks and
    validation are step 5's. Afterwards `scores` holds the measures, and the layer's matrices are step 4's.

    Pruned tasks have soft labels of zeros: they cost nothing and are not counted, though they still pass through a
    base's batch normalisation. The authors' code records margins during training (dropout on) and not after it.
    The matrices are no weights of the gradient descent. Finding bad tasks is what this is good at; whether
    training without them helps depends on the data.

    Args:
        num_annotators: R, number of annotators.
        prune: alpha, the quantile of WAUM up to which tasks are left out, at least 0 (none) and below 1.
        margin_epochs: epochs of step 2.
        margin: "top-2" or "pleiss", see `crowdzoo.quality.aum.label_margins`.
        denominator: "trust" or "redundancy", see `crowdzoo.quality.aum.weighted_margins`.
        smoothing: pseudo-count of every cell in Dawid-Skene's matrices, above 0.
        diagonal: P(right label) that everybody has before `fit`.
        **kwargs: `keras.layers.Layer`'s own (`name`, `dtype`).

    Attributes:
        scores: `crowdzoo.quality.aum.Waum` of the last `fit`, or None; not saved with the model.

    Call arguments:
        inputs: class probabilities `[B, K]`.
        annotators: int `[B, M]`, annotator codes, -1 for padding; None asks everybody.

    Returns:
        Log-probabilities of the labels, `[B, M, K]` (`[B, R, K]`).

    Raises:
        ValueError: impossible values, or an input of the wrong rank.

    Source:
        T. Lefort, B. Charlier, A. Joly, J. Salmon: Identify Ambiguous Tasks Combining Crowdsourced Labels by Weighting
        Areas Under the Margin. TMLR 2024.
    """

    tasks: ClassVar[tuple[str, ...]] = ("classification",)

    beyond_descent: ClassVar[str | None] = "the base is trained twice, without ambiguous tasks the second time"

    def __init__(
        self,
        num_annotators: int,
        prune: float = 0.01,
        margin_epochs: int = 50,
        margin: str = "top-2",
        denominator: str = "trust",
        smoothing: float = 0.01,
        diagonal: float = 0.8,
        **kwargs: Any,
    ):
        super().__init__(num_annotators, diagonal, **kwargs)
        self.diagonal = DIAGONAL.checked("WAUM", "diagonal", diagonal)
        self.prune = DROPOUT.checked("WAUM", "prune", prune)
        self.margin_epochs = PHASE.checked("WAUM", "margin_epochs", margin_epochs)
        self.margin = Choice(tuple(MARGINS)).checked("WAUM", "margin", margin)
        self.denominator = Choice(tuple(DENOMINATORS)).checked("WAUM", "denominator", denominator)
        self.smoothing = PSEUDO_COUNT.checked("WAUM", "smoothing", smoothing)
        self.scores: Waum | None = None

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """See `ConfusionMatrices.build`; the matrices are not trained by gradients."""
        super().build(inputs_shape)
        self.kernel.trainable = False

    def default_loss(self) -> keras.losses.Loss:
        """Serves both trainings."""
        return VotesCrossentropy()

    def fit(
        self, model: Any, data: Any, *, batch_size: int, seed: int, shuffle: bool = True, **kwargs: Any
    ) -> keras.callbacks.History:
        """All steps; see `CrowdLayer.fit`.

        The history is step 5's. What step 2 has of it stands under `margin_loss` and so on, one value for each of
        `margin_epochs`.
        """
        start = TrainingStart(model)
        self.scores, first = self.measure(
            model, data, batch_size=batch_size, seed=seed, shuffle=shuffle, verbose=kwargs.get("verbose", "auto")
        )
        rest = self._without(self.scores)
        confusions: Any = DawidSkene(prior=self.smoothing, diagonal=0.0).fit(rest).confusions
        self.set_confusions(confusions)
        soft = trusted_votes(confusions, rest.task_ids, rest.annotator_ids, rest.labels, data.num_tasks)
        start.restore()
        history = model.fit_batches(data.batches(batch_size, seed, shuffle=shuffle, inputs=(), targets=soft), **kwargs)
        history.history.update({f"margin_{name}": values for name, values in first.history.items()})
        return history

    def measure(
        self, model: Any, data: Any, *, batch_size: int, seed: int, shuffle: bool = True, verbose: Any = "auto"
    ) -> tuple[Waum, keras.callbacks.History]:
        """Steps 1 to 3. The base is trained further from where it stands, and stays so.

        Args:
            model: a compiled `CrowdModel` that holds this layer.
            data: `crowdzoo.models.TrainingData`.
            batch_size: tasks in a batch.
            seed: of the order of the tasks.
            shuffle: False keeps the tasks' order.
            verbose: Keras' verbosity.

        Returns:
            The measures, with annotations in the order of `annotation_columns`; and Keras' `History`.
        """
        annotations = self._annotations(data)
        confusions: Any = DawidSkene(prior=self.smoothing, diagonal=0.0).fit(annotations).confusions
        recorder = record_margins(
            model, data, annotations, self.margin,
            epochs=self.margin_epochs, batch_size=batch_size, seed=seed, shuffle=shuffle, verbose=verbose,
        )  # fmt: skip
        trust = label_trust(confusions, recorder.probabilities, annotations.task_ids, annotations.annotator_ids)
        return Waum.of(annotations, recorder.aum, trust, self.denominator), recorder.model.history

    def _annotations(self, data: Any) -> Annotations:
        """All that training goes through, with codes for names."""
        return Annotations(
            "classification",
            *annotation_columns(data),
            tasks=np.arange(data.num_tasks),
            annotators=np.arange(self.num_annotators),
            classes=np.arange(self._num_classes or 1),
        )

    def _without(self, scores: Waum) -> Annotations:
        """The annotations of the tasks that are not pruned; tasks keep their codes."""
        every = scores.annotations
        kept = ~scores.prunable(self.prune)[every.task_ids]
        return replace(
            every,
            task_ids=every.task_ids[kept],
            annotator_ids=every.annotator_ids[kept],
            labels=every.labels[kept],
        )

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        return {
            **super().get_config(),
            "prune": self.prune,
            "margin_epochs": self.margin_epochs,
            "margin": self.margin,
            "denominator": self.denominator,
            "smoothing": self.smoothing,
        }


class TrainingStart:
    """Where a base and its optimizer stood, to begin again from.

    Args:
        model: a compiled `CrowdModel`.
    """

    def __init__(self, model: Any):
        self._model = model
        model.optimizer.build(model.trainable_variables)
        self._variables = [*model.base.variables, *model.optimizer.variables]
        self._values = [np.array(ops.convert_to_numpy(variable)) for variable in self._variables]

    def restore(self) -> None:
        """Puts weights, the optimizer's moments, its count of steps and its learning rate back."""
        for variable, value in zip(self._variables, self._values, strict=True):
            variable.assign(value)


class MarginRecorder(keras.callbacks.Callback):
    """After every epoch, the margins of all labels in evaluation mode. Holds [A] and [N, K] numbers.

    Args:
        data: `crowdzoo.models.TrainingData`.
        annotations: the same annotations: N tasks, A labels, K classes.
        margin: see `crowdzoo.quality.aum.label_margins`.
        batch_size: tasks in a batch of the evaluation.

    Attributes:
        probabilities: what the base says at last, float32 `[N, K]`; zeros where nobody labelled.
    """

    def __init__(self, data: Any, annotations: Annotations, margin: str, batch_size: int = 256):
        super().__init__()
        self.batches = data.batches(batch_size, 0, shuffle=False, inputs=("tasks",))
        self.annotations = annotations
        self.margin = margin
        self.probabilities = np.zeros((annotations.num_tasks, annotations.num_classes), "float32")
        self._total = np.zeros(len(annotations))
        self._epochs = 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Asks the base about every task."""
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
    model: Any,
    data: Any,
    annotations: Annotations,
    margin: str,
    *,
    epochs: int,
    batch_size: int,
    seed: int,
    shuffle: bool = True,
    verbose: Any = "auto",
) -> MarginRecorder:
    """Trains the base on every label, and records the margins.

    A batch holds tasks with all their labels, where the authors' holds (task, label) pairs; the loss is the mean over
    the labels either way.

    Args:
        model: a compiled `CrowdModel` with a `WAUM` layer.
        data: `crowdzoo.models.TrainingData`.
        annotations: the same annotations.
        margin: see `crowdzoo.quality.aum.label_margins`.
        epochs: passes over the data.
        batch_size: tasks in a batch.
        seed: of the order of the tasks.
        shuffle: False keeps the tasks' order.
        verbose: Keras' verbosity.

    Returns:
        The recorder, whose `model.history` is that of the training.
    """
    shape = (annotations.num_tasks, annotations.num_classes)
    cells = np.ravel_multi_index((annotations.task_ids, annotations.labels), shape)
    votes = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype("float32")
    recorder = MarginRecorder(data, annotations, margin)
    batches = data.batches(batch_size, seed, shuffle=shuffle, inputs=(), targets=votes)
    model.fit_batches(batches, epochs=epochs, callbacks=[recorder], verbose=verbose)
    return recorder
