"""The median rating: one wild annotator cannot move it."""

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
from crowdzoo.checks.constraints import END, setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


@dataclass(frozen=True)
class RatingMedian(Aggregator):
    """The median of a task's ratings; of an even number the mean of the two in the middle.

    Args:
        low: lowest rating of the scale, or None for any.
        high: highest rating of the scale, or None for any.

    Needs:
        Several ratings a task, better an odd number.

    Source:
        The median.
    """

    kind: ClassVar[str] = "regression"
    name: ClassVar[str] = "median"
    title: ClassVar[str] = "The median rating"

    low: float | None = setting(None, END)
    high: float | None = setting(None, END)

    def fit(self, annotations: Annotations) -> RatingAggregation:
        """Takes the medians.

        Args:
            annotations: ratings of N tasks by R annotators; not changed.

        Returns:
            Medians. Standard errors are those of `RatingMean`, times sqrt(pi / 2) where a task has three ratings or
            more (the factor of many normal ones). Tasks without ratings and `skills` as there.

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
        lower, upper = ((counts - 1) // 2)[block.index], (counts // 2)[block.index]
        times = (rank == lower).astype(np.int64) + (rank == upper)  # twice where there is one in the middle
        factors = np.where(counts > 2, np.sqrt(np.pi / 2), 1.0) / np.sqrt(np.maximum(counts, 1))
        return np.bincount(block.index, times * ratings, len(counts)) / 2, factors
