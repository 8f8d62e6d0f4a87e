"""Pairs: how often annotators agree, for those pairs only that share tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.block import Block
from crowdzoo.errors import DataError

__all__ = ["Pairs"]

MAX_PAIRS = 100_000_000  # pairs of annotations of a task: 16 bytes each while they are counted


@dataclass(frozen=True, eq=False)
class Pairs:
    """Annotators who share tasks, each pair from both sides, sorted by the first of the two.

    Never of shape [R, R]: memory follows the pairs that there are (P of them, both sides counted).

    Attributes:
        starts: the partners of annotator r are rows `starts[r]` to `starts[r + 1]`, int64 [R + 1].
        partners: codes of the partners, int64 [P].
        shared: number of tasks that both labelled, float64 [P].
        agreement: share of these on which both said the same, float64 [P].
    """

    starts: NDArray[np.int64]
    partners: NDArray[np.int64]
    shared: NDArray[np.float64]
    agreement: NDArray[np.float64]

    @classmethod
    def of(cls, block: Block, num_annotators: int) -> Pairs:
        """Compares all annotations of each task with each other; two by the same annotator are no pair.

        If classes are known, the truth takes part as one more annotator, of code R.

        Args:
            block: T tasks, A annotations; sum over tasks of m (m - 1) / 2 pairs for m annotations of a task.
            num_annotators: R.

        Raises:
            DataError: more than 100 million pairs.
        """
        number = num_annotators
        index, annotators, labels = block.index, block.annotator_ids.astype(np.int64), block.labels.astype(np.int64)
        if block.gold is not None and (block.gold >= 0).any():
            known = np.flatnonzero(block.gold >= 0)
            index = np.concatenate([index, known])
            annotators = np.concatenate([annotators, np.full(known.size, number)])
            labels = np.concatenate([labels, block.gold[known].astype(np.int64)])
            order = np.argsort(index, kind="stable")
            index, annotators, labels = index[order], annotators[order], labels[order]
            number += 1
        redundancy = np.bincount(index, minlength=len(block.tasks))
        starts = np.cumsum(redundancy) - redundancy
        total = int((redundancy * (redundancy - 1) // 2).sum())
        if total > MAX_PAIRS:
            raise DataError(
                f"Annotators are compared in pairs, and these tasks have {total:,} pairs of annotations; the limit is "
                f"{MAX_PAIRS:,}. Use dawid-skene, or fewer annotations a task (`Annotations.restrict`)."
            )
        keys, same = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
        for size in np.unique(redundancy[redundancy > 1]):  # all tasks of one redundancy at once
            rows = starts[redundancy == size, None] + np.arange(size)
            one, other = np.triu_indices(size, 1)
            left, right = annotators[rows[:, one]].ravel(), annotators[rows[:, other]].ravel()
            keys.append(np.minimum(left, right) * number + np.maximum(left, right))
            same.append((labels[rows[:, one]] == labels[rows[:, other]]).ravel())
        pair, where = np.unique(np.concatenate(keys), return_inverse=True)
        shared = np.bincount(where, minlength=len(pair)).astype(np.float64)
        agreeing = np.bincount(where, weights=np.concatenate(same), minlength=len(pair))
        left, right = np.divmod(pair, max(number, 1))
        two = left != right
        left, right, shared, agreement = left[two], right[two], shared[two], agreeing[two] / shared[two]
        owners = np.concatenate([left, right])
        order = np.argsort(owners, kind="stable")
        ends = np.cumsum(np.bincount(owners, minlength=number))
        return cls(
            np.concatenate([[0], ends]).astype(np.int64),
            np.concatenate([right, left])[order],
            np.concatenate([shared, shared])[order],
            np.concatenate([agreement, agreement])[order],
        )

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The first annotator of each pair, int64 [P]."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
