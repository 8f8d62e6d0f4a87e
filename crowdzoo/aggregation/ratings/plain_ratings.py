"""Methods without a model of the annotators: answers of a block, sums over blocks, and the result from those."""

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

# What is added up over blocks is `rows` [R, 2], the number of ratings of tasks that others rated too and the sum of
# their squared differences from the mean of the others, and `sums` [SUMS]: over tasks with ratings one, the estimate
# and its square; then ratings less tasks with ratings, squared differences of ratings from the mean of their task;
# ratings, their squares, their number.
SUMS = 8

Array = NDArray[np.float64]


class PlainRatings(Aggregator):
    """A method without a model of the annotators."""

    kind: ClassVar[str] = "regression"
    title: ClassVar[str]
    low: float | None
    high: float | None

    def fit(self, annotations: Annotations) -> RatingAggregation:
        """Takes the estimates.

        Args:
            annotations: ratings of N tasks by R annotators; not changed.

        Returns:
            Estimates, and their standard errors; see the class. A task without ratings has the mean of the estimates,
            and their deviation as its error. `skills` compares an annotator with the mean of the others.

        Raises:
            ConfigError: an impossible scale.
            DataError: not ratings, none at all, or some outside of the scale.
        """
        self.check(annotations)
        origin, block = block_of_ratings(annotations)
        rows, sums = np.zeros((annotations.num_annotators, 2)), np.zeros(SUMS)
        estimates, factors = self.answers(block)
        add_answers(block, estimates, rows, sums)
        return result_of_answers(self, annotations, origin + estimates, factors, rows, sums)

    def check(self, annotations: Annotations) -> None:
        """Refuses what `fit` refuses."""
        check_ratings(annotations, self.title, self.low, self.high)

    @abstractmethod
    def answers(self, block: Block) -> tuple[Array, Array]:
        """Estimates of a block's tasks, and their errors in units of the deviation of single ratings, [T] each.

        Anything where nobody rated.
        """


def block_of_ratings(annotations: Annotations) -> tuple[float, Block]:
    """All tasks as one block, whose ratings count from a usual one: sums keep their digits, also next to a huge one.

    Args:
        annotations: ratings of N tasks, one or more.

    Returns:
        The lower median, and the block. Where all ratings are equal they are exactly zero.
    """
    labels = annotations.labels
    origin = float(np.quantile(labels, 0.5, method="lower"))
    tasks = np.arange(annotations.num_tasks)
    return origin, Block.of_ratings(annotations.task_ids, annotations.annotator_ids, labels - origin, tasks)


def by_rank(block: Block) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Ratings of every task in ascending order.

    Args:
        block: A ratings of T tasks.

    Returns:
        Ratings [A] in the order of `block.index`, place of each within its task from 0 [A], ratings per task [T].
    """
    ratings = block.labels[np.lexsort((block.labels, block.index))]
    return ratings, np.arange(len(block)) - block.starts[:-1][block.index], np.diff(block.starts)


def add_answers(block: Block, estimates: Array, rows: Array, sums: Array) -> None:
    """Adds a block to the rows and the sums.

    How reliable an annotator is, is judged by the mean of the others who rated the same tasks.
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
    """The result: errors, tasks without ratings, skills.

    Args:
        method: the aggregator.
        annotations: ratings of N tasks by R annotators.
        estimates: [N].
        factors: standard errors in units of the deviation of single ratings, [N].
        rows: of all blocks, [R, 2].
        sums: of all blocks, [SUMS].
    """
    tasks, num_estimated, squares, free, within, ratings, rating_squares, number = sums.tolist()
    spread = max(squares / tasks - (num_estimated / tasks) ** 2, 0.0)
    # that of all ratings, which is more than it can be, if no task has two
    deviation = within / free if free else max(rating_squares / number - (ratings / number) ** 2, 0.0)
    rated = annotations.redundancy > 0
    shared, differences = rows.T
    pooled = differences.sum() / max(shared.sum(), 1)
    both = spread + np.where(shared > 0, differences / np.maximum(shared, 1), pooled)  # who shared none is as all are
    return RatingAggregation(
        method=method.name,
        **names_and_counts(annotations),
        estimates=np.where(rated, estimates, estimates[rated].mean()),
        standard_errors=np.where(rated, np.sqrt(deviation) * factors, np.sqrt(spread)),
        skills=np.where(both > 0, spread / np.where(both > 0, both, 1.0), 1.0),
    )


@dataclass(frozen=True)
class RatingMean(PlainRatings):
    """The mean of a task's ratings; the baseline that every other method has to beat.

    Standard errors are `s / sqrt(ratings that count)`, with s the deviation of ratings from the mean of their task,
    over all tasks.

    Args:
        trim: share of a task's ratings that is left out at either end, 0 to below 0.5; with n ratings
            `floor(trim n)` of the lowest and as many of the highest.
        low: lowest rating of the scale, or None for any.
        high: highest rating of the scale, or None for any.

    Raises:
        ConfigError: a setting out of range.

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
        """As in `PlainRatings`."""
        ratings, rank, counts = by_rank(block)
        cut = np.floor(self.trim * counts).astype(np.int64)
        kept = (rank >= cut[block.index]) & (rank < (counts - cut)[block.index])
        number = np.maximum(counts - 2 * cut, 1)
        return np.bincount(block.index[kept], ratings[kept], len(counts)) / number, 1 / np.sqrt(number)


@dataclass(frozen=True)
class RatingMedian(PlainRatings):
    """The median of a task's ratings; for an even number the mean of the two in the middle.

    Standard errors are those of `RatingMean`, times sqrt(pi / 2) where a task has three ratings or more (the factor of
    many normal ones).

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
        Several ratings per task, better an odd number.

    Source:
        The median.
    """

    name: ClassVar[str] = "median"
    title: ClassVar[str] = "The median rating"

    low: float | None = setting(None, END)
    high: float | None = setting(None, END)

    def answers(self, block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """As in `PlainRatings`."""
        ratings, rank, counts = by_rank(block)
        lower, upper = ((counts - 1) // 2)[block.index], (counts // 2)[block.index]
        times = (rank == lower).astype(np.int64) + (rank == upper)  # twice where there is one in the middle
        factors = np.where(counts > 2, np.sqrt(np.pi / 2), 1.0) / np.sqrt(np.maximum(counts, 1))
        return np.bincount(block.index, times * ratings, len(counts)) / 2, factors
