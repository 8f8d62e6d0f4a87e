"""Counts: the sufficient statistics that blocks add up to; and class probabilities by Bayes' rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import iadd
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.kernels import add_counts
from crowdzoo.aggregation.engine.loops import in_threads, num_threads
from crowdzoo.aggregation.engine.params import Additive, Params
from crowdzoo.aggregation.engine.run import answers_by_block

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

MAX_TABLES = 2**31  # bytes of all threads' tables together


@dataclass(eq=False)
class Counts(Additive):
    """What a block adds to the M-step; `a + b` is what both blocks add.

    Attributes:
        table: expected number of times that annotator said l where the truth is k, `[annotator, said, true]`,
            [R, K, K].
        classes: expected number of tasks of each class, [K]; tasks that carry no information are not counted.
        log_likelihood: log probability (nats) of the block's annotations and known classes under the parameters that
            the counts were made with; 0 where there were none.
        num_annotations: number of annotations that were counted.
    """

    table: NDArray[np.float64]
    classes: NDArray[np.float64]
    log_likelihood: float = 0.0
    num_annotations: int = 0

    @classmethod
    def zero(cls, num_annotators: int, num_classes: int) -> Counts:
        """The neutral element of addition."""
        return cls(np.zeros((num_annotators, num_classes, num_classes)), np.zeros(num_classes))

    @classmethod
    def total(
        cls,
        blocks: Sequence[Block],
        kernel: Callable[[Counts, Block], None],
        num_annotators: int,
        num_classes: int,
    ) -> Counts:
        """What all blocks add, on all cores.

        Each thread has a table of its own; where that would take more than two gibibytes, there are fewer threads.

        Args:
            blocks: what there is to count.
            kernel: adds a block to counts, in place.
            num_annotators: R.
            num_classes: K.
        """

        def work(part: Sequence[Block]) -> Counts:
            counts = cls.zero(num_annotators, num_classes)
            for block in part:
                kernel(counts, block)
            return counts

        size = 8 * max(num_annotators, 1) * num_classes**2
        return reduce(iadd, in_threads(work, blocks, max(1, min(num_threads(), MAX_TABLES // size))))

    @classmethod
    def expected(cls, blocks: Sequence[Block], params: Params) -> Counts:
        """What all blocks add under the posteriors that follow from parameters, on all cores."""
        kernel = partial(cls.add_expected, params=params)
        return cls.total(blocks, kernel, params.num_annotators, params.num_classes)

    @property
    def confusions(self) -> NDArray[np.float64]:
        """`table` in the order `[annotator, true, said]`, [R, K, K]."""
        return self.table.transpose(0, 2, 1)

    @property
    def facts(self) -> dict[str, Any]:
        """What a result keeps of them, by the names of its attributes."""
        return {"counts": self.confusions, "class_counts": self.classes}

    @property
    def num_annotators(self) -> int:
        """R."""
        return len(self.table)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    def add(self, block: Block, posteriors: NDArray[np.float64]) -> None:
        """Adds a block under given posteriors [T, K] to these counts."""
        block.check_codes(self.num_annotators, self.num_classes)
        fixed_posteriors = np.ascontiguousarray(posteriors, np.float64)
        add_counts(block, self.num_classes, fixed_posteriors=fixed_posteriors, counts=self.table, classes=self.classes)
        self.num_annotations += len(block)

    def add_expected(self, block: Block, params: Params) -> None:
        """Adds a block under the posteriors that follow from parameters, and the block's log probability.

        Args:
            block: T tasks, A annotations.
            params: parameters of these R annotators and K classes.
        """
        block.check_codes(self.num_annotators, self.num_classes)
        self.log_likelihood += add_counts(
            block,
            self.num_classes,
            log_table=params.log_table,
            log_prior=params.log_class_prior,
            counts=self.table,
            classes=self.classes,
        )
        self.num_annotations += len(block)


def posteriors_and_labels(
    annotations: Annotations, blocks: Sequence[Block], params: Params, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Posteriors [N, K] and labels [N] of all tasks; see `answers_by_block`."""
    return answers_by_block(annotations, blocks, lambda place, out: write_posteriors(blocks[place], params, out), seed)


def block_posteriors(block: Block, params: Params) -> NDArray[np.float64]:
    """Class probabilities of a block's tasks given the parameters, [T, K].

    Known classes are certain, tasks without annotations have the class prior.

    Args:
        block: T tasks.
        params: parameters of K classes.
    """
    shares = np.empty((len(block.tasks), params.num_classes))
    write_posteriors(block, params, shares)
    return shares


def write_posteriors(block: Block, params: Params, out: NDArray[np.float64]) -> None:
    """Writes `block_posteriors` into an array.

    Args:
        block: T tasks.
        params: parameters of K classes.
        out: float64 [T, K], C-contiguous.
    """
    block.check_codes(params.num_annotators, params.num_classes)
    add_counts(block, params.num_classes, log_table=params.log_table, log_prior=params.log_class_prior, posteriors=out)
