"""What methods are compared by: agreement with gold, or what they predict of annotations that were hidden."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.metrics import expected_calibration_error, lost_classes, r2_score
from crowdzoo.training.held_out_annotations import log_likelihoods, scores
from crowdzoo.training.held_out_ratings import rating_evidence, rating_scores

Scores = NDArray[np.float64]
HIDDEN = "nats per hidden annotation"


class Measure(ABC):
    """How answers to tasks are scored, of one kind of labels.

    Answers are `[n, K]`: class probabilities, or with K = 1 ratings.

    Attributes:
        title: of the score against gold; higher is better.
        baseline: the aggregation that all others are compared with.
        quick: names of the aggregations that are compared where none is named.
        final: the aggregation whose result the method "aggregated" learns from.
    """

    title: ClassVar[str]
    baseline: ClassVar[str]
    quick: ClassVar[tuple[str, ...]]
    final: ClassVar[str]

    @abstractmethod
    def answers(self, result: Any) -> Scores:
        """Those of an aggregation, [N, K]."""

    @abstractmethod
    def known(self, gold: NDArray[Any]) -> NDArray[np.bool_]:
        """Which tasks have gold, [N]."""

    def targets(self, answers: Scores) -> Scores:
        """What a base learns from answers of an aggregation."""
        return answers

    @abstractmethod
    def told(self, gold: NDArray[Any], num_classes: int) -> Scores:
        """The answers that gold gives, [n, K]."""

    @abstractmethod
    def right(self, answers: Scores, gold: NDArray[Any]) -> Scores:
        """The score of each task against gold, [n]; its mean is the measure."""

    @abstractmethod
    def hidden(
        self, annotations: Annotations, rows: NDArray[np.bool_] | None = None
    ) -> Callable[[Scores, NDArray[Any]], Scores]:
        """What gives the log-probability of the annotations of some tasks, given answers to them.

        Args:
            annotations: all there are: they say what the annotators are like.
            rows: those that are asked for, bool [A]; None is all.
        """

    @abstractmethod
    def figures(self, answers: Scores, gold: NDArray[Any]) -> dict[str, float]:
        """Further measures against gold, of n tasks."""

    def faults(self, answers: Scores, annotations: Annotations, tasks: NDArray[Any]) -> list[str]:
        """Sentences on what is wrong with answers, by the annotations alone."""
        return []


class OfClasses(Measure):
    """Accuracy; ties share a task."""

    title = "accuracy"
    baseline = "majority-vote"
    quick = (
        "majority-vote", "wawa", "one-coin", "dawid-skene", "hierarchical-dawid-skene", "glad", "mace", "bwa", "robust",
    )  # fmt: skip
    final = "robust"

    def answers(self, result: Any) -> Scores:
        """Posteriors."""
        found: Scores = result.posteriors
        return found

    def known(self, gold: NDArray[Any]) -> NDArray[np.bool_]:
        """Those whose code is not negative."""
        return np.asarray(gold) >= 0

    def told(self, gold: NDArray[Any], num_classes: int) -> Scores:
        """One-hot."""
        return np.eye(num_classes)[gold]

    def right(self, answers: Scores, gold: NDArray[Any]) -> Scores:
        """Whether the most probable class is right; of several it is each with the same chance."""
        best = answers == answers.max(axis=1, keepdims=True)
        return best[np.arange(len(gold)), gold] / best.sum(axis=1)

    def hidden(
        self, annotations: Annotations, rows: NDArray[np.bool_] | None = None
    ) -> Callable[[Scores, NDArray[Any]], Scores]:
        """See `held_out_annotations.scores`."""
        likelihoods = log_likelihoods(annotations, rows)
        return lambda answers, tasks: scores(answers, likelihoods[tasks])

    def figures(self, answers: Scores, gold: NDArray[Any]) -> dict[str, float]:
        """Balanced accuracy, log loss (nats) and expected calibration error."""
        right, there = self.right(answers, gold), np.unique(gold)
        likelihood = np.clip(answers[np.arange(len(gold)), gold], 1e-7, 1)
        return {
            "balanced accuracy": float(np.mean([right[gold == code].mean() for code in there])),
            "log loss": float(-np.log(likelihood).mean()),
            "calibration error": expected_calibration_error(gold, answers),
        }

    def faults(self, answers: Scores, annotations: Annotations, tasks: NDArray[Any]) -> list[str]:
        """Classes that are never given."""
        names: Any = annotations.classes
        asked = np.zeros(annotations.num_tasks, bool)
        asked[tasks] = True
        votes = annotations.labels[asked[annotations.task_ids]]
        lost = lost_classes(answers.argmax(axis=1), votes, len(names))
        return [f"never says {', '.join(str(names[code]) for code in lost)}"] if len(lost) else []


class OfRatings(Measure):
    """Mean absolute error, negative, in the labels' unit."""

    title = "mean absolute error, negative"
    baseline = "mean"
    quick = ("mean", "median", "rating-em", "ordinal")
    final = "rating-em"

    def answers(self, result: Any) -> Scores:
        """Estimates."""
        found: Scores = result.estimates[:, None]
        return found

    def known(self, gold: NDArray[Any]) -> NDArray[np.bool_]:
        """Those that are numbers."""
        return ~np.isnan(np.asarray(gold, float))

    def targets(self, answers: Scores) -> Scores:
        """One number a task."""
        return answers[:, 0]

    def told(self, gold: NDArray[Any], num_classes: int) -> Scores:
        """Gold itself."""
        return np.asarray(gold, float)[:, None]

    def right(self, answers: Scores, gold: NDArray[Any]) -> Scores:
        """Negative absolute errors."""
        return -np.abs(answers[:, 0] - gold)

    def hidden(
        self, annotations: Annotations, rows: NDArray[np.bool_] | None = None
    ) -> Callable[[Scores, NDArray[Any]], Scores]:
        """See `held_out_ratings.rating_scores`."""
        evidence = rating_evidence(annotations, rows)
        return lambda answers, tasks: rating_scores(answers[:, 0], evidence.of(tasks))

    def figures(self, answers: Scores, gold: NDArray[Any]) -> dict[str, float]:
        """R² and the root of the mean squared error, in the labels' unit."""
        errors = answers[:, 0] - gold
        return {"R²": r2_score(gold, answers[:, 0]), "RMSE": float(np.sqrt(np.mean(errors**2)))}


def measure_of(annotations: Annotations, caller: str) -> Measure:
    """The measure of a kind of labels.

    Args:
        annotations: of that kind.
        caller: for the message.

    Raises:
        DataError: methods for labels of this kind are not compared.
    """
    kind = annotations.label_kind
    if kind.one_class:
        return OfClasses()
    if kind.has_classes:
        raise DataError(f"{caller}: compares methods for classes or for ratings; these are labels of another kind.")
    return OfRatings()
