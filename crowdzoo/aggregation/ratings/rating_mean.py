"""The mean rating, of all or without the outermost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.checks import check_ratings
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.ratings.plain_ratings import by_rank, fit_answers
from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.checks.constraints import END, Number, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


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
    name: ClassVar[str] = "mean"
    title: ClassVar[str] = "The mean rating"

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
            deviation as its error. `skills` compares an annotator with the mean of the others.

        Raises:
            ConfigError: an impossible scale.
            DataError: not ratings, none at all, or some outside of the scale.
        """
        return fit_answers(self, annotations)

    def check(self, annotations: Annotations) -> None:
        """Refuses what `fit` refuses."""
        check_ratings(annotations, self.title, self.low, self.high)

    def answers(self, block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Estimates of a block's tasks, and their errors in units of the deviation of single ratings, [T] each."""
        ratings, rank, counts = by_rank(block)
        cut = np.floor(self.trim * counts).astype(np.int64)
        kept = (rank >= cut[block.index]) & (rank < (counts - cut)[block.index])
        number = np.maximum(counts - 2 * cut, 1)
        return np.bincount(block.index[kept], ratings[kept], len(counts)) / number, 1 / np.sqrt(number)
