"""Items: blocks on their way between steps, and what the last parameters say of their tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import FIELDS, Block
from crowdzoo.beam.files import Reader
from crowdzoo.beam.methods.base import Method
from crowdzoo.beam.values import BlockPosteriors, Item, StoredBlock

__all__ = ["Last", "block_of", "key_of", "renumbered", "stacked"]

Array = NDArray[np.float64]


def key_of(block: Block | StoredBlock) -> int:
    """A block's first task, which no other block has; -1 of an empty block."""
    if isinstance(block, StoredBlock):
        return block.key
    return int(block.tasks[0]) if len(block.tasks) else -1


def block_of(item: Item, reader: Reader | None = None) -> Block:
    """An item's block; where it is stored, in memory that is good until the reader reads the next."""
    if isinstance(item.block, Block):
        return item.block
    block = (reader or Reader()).read(item.block.path, item.block.size).block
    return block if item.codes is None else renumbered(block, item.codes)


def renumbered(block: Block, codes: NDArray[np.int64]) -> Block:
    """The same block with annotators numbered as they stand in `codes`, which has all of them."""
    places = np.empty(codes.max(initial=-1) + 1, np.int32)
    places[codes] = np.arange(len(codes))
    changed = Block.__new__(Block)
    for name in FIELDS:
        setattr(changed, name, getattr(block, name))
    changed.annotator_ids = places[block.annotator_ids]
    return changed


def stacked(before: Array | None, after: Array) -> Array:
    """States before and after a step, [2, T]."""
    assert before is not None
    return np.stack([before, after])


class Last(NamedTuple):
    """The final parameters, ready for all blocks."""

    method: Method
    params: Any
    means: Any

    @classmethod
    def of(cls, method: Method, rows: Array, common: Array) -> Last:
        """From the best start's rows, and what is common to all annotators."""
        return cls(method, method.prepared(rows, common), method.means(rows, common))

    def posteriors(self, item: Item) -> BlockPosteriors:
        """What they say of a block."""
        block, method = block_of(item), self.method
        before = None if item.state is None else item.state[0]
        posteriors = method.posteriors(block, self.params, self.means, before)
        labels = method.labels(posteriors, block.tasks)
        likelihood = method.last_likelihood(block, self.means)
        return BlockPosteriors(block.tasks, posteriors, labels, before, likelihood)
