"""The mean rating, of all or without the outermost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.ratings.plain_ratings import PlainRatings, by_rank
from crowdzoo.checks.constraints import END, Number, setting


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
        Several ratings a task.

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
