"""iBCC on blocks."""

# ruff: noqa: D102  (`Method` describes them)
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import ibcc
from crowdzoo.aggregation.engine import bayes
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.tally import Tally

__all__ = ["IBCCForm"]

Array = NDArray[np.float64]


class IBCCForm(Method):
    """Rows are expected counts, from which each worker takes the expected logarithms that it needs."""

    params_type = ibcc.Beliefs
    also_found = ("log_likelihood",)

    def prepared(self, rows: Array, common: Array) -> Any:
        return self.params(rows, common).params

    def params(self, rows: Array, common: Array) -> Any:
        return ibcc.update(Counts(rows, common), self.aggregator.priors(self.num_classes))

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        return params.counts.table, params.counts.classes

    def expect(self, total: Tally, block: Block, params: Any, state: Array | None, counting: bool) -> Array | None:
        total.common[-2] += (~block.informed).sum()
        return super().expect(total, block, params, state, counting)

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        return total.rows, total.common[: self.num_classes].copy()

    def objective(self, common_counts: Array, common: Array) -> float:
        counts = self.counts(Tally(self.zero(0).rows, common_counts))
        return ibcc.bound(counts, self.params(counts.table, common), int(common_counts[-2]))

    def penalty(self, rows: Array) -> float:
        return -self.params(rows, np.zeros(self.num_classes)).divergence

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        found = bayes.posteriors(block, params)
        found[~block.informed] = means.class_prior
        return found

    def means(self, rows: Array, common: Array) -> Any:
        return self.params(rows, common).means

    def last_likelihood(self, block: Block, means: Any) -> float:
        counts = self.counts(self.zero(means.num_annotators))
        counts.add_expected(block, means, False)
        return counts.log_likelihood
