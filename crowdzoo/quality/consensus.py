"""CROWDLAB and ActiveLab: annotations and a classifier's probabilities together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import require_annotations
from crowdzoo.errors import DataError

_LEAST = 1e-6  # of a weight, and of the share that the most frequent class leaves
_TEMPERATURES = (0.05, 20.0)


@dataclass(frozen=True, eq=False)
class Crowdlab:
    """What `crowdlab` found. N tasks, R annotators, K classes, A annotations.

    Attributes:
        labels: consensus, class codes, int64 [N].
        quality: probability of the consensus, [N].
        posteriors: of the classes, [N, K], rows sum to one. A task without annotations has the classifier's.
        label_quality: posterior of the class that each annotation names, [A].
        annotator_quality: of each annotator, from 0 to 1, [R]; NaN for annotators who share no task with others.
        agreement: share of an annotator's labels that are the consensus, [R]; NaN for annotators without labels.
        annotator_weights: in the posteriors, [R].
        model_weight: of the classifier in the posteriors.
        annotator_accuracy: probability that a label is the consensus, over all annotators.
    """

    labels: NDArray[np.int64]
    quality: NDArray[np.float64]
    posteriors: NDArray[np.float64]
    label_quality: NDArray[np.float64]
    annotator_quality: NDArray[np.float64]
    agreement: NDArray[np.float64]
    annotator_weights: NDArray[np.float64]
    model_weight: float
    annotator_accuracy: float

    def __repr__(self) -> str:
        tasks, classes = self.posteriors.shape
        return f"Crowdlab({tasks:,} tasks, {len(self.agreement):,} annotators, {classes} classes)"


def crowdlab(annotations: Annotations, probabilities: ArrayLike) -> Crowdlab:
    """Consensus, and how far to trust it, from annotations and any classifier's probabilities.

    The posterior of a task is a weighted mean: of the classifier's probabilities, and of one distribution for each
    label, which gives the label's class the share of labels that agree with the consensus and the other classes the
    rest. An annotator's weight comes from the agreement with others, the classifier's from the agreement with the
    consensus, both compared with always naming the most frequent class. Agreement counts on tasks with two labels and
    more. The first consensus is the majority vote, where ties go to the class that the classifier finds likelier; it is
    replaced once by the most probable class.

    Source: H. W. Goh, U. Tkachenko, J. Mueller: CROWDLAB: Supervised learning to infer consensus labels and quality
    scores for data with multiple annotators. 2022, arXiv:2210.06812.

    Args:
        annotations: kind classification.
        probabilities: of the classes for each task, [N, K], rows sum to one. They should come from a classifier that
            was not trained on the task (cross-validation): one that has learned a task's labels by heart agrees with
            them whether they are right or not.

    Raises:
        DataError: other kinds of labels, shapes that do not fit, rows that do not sum to one, or no task that two
            annotators labelled.
    """
    votes = _Votes(annotations, _checked(annotations, probabilities))
    first = votes.round(votes.majority())
    found = votes.round(first.posteriors.argmax(axis=1))
    size, ours, labels = annotations.num_annotators, annotations.annotator_ids, annotations.labels
    label_quality = found.posteriors[annotations.task_ids, labels]
    right = labels == found.consensus[annotations.task_ids]
    shared = votes.shared[annotations.task_ids]
    mean_quality, agreement = _mean(size, ours, label_quality), _mean(size, ours, right)
    share = found.model / (found.model + found.weights.mean() * votes.sizes[votes.sizes > 0].mean())
    return Crowdlab(
        labels=found.consensus,
        quality=found.posteriors[np.arange(len(found.posteriors)), found.consensus],
        posteriors=found.posteriors,
        label_quality=label_quality,
        annotator_quality=share * mean_quality + (1 - share) * _mean(size, ours[shared], right[shared]),
        agreement=agreement,
        annotator_weights=found.weights,
        model_weight=found.model,
        annotator_accuracy=found.accuracy,
    )


@checked(temperature=Number(0, above=True, optional=True))
def active_scores(
    annotations: Annotations, probabilities: ArrayLike, *, temperature: float | None = None
) -> NDArray[np.float64]:
    """ActiveLab's scores: which tasks to label next, for the first time or again.

    The score of a task is the probability of its consensus (`crowdlab`), mixed with the uniform distribution at the
    weight of one more annotator. A task with few labels is drawn towards 1/K more than one with many, so tasks without
    labels and tasks with doubtful ones compare. Ask for one more label for the tasks with the lowest scores, train
    again, and repeat.

    Source: H. W. Goh, J. Mueller: ActiveLab: Active learning with re-labeling by multiple annotators. 2023,
    arXiv:2301.11856. Equal to cleanlab 2.9.0 at the same temperature; the temperature is another one, because there
    counts of classes that a task lacks are left out of the distribution that it is fitted to.

    Args:
        annotations: kind classification; tasks may have none.
        probabilities: of the classes for each task, [N, K], rows sum to one, as for `crowdlab`.
        temperature: the probabilities are raised to the power 1 / temperature first. None takes the temperature, from
            0.05 to 20, at which they explain the annotations best.

    Returns:
        float64 [N], from 0 to 1; the lowest first.

    Raises:
        ConfigError: a temperature that is not above 0.
        DataError: as `crowdlab`.
    """
    p = _checked(annotations, probabilities)
    p = _tempered(p, _temperature(annotations, p) if temperature is None else temperature)
    votes = _Votes(annotations, p)
    found = votes.round(votes.round(votes.majority()).posteriors.argmax(axis=1))
    quality = found.posteriors[np.arange(len(p)), found.consensus]
    more = found.weights.mean()
    return (found.total * quality + more / p.shape[1]) / (found.total + more)


@dataclass(frozen=True)
class _Round:
    """One pass over the annotations, from a consensus to posteriors."""

    consensus: NDArray[np.int64]
    posteriors: NDArray[np.float64]
    weights: NDArray[np.float64]  # [R]
    model: float
    total: NDArray[np.float64]  # sum of the weights of a task, [N]
    accuracy: float


class _Votes:
    """Counts of annotations, and what does not change between rounds."""

    def __init__(self, annotations: Annotations, probabilities: NDArray[np.float64]):
        tasks, classes = probabilities.shape
        self.annotations, self.p = annotations, probabilities
        self.sizes = annotations.redundancy
        self.shared = self.sizes > 1
        if not self.shared.any():
            raise DataError("CROWDLAB compares annotators: no task has labels of two of them.")
        cells = annotations.task_ids * classes + annotations.labels
        self.counts = np.bincount(cells, minlength=tasks * classes).reshape(tasks, classes)
        own = annotations.task_ids[of_shared := self.shared[annotations.task_ids]]
        others = self.sizes[own] - 1
        alike = self.counts[own, annotations.labels[of_shared]] - 1
        who = annotations.annotator_ids[of_shared]
        size = annotations.num_annotators
        with np.errstate(invalid="ignore"):  # no shared task: filled in by the round
            self.with_others = np.bincount(who, alike, size) / np.bincount(who, others, size)

    def majority(self) -> NDArray[np.int64]:
        """Class codes [N]; ties go to the likelier class, then to the more frequent one, then to the lower code."""
        best = self.counts == self.counts.max(axis=1, keepdims=True)
        likely = np.where(best, self.p, -1.0)
        tied = likely == likely.max(axis=1, keepdims=True)
        return np.where(tied, self.counts.sum(axis=0), -1).argmax(axis=1)

    def round(self, consensus: NDArray[np.int64]) -> _Round:
        """Weights by a consensus, int [N], and posteriors by the weights."""
        tasks, classes = self.p.shape
        a, agreed = self.annotations, consensus[self.shared]
        frequent = np.bincount(agreed).max() / len(agreed)
        rest = max(1 - frequent, _LEAST)
        weights = np.maximum(1 - (1 - self.with_others) / rest, _LEAST)
        weights[np.isnan(weights)] = np.nanmean(weights)
        wrong = (self.p[self.shared].argmax(axis=1) != agreed).mean()
        model = max(1 - wrong / rest, _LEAST) * np.sqrt(self.sizes[self.sizes > 0].mean())
        accuracy = (self.counts[np.arange(tasks), consensus][self.shared] / self.sizes[self.shared]).mean()

        weight = weights[a.annotator_ids]
        said = np.bincount(a.task_ids * classes + a.labels, weight, tasks * classes).reshape(tasks, classes)
        crowd = said.sum(axis=1, keepdims=True)
        other = (1 - accuracy) / max(classes - 1, 1)
        total = model + crowd[:, 0]
        posteriors = (model * self.p + accuracy * said + other * (crowd - said)) / total[:, None]
        return _Round(consensus, posteriors, weights, float(model), total, float(accuracy))


def _mean(size: int, ids: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
    """Means by id, [size]; NaN without values."""
    with np.errstate(invalid="ignore"):
        return np.bincount(ids, values, size) / np.bincount(ids, minlength=size)


def _checked(annotations: Annotations, probabilities: ArrayLike) -> NDArray[np.float64]:
    require_annotations(annotations, "CROWDLAB")
    if not annotations.label_kind.one_class:
        raise DataError(f"CROWDLAB is for classes, got kind {annotations.kind}.")
    annotations.check_no_repeats("CROWDLAB")
    p = np.asarray(probabilities, dtype=np.float64)
    wanted = (annotations.num_tasks, annotations.num_classes)
    if p.shape != wanted:
        raise DataError(f"probabilities have the shape [tasks, classes] = {list(wanted)}, got {list(p.shape)}.")
    bad = np.flatnonzero(~((p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) < 1e-3)))
    if len(bad):
        raise DataError(f"row {bad[0]} of the probabilities is {p[bad[0]]}; rows are not negative and sum to one.")
    return p


def _tempered(p: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        logs = np.log(p) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _temperature(annotations: Annotations, p: NDArray[np.float64]) -> float:
    """The temperature at which probabilities have the lowest mean cross-entropy with the shares of labels.

    The cross-entropy is convex in 1 / temperature, so its slope is followed to 0 by bisection.
    """
    tasks, labels = annotations.task_ids, annotations.labels
    sizes = annotations.redundancy
    logs = np.log(np.maximum(p, 1e-12))
    said = np.bincount(tasks, logs[tasks, labels] / sizes[tasks], len(p))[sizes > 0]
    p, logs = p[sizes > 0], logs[sizes > 0]
    low, high = 1 / _TEMPERATURES[1], 1 / _TEMPERATURES[0]
    for _ in range(40):
        middle = np.sqrt(low * high)
        slope = ((_tempered(p, 1 / middle) * logs).sum(axis=1) - said).mean()
        low, high = (low, middle) if slope > 0 else (middle, high)
    return float(1 / np.sqrt(low * high))
