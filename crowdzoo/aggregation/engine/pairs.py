"""Pairs of annotations of one task, and how often two annotators gave it two labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.errors import DataError

MAX_PAIRS = 100_000_000  # pairs of annotations of a task: 16 bytes each while they are counted


def pairs_of_annotations(block: Block, num_annotators: int) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """All pairs of annotations of a task by two annotators: the task, the lower and the higher annotator, their labels.

    Known classes take part as annotations by one more annotator, of code R.

    Yields:
        Five columns for all tasks of one redundancy; the task is its row in `block.tasks`.

    Raises:
        DataError: more than 100 million pairs.
    """
    index, annotators, labels = block.index, block.annotator_ids.astype(np.int64), block.labels.astype(np.int64)
    if block.gold is not None:
        known = np.flatnonzero(block.gold >= 0)
        index = np.concatenate([index, known])
        annotators = np.concatenate([annotators, np.full(known.size, num_annotators)])
        labels = np.concatenate([labels, block.gold[known].astype(np.int64)])
        order = np.argsort(index, kind="stable")
        index, annotators, labels = index[order], annotators[order], labels[order]
    redundancy = np.bincount(index, minlength=len(block.tasks))
    starts = np.cumsum(redundancy) - redundancy
    total = int((redundancy * (redundancy - 1) // 2).sum())
    if total > MAX_PAIRS:
        raise DataError(
            f"Annotators are compared in pairs, and these tasks have {total:,} pairs of annotations; the limit is "
            f"{MAX_PAIRS:,}. Use dawid-skene, or fewer annotations a task (`Annotations.restrict`)."
        )
    for size in np.unique(redundancy[redundancy > 1]):
        rows = starts[redundancy == size, None] + np.arange(size)
        one, other = (rows[:, column].ravel() for column in np.triu_indices(size, 1))
        swap = annotators[one] > annotators[other]
        low, high = np.where(swap, other, one), np.where(swap, one, other)
        two = annotators[low] != annotators[high]
        low, high = low[two], high[two]
        yield index[low], annotators[low], annotators[high], labels[low], labels[high]


@dataclass(frozen=True, eq=False)
class LabelPairs:
    """How often two annotators gave a task two labels: the second moments of the answers, where they are not zero.

    Attributes:
        left: code of the lower annotator, int64 [E].
        right: code of the higher annotator, int64 [E].
        left_label: what the lower one said, int64 [E].
        right_label: what the higher one said, int64 [E].
        count: on how many tasks, float64 [E].
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    left_label: NDArray[np.int64]
    right_label: NDArray[np.int64]
    count: NDArray[np.float64]

    @classmethod
    def of(cls, block: Block, num_annotators: int, num_classes: int) -> LabelPairs:
        """Counts the pairs; known classes are labels by one more annotator, of code R.

        Args:
            block: T tasks, A annotations.
            num_annotators: R.
            num_classes: K.

        Raises:
            DataError: more than 100 million pairs.
        """
        shape = num_annotators + 1, num_annotators + 1, num_classes, num_classes
        cells = [np.empty(0, np.int64)]
        cells += [np.ravel_multi_index(columns, shape) for _, *columns in pairs_of_annotations(block, num_annotators)]
        cell, count = np.unique(np.concatenate(cells), return_counts=True)
        left, right, left_label, right_label = (column.astype(np.int64) for column in np.unravel_index(cell, shape))
        return cls(left, right, left_label, right_label, count.astype(np.float64))
