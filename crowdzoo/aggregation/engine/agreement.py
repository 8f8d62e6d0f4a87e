"""How a task's other annotators agree with each annotator, by the class that he said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Additive, Block
from crowdzoo.aggregation.engine.loops import compiled

Array = NDArray[np.float64]


@dataclass(eq=False)
class Agreement(Additive):
    """What annotations say without any model; blocks add to it.

    Attributes:
        said: how often an annotator said a class, [R, K].
        agree: of those, the share of the task's other annotators who said it too, summed, [R, K].
        agreed: how many of those had other annotators, [R, K].
        sizes: tasks with annotations, and tasks with one, [2].
    """

    said: Array
    agree: Array
    agreed: Array
    sizes: Array

    @classmethod
    def zero(cls, num_annotators: int, num_classes: int) -> Agreement:
        """Of no block."""
        num_answers, agree, agreed = np.zeros((3, num_annotators, num_classes))
        return cls(num_answers, agree, agreed, np.zeros(2))

    def add(self, block: Block) -> None:
        """Adds a block's."""
        block.check_codes(*self.said.shape)
        _add(*block.columns[:3], np.zeros(self.said.shape[1]), self.said, self.agree, self.agreed, self.sizes)


def sum_rows(x: Array, ids: NDArray[Any], number: int) -> Array:
    """Sums of the rows of `x`, [U] or [U, C], that have the same id, [number] or [number, C]."""
    sums = np.zeros((number, *x.shape[1:]))
    width = math.prod(x.shape[1:])
    _add_rows(np.ascontiguousarray(x).reshape(len(x), width), ids, sums.reshape(number, width))
    return sums


@compiled()
def _add(starts, annotators, labels, votes, num_answers, agree, agreed, sizes):  # type: ignore[no-untyped-def]  # for Numba
    for i in range(len(starts) - 1):
        num_others = starts[i + 1] - starts[i] - 1
        if num_others < 0:
            continue
        sizes[0] += 1
        sizes[1] += num_others == 0
        for j in range(starts[i], starts[i + 1]):
            votes[labels[j]] += 1
        for j in range(starts[i], starts[i + 1]):
            r, label = annotators[j], labels[j]
            num_answers[r, label] += 1
            if num_others > 0:
                agree[r, label] += (votes[label] - 1) / num_others
                agreed[r, label] += 1
        for j in range(starts[i], starts[i + 1]):
            votes[labels[j]] = 0


@compiled()
def _add_rows(x, ids, sums):  # type: ignore[no-untyped-def]  # for Numba
    for i in range(len(ids)):
        for k in range(x.shape[1]):
            sums[ids[i], k] += x[i, k]
