"""Items: blocks on their way between steps, and what the last parameters say of their tasks."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.sentences.sentence_block import SentenceBlock
from crowdzoo.large.beam.files import Reader
from crowdzoo.large.beam.values import BlockPosteriors, Item, StoredBlock
from crowdzoo.large.forms.base import Method
from crowdzoo.large.forms.tally import Tally

__all__ = [
    "Last",
    "Totals",
    "block_of",
    "codes_of",
    "count_expected",
    "count_first",
    "key_of",
    "prepared_starts",
    "with_first_states",
    "with_new_states",
]

Array = NDArray[np.float64]
Totals = MutableMapping[int, Tally]  # of each start that counts anything
Prepared = dict[int, tuple[Any, bool]]


def key_of(block: Block | SentenceBlock | StoredBlock) -> int:
    """A block's first task, which no other block has; -1 of an empty block."""
    if isinstance(block, StoredBlock):
        return block.key
    return int(block.tasks[0]) if len(block.tasks) else -1


def block_of(item: Item, reader: Reader | None = None) -> Any:
    """An item's block; where it is stored, in memory that is good until the reader reads the next."""
    if not isinstance(item.block, StoredBlock):
        return item.block
    block = (reader or Reader()).read(item.block.path, item.block.size)
    return block if item.codes is None else block.renumbered(item.codes)


def codes_of(item: Item) -> NDArray[np.int64]:
    """Codes of the annotators of an item that has them."""
    assert item.codes is not None
    return item.codes


def count_first(method: Method, totals: Totals, item: Item, block: Block, has_given: bool) -> Array:
    """Adds an item's block to what each start counts first; gives the last start's states, [T].

    Args:
        method: whose counts.
        totals: of each start; changed.
        item: a block with what it begins from.
        block: the item's.
        has_given: the first start has parameters to begin from, and counts nothing.
    """
    new = np.full(len(block.tasks), method.first_state)
    for start in range(int(has_given), method.starts):
        found = method.first(totals[start], block, start, item.codes, item.given if start == 0 else None)
        new = new if found is None else found
    return new


def prepared_starts(method: Method, runs: Sequence[Run[Array]], rows: Callable[[int], Array]) -> Prepared:
    """For each start that is not done, parameters as the kernels want them, and whether a further M-step wants counts.

    Args:
        method: whose parameters.
        runs: of all starts.
        rows: gives a start's rows.
    """
    return {
        start: (method.prepared(rows(start), run.params), len(run.history) < method.max_iter)
        for start, run in enumerate(runs)
        if not run.done
    }


def count_expected(method: Method, totals: Totals, item: Item, block: Block, prepared: Prepared) -> Array:
    """Adds an item's block to each start's expected counts; gives the last start's states, [T] (or []: none)."""
    new: Array = np.zeros(0)
    now = None if item.state is None else item.state[1]
    for start, (params, counting) in prepared.items():
        found = method.expect(totals[start], block, params, now, counting)
        new = new if found is None else found
    return new


def with_first_states(item: Item, new: Array) -> Item:
    """States before and after are the same, and are those that the item came with, if it did."""
    return replace(item, state=np.stack([new, new]) if item.state is None else item.state, given=None)


def with_new_states(item: Item, new: Array) -> Item:
    """The states before a step, and after it."""
    assert item.state is not None
    return replace(item, state=np.stack([item.state[1], new]), given=None)


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
        found = method.answers(block, self.params, self.means, before)
        return BlockPosteriors(*found, before, method.last_likelihood(block, self.means))
