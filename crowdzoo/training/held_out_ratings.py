"""Scores a regressor by how well it predicts held-out ratings."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.registry import create
from crowdzoo.data.annotations import Annotations

SPREADS = np.geomspace(0.02, 2.0, 24)  # deviations of the truth around a prediction, relative to the ratings'
ANNOTATORS = "rating-em"  # method that estimates the annotators' biases and precisions


class RatingEvidence(NamedTuple):
    """Summary of each task's ratings y, given annotators' biases b and precisions lambda.

    Attributes:
        weight: sum of lambda, [N].
        mean: mean of y - b, weighted by lambda, [N]; 0 without ratings.
        constant: log-probability of the ratings at a truth of `mean`, nats, [N].
        unit: deviation of all ratings.
    """

    weight: NDArray[np.float64]
    mean: NDArray[np.float64]
    constant: NDArray[np.float64]
    unit: float

    def of(self, tasks: np.ndarray) -> "RatingEvidence":
        """The evidence of some tasks."""
        return RatingEvidence(self.weight[tasks], self.mean[tasks], self.constant[tasks], self.unit)


def rating_evidence(annotations: Annotations, rows: NDArray[np.bool_] | None = None) -> RatingEvidence:
    """Computes the evidence of ratings, with annotators estimated by `rating-em` on all of them.

    Args:
        annotations: ratings.
        rows: mask of the ratings to use, bool `[A]`; None is all.
    """
    aggregation = create(ANNOTATORS, kind="regression").fit(annotations)
    unit = float(np.std(annotations.labels)) or 1.0
    annotations = annotations if rows is None else annotations.select_rows(rows)
    tasks, annotators, number = annotations.task_ids, annotations.annotator_ids, annotations.num_tasks
    precision = aggregation.precisions[annotators]
    corrected = annotations.labels - aggregation.biases[annotators]
    weight = np.bincount(tasks, precision, number).astype(np.float64)
    mean = np.bincount(tasks, precision * corrected, number) / np.where(weight > 0, weight, 1.0)
    logs = (np.log(precision / (2 * np.pi)) - precision * (corrected - mean[tasks]) ** 2) / 2
    return RatingEvidence(weight, mean, np.bincount(tasks, logs, number).astype(np.float64), unit)


def rating_scores(answers: np.ndarray, evidence: RatingEvidence) -> NDArray[np.float64]:
    """Log-probability of each task's ratings at the best-fitting spread and level.

    The truth of a task is normally distributed around the prediction plus a level d, which annotators' biases do not
    determine, with standard deviation tau. d and tau are the same for all tasks.

    Args:
        answers: a model's predictions, in the ratings' unit, `[n]`.
        evidence: evidence of these tasks, which must all have ratings.

    Returns:
        `[n]`, nats.
    """
    best = np.full(len(answers), -np.inf)
    gap = evidence.mean - np.asarray(answers, np.float64)
    for spread in SPREADS * evidence.unit:
        shrunk = evidence.weight / (1 + spread**2 * evidence.weight)
        level = (shrunk @ gap) / shrunk.sum()
        score = evidence.constant - (np.log1p(spread**2 * evidence.weight) + shrunk * (gap - level) ** 2) / 2
        if score.sum() > best.sum():
            best = score
    return best
