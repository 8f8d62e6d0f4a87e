"""Robust on blocks."""

# ruff: noqa: D102  (`Method` describes them)
from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.classes import robust
from crowdzoo.aggregation.classes.robust import Beliefs, believe, first_counts, num_steps, posteriors_of
from crowdzoo.aggregation.engine.agreement import Agreement
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import ConfigError
from crowdzoo.large.forms.base import Begin, Found, Method
from crowdzoo.large.forms.tally import Tally

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

__all__ = ["RobustForm"]

Array = NDArray[np.float64]


class RobustForm(Method):
    """Rows are expected counts. Common are class counts, `Agreement`, which the first pass counts, and the step.

    The network looks at all annotators, so these are not cut in shards.
    """

    takes_shards = False
    converges = False

    def __init__(self, aggregator: Any, num_annotators: int, num_classes: int):
        super().__init__(aggregator, num_annotators, num_classes)
        self.max_iter, self.tol = num_steps() - 1, -1.0  # no step ends it before the last

    @property
    def identity(self) -> dict[str, Any]:
        return {"weights": hashlib.blake2b(robust.WEIGHTS.read_bytes(), digest_size=16).hexdigest()}

    def zero(self, num_annotators: int) -> Tally:
        rows = np.zeros((num_annotators, *self.row_shape))
        return Tally(rows, np.zeros(self.num_classes + 3 * self.num_annotators * self.num_classes + 2 + 3))

    def begin_from(self, annotations: Annotations, initial: Any) -> Begin:
        if initial is not None:
            raise ConfigError("Robust begins with the votes: it takes no `initial`.")
        return None, None, None

    def first(
        self, total: Tally, block: Block, start: int, codes: NDArray[np.int64] | None, given: Array | None
    ) -> Array | None:
        self._agreement(total.common).add(block)
        first_counts(self.counts(total), block)
        return None

    def _agreement(self, common: Array) -> Agreement:
        """A view of its part of a vector."""
        size = self.num_annotators * self.num_classes
        part = common[self.num_classes :][: 3 * size + 2]
        said, agree, agreed = part[: 3 * size].reshape(3, self.num_annotators, self.num_classes)
        return Agreement(said, agree, agreed, part[3 * size :])

    def maximise(self, total: Tally, rows: Array | None, common: Array | None) -> tuple[Array, Array]:
        if common is None:
            return total.rows, np.append(total.common[:-3], 0.0)
        return total.rows, np.concatenate(
            [total.common[: self.num_classes], common[self.num_classes : -1], common[-1:] + 1]
        )

    def objective(self, common_counts: Array, common: Array) -> float:
        return 0.0

    def penalty(self, rows: Array) -> float:
        return 0.0

    def prepared(self, rows: Array, common: Array) -> Any:
        return believe(int(common[-1]), Counts(rows, common[: self.num_classes]), self._agreement(common))

    def expect(self, total: Tally, block: Block, params: Beliefs, state: Array | None, counting: bool) -> Array | None:
        return super().expect(total, block, params.params, state, counting)

    def posteriors(self, block: Block, params: Any, means: Any, state: Array | None) -> Array:
        return posteriors_of(block, params)

    def params(self, rows: Array, common: Array) -> Any:
        return Counts(rows, common[: self.num_classes])

    def rows_of(self, params: Any) -> tuple[Array, Array]:
        raise ConfigError("Robust begins with the votes: it takes no `initial`.")

    def found_result(self, annotations: Annotations, run: Run[Any], found: Found) -> Aggregation:
        result: Aggregation = self.aggregator.result(annotations, found.posteriors, run.params)
        return result
