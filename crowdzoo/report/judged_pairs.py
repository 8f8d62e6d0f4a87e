"""JudgedPairs: judgments by pair, whichever task stood on the left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.tables.annotations import Annotations

__all__ = ["JudgedPairs"]

LEAST_BOTH = 20  # pairs judged in both orders, by all annotators together
EQUAL = 2


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Judgments by pair, whichever task stood on the left; A judgments, P pairs.

    Attributes:
        lower: task code, [P].
        higher: task code, above `lower`, [P].
        of_rows: pair of each judgment, [A].
        answers: 0 the lower is better, 1 the higher, 2 equal, [A].
        counts: how often each answer was given, [P, 3].
        firsts: the first judgment of each pair by each annotator: rows.
    """

    lower: NDArray[np.int64]
    higher: NDArray[np.int64]
    of_rows: NDArray[np.int64]
    answers: NDArray[np.int64]
    counts: NDArray[np.int64]
    firsts: NDArray[np.int64]

    @classmethod
    def of(cls, annotations: Annotations) -> JudgedPairs:
        """The pairs of a table of preferences."""
        left, right = annotations.task_ids, annotations.right_ids
        assert right is not None
        low, high = np.minimum(left, right), np.maximum(left, right)
        keys, of_rows = np.unique(low * annotations.num_tasks + high, return_inverse=True)
        said = annotations.labels
        answers = np.where((left > right) & (said != EQUAL), 1 - said, said)
        counts = np.bincount(of_rows * 3 + answers, minlength=3 * len(keys)).reshape(-1, 3)
        number = max(annotations.num_annotators, 1)
        _, firsts = np.unique(of_rows * number + annotations.annotator_ids, return_index=True)
        return cls(keys // annotations.num_tasks, keys % annotations.num_tasks, of_rows, answers, counts, firsts)

    @property
    def agreement(self) -> float | None:
        """How often two annotators give a pair the same answer, mean over the pairs; None where no pair has two."""
        counts = np.bincount(self.of_rows[self.firsts] * 3 + self.answers[self.firsts], minlength=self.counts.size)
        counts = counts.reshape(-1, 3)
        sizes = counts.sum(axis=1)
        counts, sizes = counts[sizes > 1], sizes[sizes > 1]
        return float(((counts * (counts - 1)).sum(axis=1) / (sizes * (sizes - 1))).mean()) if len(sizes) else None

    def consistent(self, annotations: Annotations) -> tuple[NDArray[np.float64], float | None]:
        """Of the pairs that an annotator judged in both orders, the share with the same answer.

        The first judgment in each order counts.

        Args:
            annotations: those that these are the pairs of.

        Returns:
            Of each annotator, [R], NaN where there are none; and of all, None where fewer than 20 are judged so.
        """
        number, right = annotations.num_annotators, annotations.right_ids
        assert right is not None
        swapped, keys = annotations.task_ids > right, self.of_rows * max(number, 1) + annotations.annotator_ids
        orders = []
        for rows in (np.flatnonzero(~swapped), np.flatnonzero(swapped)):
            each, first = np.unique(keys[rows], return_index=True)
            orders.append((each, rows[first]))
        both, one, other = np.intersect1d(orders[0][0], orders[1][0], assume_unique=True, return_indices=True)
        who = both % max(number, 1)
        same = self.answers[orders[0][1][one]] == self.answers[orders[1][1][other]]
        sizes = np.bincount(who, minlength=number)
        shares = np.divide(np.bincount(who, same, number), sizes, out=np.full(number, np.nan), where=sizes > 0)
        return shares, float(same.mean()) if len(both) >= LEAST_BOTH else None
