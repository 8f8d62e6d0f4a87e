"""Counts: the sufficient statistics that blocks add up to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.block import Block

__all__ = ["Counts"]


@dataclass(frozen=True, eq=False)
class Counts:
    """What a block adds to the M-step; `a + b` is what both blocks add.

    Attributes:
        confusions: expected number of times that annotator said l where the truth is k, `[annotator, true, said]`,
            [R, K, K].
        classes: expected number of tasks of each class, [K]; tasks that carry no information are not counted.
        log_likelihood: log probability (nats) of the block's annotations and known classes under the parameters that
            the counts were made with; 0 where there were none.
        num_annotations: how many annotations were counted.
    """

    confusions: NDArray[np.float64]
    classes: NDArray[np.float64]
    log_likelihood: float
    num_annotations: int

    @classmethod
    def of(
        cls, block: Block, posteriors: NDArray[np.float64], num_annotators: int, log_likelihood: float = 0.0
    ) -> Counts:
        """Counts a block's annotations, each shared among the classes as its task's posterior says.

        Args:
            block: T tasks, A annotations.
            posteriors: class probabilities of its tasks, [T, K].
            num_annotators: R.
            log_likelihood: of the block, passed on.
        """
        num_classes = posteriors.shape[1]
        said = block.said(num_annotators, num_classes)
        counts = np.empty((num_classes, num_annotators * num_classes))
        for true in range(num_classes):  # one pass a class: no array of A x K
            weights = np.ascontiguousarray(posteriors[:, true]).take(block.index)
            counts[true] = np.bincount(said, weights=weights, minlength=counts.shape[1])
        return cls(
            confusions=counts.reshape(num_classes, num_annotators, num_classes).transpose(1, 0, 2),
            classes=block.informed @ posteriors,
            log_likelihood=log_likelihood,
            num_annotations=len(block),
        )

    @classmethod
    def zero(cls, num_annotators: int, num_classes: int) -> Counts:
        """The neutral element of addition."""
        shape = (num_annotators, num_classes, num_classes)
        return cls(np.zeros(shape), np.zeros(num_classes), 0.0, 0)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.confusions + other.confusions,
            self.classes + other.classes,
            self.log_likelihood + other.log_likelihood,
            self.num_annotations + other.num_annotations,
        )
