"""What crosses from worker to worker on Beam: arrays and numbers. `crowdzoo.large.beam.coding` has their bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.run import Run
from crowdzoo.aggregation.sentences.sentence_block import SentenceBlock
from crowdzoo.large.forms.tally import Tally

__all__ = [
    "BlockPosteriors",
    "Item",
    "Message",
    "Request",
    "ShardRows",
    "State",
    "StoredBlock",
    "Sums",
]


@dataclass(frozen=True, eq=False)
class BlockPosteriors:
    """What was found for a block's tasks.

    Attributes:
        tasks: task codes, int64 [T]; of sentences tokens, counted through all of them.
        posteriors: class probabilities, [T, K]; of ratings two numbers a task, see the method's form.
        labels: class codes, int64 [T]; of ratings zeros.
        state: what the method knows of each task (GLAD: b, the log of the inverse difficulty), [T], or None.
        log_likelihood: of the block's annotations, where the method asks for it at the end (iBCC), nats.
    """

    tasks: NDArray[np.int64]
    posteriors: NDArray[np.float64]
    labels: NDArray[np.int64]
    state: NDArray[np.float64] | None = None
    log_likelihood: float = 0.0


@dataclass(frozen=True, eq=False)
class StoredBlock:
    """A block that stays in its file until a step needs it. So that what crosses from step to step is only this.

    Attributes:
        path: path of a file that holds the block.
        size: size of the file, bytes.
        key: key of the block, see `crowdzoo.large.beam.items.key_of`.
    """

    path: str
    size: int
    key: int


class Message:
    """What waits for others under the same key: one type, so that groups have one coder."""


@dataclass(frozen=True, eq=False)
class Item(Message):
    """A block and what travels with it.

    Attributes:
        block: the annotations, or where they are. With `codes`, its annotators are numbered as they stand in `codes`
            (those of a stored block once it is read).
        codes: codes of the block's annotators, ascending, int64 [U]; None: the block has the codes themselves.
        state: what the method knows of each task (GLAD: b) before and after the last step, [2, T], or None.
        given: posteriors to begin from, [T, K], or None.
    """

    block: Block | SentenceBlock | StoredBlock
    codes: NDArray[np.int64] | None = None
    state: NDArray[np.float64] | None = None
    given: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Sums:
    """What is added up for all starts.

    Attributes:
        parts: one tally a start; None: a start that needs none.
        before: the state that was counted under, without rows, where an M-step will ask for it.
    """

    parts: tuple[Tally | None, ...]
    before: State | None = None

    def __add__(self, other: Sums) -> Sums:
        pairs = zip(self.parts, other.parts, strict=True)
        parts = tuple(b if a is None else a if b is None else a + b for a, b in pairs)
        return Sums(parts, self.before if self.before is not None else other.before)


@dataclass(frozen=True, eq=False)
class State:
    """All starts between two steps.

    Attributes:
        runs: history of each start; `params` are those parameters that belong to no annotator, a vector.
        rows: parameters of each start's annotators, [R, ...]; nothing where annotators are in shards, or left out.
        penalties: the annotators' part of each start's objective; nothing where annotators are in shards.
    """

    runs: tuple[Run[NDArray[np.float64]], ...]
    rows: tuple[NDArray[np.float64], ...] = ()
    penalties: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class ShardRows(Message):
    """Rows of some annotators of one shard.

    Attributes:
        shard: number of the shard.
        rows: rows of each start, [U, ...]; None where there is nothing to tell.
        codes: whose rows, counted from the shard's first annotator, [U]; None: all, or those who were asked for.
    """

    shard: int
    rows: tuple[NDArray[np.float64] | None, ...]
    codes: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Request(Message):
    """Which annotators of a shard a block needs.

    Attributes:
        key: key of the block.
        codes: counted from the shard's first annotator, [U].
    """

    key: int
    codes: NDArray[np.int64]
