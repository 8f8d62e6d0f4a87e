"""Mean and median: estimates of a block, sums over blocks, and the result from these sums."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Aggregator, check_ratings, names_and_counts
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.checks.constraints import END, Number, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

# Sums over blocks: `rows` [R, 2], the number of ratings of tasks with other ratings, and the sum of squared differences
# from the mean of the others; and `sums` [SUMS]: number, estimates and squared estimates of the tasks with ratings;
# number of ratings minus number of these tasks, squared differences of ratings from the mean of their task; ratings,
# squared ratings, and number of ratings.
SUMS = 8

Array = NDArray[np.float64]


class PlainRatings(Aggregator):
    """Base class of the methods without a model of the annotators."""

    kind: ClassVar[str] = "regression"
    title: ClassVar[str]
    low: float | None
    high: float | None

    def fit(self, annotations: Annotations) -> RatingAggregation:
        """Estimates the true ratings.

        Args:
            annotations: ratings of N tasks by R annotators; not changed.

        Returns:
            Estimates and their standard errors, see the class. A task without ratings has the mean of the estimates,
            and their standard deviation as its error. `skills` compares each annotator with the mean of the others.

        Raises:
            ConfigError: an invalid scale.
            DataError: not ratings, none at all, or some outside the scale.
        """
        self.check(annotations)
        origin, block = block_of_ratings(annotations)
        rows, sums = np.zeros((annotations.num_annotators, 2)), np.zeros(SUMS)
        estimates, factors = self.answers(block)
        add_answers(block, estimates, rows, sums)
        return result_of_answers(self, annotations, origin + estimates, factors, rows, sums)

    def check(self, annotations: Annotations) -> None:
        """Raises the errors of `fit`."""
        check_ratings(annotations, self.title, self.low, self.high)

    @abstractmethod
    def answers(self, block: Block) -> tuple[Array, Array]:
        """Estimates of a block's tasks, and their errors in units of the deviation of single ratings, [T] each.

        Arbitrary for tasks without ratings.
        """


def block_of_ratings(annotations: Annotations) -> tuple[float, Block]:
    """Returns all tasks as one block, with ratings relative to a typical one, so that sums keep their precision.

    Args:
        annotations: ratings of N tasks, one or more.

    Returns:
        The lower median, and the block. If all ratings are equal, they are exactly zero.
    """
    labels = annotations.labels
    origin = float(np.quantile(labels, 0.5, method="lower"))
    tasks = np.arange(annotations.num_tasks)
    return origin, Block.of_ratings(annotations.task_ids, annotations.annotator_ids, labels - origin, tasks)


def by_rank(block: Block) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Sorts the ratings of each task.

    Args:
        block: A ratings of T tasks.

    Returns:
        Ratings [A] in the order of `block.index`, rank within the task from 0 [A], number of ratings per task [T].
    """
    ratings = block.labels[np.lexsort((block.labels, block.index))]
    return ratings, np.arange(len(block)) - block.starts[:-1][block.index], np.diff(block.starts)


def add_answers(block: Block, estimates: Array, rows: Array, sums: Array) -> None:
    """Adds a block to the rows and the sums.

    Annotators are compared with the mean of the others who rated the same tasks.
    """
    block.check_annotators(len(rows))
    tasks, annotators, ratings, counts = block.index, block.annotator_ids, block.labels, np.diff(block.starts)
    rated = counts > 0
    totals = np.bincount(tasks, ratings, len(counts))
    means = totals / np.maximum(counts, 1)
    num_others = counts[tasks] - 1
    rest = (totals[tasks] - ratings) / np.maximum(num_others, 1)
    shared = num_others > 0
    rows[:, 0] += np.bincount(annotators[shared], minlength=len(rows))
    rows[:, 1] += np.bincount(annotators, np.where(shared, np.square(ratings - rest), 0.0), len(rows))
    estimate = estimates[rated]
    of_tasks = len(estimate), estimate.sum(), estimate @ estimate
    within = len(ratings) - len(estimate), np.square(ratings - means[tasks]).sum()
    sums += np.array([*of_tasks, *within, ratings.sum(), ratings @ ratings, len(ratings)])


