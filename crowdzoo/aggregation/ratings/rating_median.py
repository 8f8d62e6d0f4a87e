"""The median rating: one wild annotator cannot move it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.ratings.plain_ratings import PlainRatings, by_rank
from crowdzoo.checks.constraints import END, setting


@dataclass(frozen=True)
class RatingMedian(PlainRatings):
    """The median of a task's ratings; of an even number the mean of the two in the middle.

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
        Several ratings a task, better an odd number.

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
