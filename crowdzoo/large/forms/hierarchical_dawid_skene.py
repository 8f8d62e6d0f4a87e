"""Hierarchical Dawid-Skene on blocks."""

# ruff: noqa: D102  (`Method` describes them)
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import hierarchical_dawid_skene as steps
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.run import Run, advance
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.large.forms.base import Found, Method
from crowdzoo.large.forms.tally import Tally

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

__all__ = ["HierarchicalForm"]

Array = NDArray[np.float64]


class HierarchicalForm(Method):
    """Rows are expected counts; what is common are class counts, the coin's and the common matrix, and the strength.

    The common matrix follows from the rows of all annotators, so these are not cut in shards.
    """

    judges_m_step = True
    takes_shards = False
    params_type = steps.Crowd
    also_found = ("log_likelihood",)

    def params(self, rows: Array, common: Array) -> Any:
        count = self.num_classes
        classes, coin, matrix = np.split(common[:-1], [count, count * (count + 1)])
        return steps.crowd_of(
            Counts(rows, classes), coin.reshape(count, count), matrix.reshape(count, count), float(common[-1])
        )

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        common = (params.counts.classes, params.coin.ravel(), params.common.ravel(), [params.strength])
        return params.counts.table, np.concatenate(common)

    def prepared(self, rows: Array, common: Array) -> Any:
        return self.params(rows, common).params

    def means(self, rows: Array, common: Array) -> Any:
        return self.params(rows, common).means

    def expect(self, total: Tally, block: Block, params: Any, state: Array | None, counting: bool) -> Array | None:
        total.common[-2] += (~block.informed).sum()
        return super().expect(total, block, params, state, counting)

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        return self.rows_of(steps.start(self.counts(total)))

    def iterated(self, run: Run[Array], total: Tally, rows: Callable[[], Array]) -> tuple[Run[Array], Array]:
        before, counts, settings = self.params(rows(), run.params), self.counts(total), self.aggregator
        after = advance(
            Run(before, run.history),
            steps.bound(counts, before, settings.annotators, int(total.common[-2])),
            counts.log_likelihood,
            counts.num_annotations,
            self.max_iter,
            self.tol,
            lambda: steps.update(counts, before, settings.annotators),
        )
        found, common = self.rows_of(after.params)
        return Run(common, after.history, after.log_likelihood, after.converged, after.done), found

    def objective(self, common_counts: Array, common: Array) -> float:
        raise NotImplementedError  # see `iterated`

    def penalty(self, rows: Array) -> float:
        return 0.0

    def last_likelihood(self, block: Block, means: Any) -> float:
        counts = self.counts(self.zero(means.num_annotators))
        counts.add_expected(block, means, False)
        return counts.log_likelihood

    def found_result(self, annotations: Annotations, run: Run[Any], found: Found) -> Aggregation:
        facts = run.facts | {"log_likelihood": found.log_likelihood}
        name, means = "hierarchical-dawid-skene", run.params.means
        return Aggregation.of(name, annotations, found.posteriors, found.labels, means, **facts)