def result_of_answers(
    method: Any, annotations: Annotations, estimates: Array, factors: Array, rows: Array, sums: Array
) -> RatingAggregation:
    """Creates the result: errors, tasks without ratings, skills.

    Args:
        method: the aggregator.
        annotations: ratings of N tasks by R annotators.
        estimates: estimates of the tasks, [N].
        factors: standard errors in units of the deviation of single ratings, [N].
        rows: rows of all blocks, [R, 2].
        sums: sums of all blocks, [SUMS].
    """
    tasks, num_estimated, squares, free, within, ratings, rating_squares, number = sums.tolist()
    spread = max(squares / tasks - (num_estimated / tasks) ** 2, 0.0)
    # if no task has two ratings, the deviation of all ratings, which is an upper bound
    deviation = within / free if free else max(rating_squares / number - (ratings / number) ** 2, 0.0)
    rated = annotations.redundancy > 0
    shared, differences = rows.T
    pooled = differences.sum() / max(shared.sum(), 1)
    both = spread + np.where(shared > 0, differences / np.maximum(shared, 1), pooled)  # pooled without shared tasks
    return RatingAggregation(
        method=method.name,
        **names_and_counts(annotations),
        estimates=np.where(rated, estimates, estimates[rated].mean()),
        standard_errors=np.where(rated, np.sqrt(deviation) * factors, np.sqrt(spread)),
        skills=np.where(both > 0, spread / np.where(both > 0, both, 1.0), 1.0),
    )


@dataclass(frozen=True)
class RatingMean(PlainRatings):
    """The mean of a task's ratings, the baseline that every other method has to beat.

    Standard errors are `s / sqrt(number of ratings used)`, with s the pooled standard deviation of ratings around the
    mean of their task.

    Args:
        trim: share of a task's ratings that is left out at either end, 0 to below 0.5; for n ratings the `floor(trim
            n)` lowest and highest ones.
        low: lowest rating of the scale, or None for any.
        high: highest rating of the scale, or None for any.

    Raises:
        ConfigError: a setting is out of range.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import RatingMean
        >>> ratings = Annotations.from_arrays([1, 1, 2, 2], ["ann", "bob"] * 2, [3, 4, 1, 2], kind="regression")
        >>> RatingMean().fit(ratings).estimates.tolist()
        [3.5, 1.5]

    Needs:
        Several ratings per task.

    Source:
        The arithmetic mean; with `trim`, the trimmed mean.
    """

    name: ClassVar[str] = "mean"
    title: ClassVar[str] = "The mean rating"

    trim: float = setting(0.0, Number(0, 0.5, below=True))
    low: float | None = setting(None, END)
    high: float | None = setting(None, END)

    def answers(self, block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See `PlainRatings`."""
        ratings, rank, counts = by_rank(block)
        cut = np.floor(self.trim * counts).astype(np.int64)
        kept = (rank >= cut[block.index]) & (rank < (counts - cut)[block.index])
        number = np.maximum(counts - 2 * cut, 1)
        return np.bincount(block.index[kept], ratings[kept], len(counts)) / number, 1 / np.sqrt(number)


@dataclass(frozen=True)
class RatingMedian(PlainRatings):
    """The median of a task's ratings; for an even number the mean of the two in the middle.

    Standard errors are those of `RatingMean`, times sqrt(pi / 2) for tasks with three or more ratings (the asymptotic
    factor for normal ratings).

    Args:
        low: lowest rating of the scale, or None for any.
        high: highest rating of the scale, or None for any.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import RatingMedian
        >>> task, annotator = [1, 1, 1, 2], ["ann", "bob", "cem", "ann"]
        >>> ratings = Annotations.from_arrays(task, annotator, [3, 4, 10, 2], kind="regression")
        >>> RatingMedian().fit(ratings).estimates.tolist()
        [4.0, 2.0]

    Needs:
        Several ratings per task, preferably an odd number.

    Source:
        The median.
    """

    name: ClassVar[str] = "median"
    title: ClassVar[str] = "The median rating"

    low: float | None = setting(None, END)
    high: float | None = setting(None, END)

    def answers(self, block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See `PlainRatings`."""
        ratings, rank, counts = by_rank(block)
        lower, upper = ((counts - 1) // 2)[block.index], (counts // 2)[block.index]
        times = (rank == lower).astype(np.int64) + (rank == upper)  # counts twice if there is one in the middle
        factors = np.where(counts > 2, np.sqrt(np.pi / 2), 1.0) / np.sqrt(np.maximum(counts, 1))
        return np.bincount(block.index, times * ratings, len(counts)) / 2, factors
