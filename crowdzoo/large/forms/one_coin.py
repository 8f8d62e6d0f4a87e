"""One-coin Dawid-Skene on blocks."""

# ruff: noqa: D102  (`Method` describes them)
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import one_coin
from crowdzoo.aggregation.classes.initial import same_crowd
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.right_wrong import Answers, Cells, answers_of, given_answers, posteriors_of
from crowdzoo.large.forms.base import Begin, Method
from crowdzoo.large.forms.tally import Tally

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

__all__ = ["OneCoinForm"]

Array = NDArray[np.float64]


class OneCoinForm(Method):
    """Rows are two logarithms, of a right annotation and of a certain wrong one; counts are right and wrong ones."""

    params_type = Cells

    @property
    def row_shape(self) -> tuple[int, ...]:
        return (2,)

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        if same_crowd(initial, "one-coin", annotations):
            return self.rows_of(self.aggregator.warm_start(initial).params), None, None
        return super().begin_from(annotations, initial)

    def _add(self, total: Tally, block: Block, given: Array) -> None:
        self._add_answers(total, given_answers(block, block.clamped(given), (len(total.rows),)))

    def _add_answers(self, total: Tally, answers: Answers) -> None:
        total.rows[:, 0] += answers.right
        total.rows[:, 1] += answers.wrong
        total.common[: self.num_classes] += answers.classes
        total.common[-3] += answers.log_likelihood
        total.common[-1] += answers.num_annotations

    def prepared(self, rows: Array, common: Array) -> Any:
        return Cells(np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1]), common)

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        return np.stack([params.right, params.wrong], axis=1), params.class_prior

    def expect(self, total: Tally, block: Block, params: Any, state: Array | None, counting: bool) -> Array | None:
        self._add_answers(total, answers_of([block], params))
        return None

    def _answers(self, rows: Array, common_counts: Array) -> Answers:
        classes = common_counts[: self.num_classes]
        return Answers(rows[:, 0], rows[:, 1], classes, float(common_counts[-3]), int(common_counts[-1]))

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        return self.rows_of(one_coin.update(self._answers(total.rows, total.common), self.aggregator))

    def objective(self, common_counts: Array, common: Array) -> float:
        nobody = self.zero(0).rows
        params = self.prepared(nobody, common)
        return one_coin.objective(self._answers(nobody, common_counts), params, self.aggregator)

    def penalty(self, rows: Array) -> float:
        params = self.prepared(rows, np.ones(self.num_classes))  # of which the logarithms are zero
        counts = self._answers(self.zero(0).rows, np.zeros(self.num_classes + 3))
        return one_coin.objective(counts, params, self.aggregator)

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        return posteriors_of(block, params)
