"""Bayes' rule: class probabilities of tasks, given annotators with confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.kernels import add_counts
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.aggregation.engine.run import answers_by_block

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


def answers(
    annotations: Annotations, blocks: Sequence[Block], params: Params, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Posteriors [N, K] and labels [N] of all tasks; see `answers_by_block`."""
    return answers_by_block(annotations, blocks, lambda place, out: write_posteriors(blocks[place], params, out), seed)


def posteriors(block: Block, params: Params) -> NDArray[np.float64]:
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
    """Writes `posteriors` into an array.

    Args:
        block: T tasks.
        params: parameters of K classes.
        out: float64 [T, K], C-contiguous.
    """
    block.check_codes(params.num_annotators, params.num_classes)
    add_counts(block, params.num_classes, log_table=params.log_table, log_prior=params.log_class_prior, posteriors=out)
