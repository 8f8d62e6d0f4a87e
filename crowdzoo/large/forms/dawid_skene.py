"""Dawid-Skene on blocks."""

# ruff: noqa: D102  (`Method` describes them)
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import dawid_skene
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.large.forms.base import Begin, Method
from crowdzoo.large.forms.tally import Tally

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

__all__ = ["DawidSkeneForm"]

Array = NDArray[np.float64]


class DawidSkeneForm(Method):
    """Rows are log P(said | true), `[annotator, said, true]`."""

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        if initial is not None and (isinstance(initial, Aggregation) or np.ndim(initial) != 2):
            return self.rows_of(self.aggregator.warm_start(annotations, initial).params), None, None
        return super().begin_from(annotations, initial)

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        return self.rows_of(dawid_skene.update(self.counts(total), self.aggregator.prior, self.aggregator.diagonal))

    def objective(self, common_counts: Array, common: Array) -> float:
        counts = self.counts(Tally(self.zero(0).rows, common_counts))
        settings = self.aggregator
        return dawid_skene.objective(counts, Params(counts.table, common), settings.prior, settings.diagonal)

    def penalty(self, rows: Array) -> float:
        params = Params(rows.transpose(0, 2, 1), np.zeros(0))
        settings = self.aggregator
        return dawid_skene.objective(Counts(rows, params.log_class_prior), params, settings.prior, settings.diagonal)
