"""Ratings on blocks: the mean and the median, and rating EM."""

# ruff: noqa: D102  (`Method` describes them)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.ratings.plain_ratings import SUMS, add_answers
from crowdzoo.aggregation.ratings.rating_steps import (
    COMMON,
    RatingAnnotators,
    RatingBeliefs,
    RatingCrowd,
    add_expected,
    add_ratings,
    iterated,
    started,
    truths,
)
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.tally import Tally

__all__ = ["PlainRatingForm", "RatingEMForm"]

Array = NDArray[np.float64]


class _RatingForm(Method):
    """What both have in common: labels are ratings, so there are no classes. Rows are small, and so stay together."""

    takes_shards = False
    num_sums = 0

    def zero(self, num_annotators: int) -> Tally:
        return Tally(np.zeros((num_annotators, *self.row_shape)), np.zeros(self.num_sums + 3))

    @property
    def num_columns(self) -> int:
        return 2

    def objective(self, common_counts: Array, common: Array) -> float:
        return 0.0

    def penalty(self, rows: Array) -> float:
        return 0.0

    def labels(self, posteriors: Array, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.zeros(len(tasks), np.int64)


class PlainRatingForm(_RatingForm):
    """The mean and the median: sums over blocks, and no iteration.

    `Found.posteriors` are estimates and their errors in units of the deviation of single ratings, [N, 2].
    """

    params_type = Tally
    num_sums = SUMS

    @property
    def row_shape(self) -> tuple[int, ...]:
        return (2,)

    def first(
        self, total: Tally, block: Block, start: int, codes: NDArray[np.int64] | None, given: Array | None
    ) -> Array | None:
        add_answers(block, self.aggregator.answers(block)[0], total.rows, total.common[:SUMS])
        return None

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        return total.rows, total.common[:SUMS].copy()

    def prepared(self, rows: Array, common: Array) -> Any:
        return Tally(rows, common)

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        return params.rows, params.common

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        return np.stack(self.aggregator.answers(block), axis=1)


class RatingEMForm(_RatingForm):
    """Rows of parameters are `RatingAnnotators`, what is common `RatingCrowd`; counts are those of `rating_steps`.

    `Found.posteriors` are truths and their variances, [N, 2].
    """

    judges_m_step = True
    params_type = RatingBeliefs
    num_sums = COMMON

    @property
    def row_shape(self) -> tuple[int, ...]:
        return (3,)

    @property
    def params_shape(self) -> tuple[int, ...]:
        return (len(RatingAnnotators._fields),)

    @property
    def num_steps(self) -> int:
        return self.max_iter

    def first(
        self, total: Tally, block: Block, start: int, codes: NDArray[np.int64] | None, given: Array | None
    ) -> Array | None:
        add_ratings(block, total.rows)
        return None

    def prepared(self, rows: Array, common: Array) -> Any:
        return RatingBeliefs(RatingAnnotators(*rows.T), RatingCrowd(*common.tolist()))

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        return np.stack(params.annotators, axis=1), np.array(params.crowd)

    def expect(self, total: Tally, block: Block, params: Any, state: Array | None, counting: bool) -> Array | None:
        add_expected(block, params, total.rows, total.common[:COMMON])
        return None

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        return self.rows_of(started(total.rows, self.aggregator))

    def iterated(self, run: Run[Array], total: Tally, rows: Callable[[], Array]) -> tuple[Run[Array], Array]:
        before = Run(self.prepared(rows(), run.params), run.history)
        after = iterated(before, total.rows, total.common[:COMMON], self.aggregator)
        found, common = self.rows_of(after.params)
        return Run(common, after.history, 0.0, after.converged, after.done), found

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        return np.stack(truths(block, params), axis=1)
