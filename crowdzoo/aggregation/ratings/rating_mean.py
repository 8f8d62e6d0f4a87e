"""The mean rating, of all or without the outermost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.checks import check_ratings
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation, agreement
from crowdzoo.constraints import END, Number, setting

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["RatingMean", "by_rank", "pooled_deviation"]


@dataclass(frozen=True)
class RatingMean(Aggregator):
    """The mean of a task's ratings; the baseline that every other method has to beat.

    Args:
        trim: share of a task's ratings that is left out at either end, 0 to below 0.5; with n ratings
            `floor(trim n)` of the lowest and as many of the highest.
        low: lowest rating of the scale, or None for any.
        high: highest rating of the scale, or None for any.

    Raises:
        ConfigError: a setting out of range.

    Needs:
        Several ratings a task.

    Source:
        The arithmetic mean; with `trim`, the trimmed mean.
    """

    kind: ClassVar[str] = "regression"

    trim: float = setting(0.0, Number(0, 0.5, below=True))
    low: float | None = setting(None, END)
    high: float | None = setting(None, END)

    def fit(self, annotations: Annotations) -> RatingAggregation:
        """Takes the means.

        Args:
            annotations: ratings of N tasks by R annotators; not changed.

        Returns:
            Means; their standard errors are `s / sqrt(ratings that count)` with s the deviation of ratings from the
            mean of their task, over all tasks. A task without ratings has the mean of the estimates, and their
            deviation as its error. `reliability` compares an annotator with the mean of the others.

        Raises:
            ConfigError: an impossible scale.
            DataError: not ratings, none at all, or some outside of the scale.
        """
        check_ratings(annotations, "The mean rating", self.low, self.high)
        tasks, ratings, rank, counts = by_rank(annotations)
        cut = np.floor(self.trim * counts).astype(np.int64)
        kept = (rank >= cut[tasks]) & (rank < (counts - cut)[tasks])
        number = counts - 2 * cut
        estimates = np.bincount(tasks[kept], ratings[kept], len(counts)) / np.maximum(number, 1)
        return finished("mean", annotations, estimates, 1 / np.sqrt(np.maximum(number, 1)))


def by_rank(
    annotations: Annotations,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Ratings of every task in ascending order.

    Args:
        annotations: A ratings of N tasks.

    Returns:
        Tasks [A], ratings [A], place of each rating within its task from 0 [A], ratings per task [N].
    """
    order = np.lexsort((annotations.labels, annotations.task_ids))
    tasks, counts = annotations.task_ids[order], annotations.redundancy
    rank = np.arange(len(tasks)) - (np.cumsum(counts) - counts)[tasks]
    return tasks, annotations.labels[order], rank, counts


def pooled_deviation(annotations: Annotations) -> float:
    """Standard deviation of ratings about the mean of their task, over all tasks with two or more.

    If no task has any, that of all ratings, which is more than it can be.
    """
    tasks, ratings, counts = annotations.task_ids, annotations.labels, annotations.redundancy
    means = np.bincount(tasks, ratings, len(counts)) / np.maximum(counts, 1)
    free = int((counts - 1)[counts > 0].sum())
    if free == 0:
        return float(ratings.std())
    return float(np.sqrt(np.square(ratings - means[tasks]).sum() / free))


def finished(
    method: str, annotations: Annotations, estimates: NDArray[np.float64], factors: NDArray[np.float64]
) -> RatingAggregation:
    """The result of a method without a model: errors, tasks without ratings, reliability.

    Args:
        method: its name.
        annotations: ratings of N tasks.
        estimates: [N], anything where nobody rated.
        factors: standard errors in units of the deviation of single ratings, [N].
    """
    rated = annotations.redundancy > 0
    estimates = np.where(rated, estimates, estimates[rated].mean())
    errors = np.where(rated, pooled_deviation(annotations) * factors, estimates[rated].std())
    return RatingAggregation.of(method, annotations, estimates, errors, agreement(annotations, estimates))
