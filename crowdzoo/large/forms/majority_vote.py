"""Majority vote on blocks."""

# ruff: noqa: D102  (`Method` describes them)
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import majority_vote
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import ConfigError
from crowdzoo.large.forms.base import Begin, Found, Method
from crowdzoo.large.forms.tally import Tally

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

__all__ = ["MajorityVoteForm"]

Array = NDArray[np.float64]


class MajorityVoteForm(Method):
    """Rows are log P(said | true), as with Dawid-Skene; there is one M-step and no E-step."""

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        if initial is not None:
            raise ConfigError("Majority vote takes no `initial`.")
        return None, None, None

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        params = majority_vote.update(self.counts(total))
        return params.log_table, params.log_class_prior

    def objective(self, common_counts: Array, common: Array) -> float:
        return 0.0

    def penalty(self, rows: Array) -> float:
        return 0.0

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        settings = self.aggregator
        return majority_vote.posteriors(block, params, settings.voting, settings.ties, settings.seed)

    def labels(self, posteriors: Array, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        return choose_labels(posteriors, tasks, self.aggregator.ties, self.aggregator.seed)

    def found_result(self, annotations: Annotations, run: Run[Any], found: Found) -> Aggregation:
        return Aggregation.of("majority-vote", annotations, found.posteriors, found.labels, run.params)
