"""GLAD on blocks."""

# ruff: noqa: D102  (`Method` describes them)
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import glad
from crowdzoo.aggregation.classes.initial import same_crowd
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.large.forms.base import Begin, Method
from crowdzoo.large.forms.tally import Tally

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

__all__ = ["GLADForm"]

Array = NDArray[np.float64]


class GLADForm(Method):
    """Rows are abilities; counts are pull and weight; the state of a task is b."""

    has_state = True
    needs_rows = True
    params_type = glad.Abilities
    also_found = ("states",)

    def __init__(self, aggregator: Any, num_annotators: int, num_classes: int):
        super().__init__(aggregator, num_annotators, num_classes)
        self.first_state = float(aggregator.b_mean)

    @property
    def row_shape(self) -> tuple[int, ...]:
        return (2,)  # of the counts; a row of parameters has its ability first, and zero

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        if same_crowd(initial, "glad", annotations):
            run, b = self.aggregator.begin(annotations, initial)
            return self.rows_of(run.params), None, b
        return super().begin_from(annotations, initial)

    def first(
        self, total: Tally, block: Block, start: int, codes: NDArray[np.int64] | None, given: Array | None
    ) -> Array | None:
        b = np.full(len(block.tasks), self.first_state)
        return b if given is None else self._step(total, block, self._begin(len(total.rows)), b, block.clamped(given))

    def _begin(self, num_annotators: int) -> glad.Abilities:
        alpha = np.full(num_annotators, float(self.aggregator.alpha_mean))
        return glad.Abilities(alpha, np.full(self.num_classes, 1 / self.num_classes))

    def _step(self, total: Tally, block: Block, params: glad.Abilities, b: Array, given: Array | None) -> Array:
        counts, new = glad.contribution(block, params, b, self.aggregator, given)
        total.rows[:, 0] += counts.pull
        total.rows[:, 1] += counts.weight
        total.common[: self.num_classes] += counts.classes
        total.common[-3:] += counts.log_likelihood, counts.log_prior, counts.num_annotations
        return new

    def prepared(self, rows: Array, common: Array) -> Any:
        return glad.Abilities(np.ascontiguousarray(rows[:, 0]), common)

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        return np.stack([params.alpha, np.zeros_like(params.alpha)], axis=1), params.class_prior

    def expect(self, total: Tally, block: Block, params: Any, state: Array | None, counting: bool) -> Array | None:
        assert state is not None
        return self._step(total, block, params, state, None)

    def _glad_counts(self, rows: Array, common_counts: Array) -> glad.GladCounts:
        classes, (likelihood, prior, number) = common_counts[: self.num_classes], common_counts[-3:].tolist()
        return glad.GladCounts(rows[:, 0], rows[:, 1], classes, likelihood, prior, int(number))

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        params = self._begin(len(total.rows))
        if common is not None:
            params = replace(params, class_prior=common)
        if rows is not None:
            params = replace(params, alpha=rows[:, 0])
        return self.rows_of(glad.update(self._glad_counts(total.rows, total.common), params, self.aggregator))

    def objective(self, common_counts: Array, common: Array) -> float:
        nobody = self.zero(0).rows
        counts = self._glad_counts(nobody, common_counts)
        return glad.objective(counts, self.prepared(nobody, common), self.aggregator)

    def penalty(self, rows: Array) -> float:
        counts = self._glad_counts(rows, np.zeros(self.num_classes + 3))
        return glad.objective(counts, self.prepared(rows, np.zeros(0)), self.aggregator)

    def difficulty(self, states: Array) -> Array | None:
        return glad.difficulty(states)

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        assert state is not None
        return glad.posteriors(block, params, state)
