"""From class probabilities to one class per task, with ties, for the blocks of a table on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.loops import compiled, in_threads, num_threads
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.aggregation.engine.block import Block
    from crowdzoo.data.annotations import Annotations

TIES = ("uniform", "random", "lowest")
U = np.uint64
TOLERANCE = 1e-9  # engines sum in different orders: smaller differences are ties in all of them


def tied_classes(posteriors: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Marks classes as probable as the most probable one, bool [T, K]."""
    return posteriors >= posteriors.max(axis=1, keepdims=True, initial=0.0) - TOLERANCE


def chance_correct(posteriors: NDArray[np.float64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    """Probability that the label of each task is correct if ties are broken at random, [T].

    Args:
        posteriors: class probabilities, [T, K].
        gold: class codes, [T].
    """
    tied = tied_classes(posteriors)
    return np.asarray(tied[np.arange(len(gold)), gold] / tied.sum(axis=1))


def choose_labels(
    posteriors: NDArray[np.float64], tasks: NDArray[np.int64], ties: str = "random", seed: int = 0
) -> NDArray[np.int64]:
    """Chooses the most probable class of each task.

    Args:
        posteriors: class probabilities, [T, K].
        tasks: task codes, [T]. Ties are broken by a hash of seed and code, so the choice depends neither on the order
            of the tasks nor on the other tasks.
        ties: "lowest" for the lowest class code, or "random" or "uniform" for a random choice.
        seed: seed of random choices.

    Returns:
        Class codes, int64 [T].
    """
    if posteriors.shape[0] != len(tasks):
        raise DataError(f"{posteriors.shape[0]} rows of posteriors for {len(tasks)} tasks.")
    labels = np.zeros(len(posteriors), np.int64)
    if posteriors.size:
        _choose(
            np.asarray(posteriors, np.float64), np.asarray(tasks, np.int64), ties == "lowest", np.uint64(seed), labels
        )
    return labels


def answers_by_block(
    annotations: Annotations,
    blocks: Sequence[Block],
    write: Callable[[int, NDArray[np.float64]], object],
    seed: int,
    ties: str = "random",
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Computes posteriors [N, K] and labels [N] on all cores.

    Args:
        annotations: N tasks, K classes.
        blocks: blocks from `blocks_of`: together all tasks, each block without gaps.
        write: function that writes the posteriors of the block with this index, [T, K].
        seed: seed of random ties.
        ties: as in `choose_labels`.
    """
    posteriors = np.empty((annotations.num_tasks, annotations.num_classes))
    labels = np.empty(annotations.num_tasks, np.int64)

    def answer(places: Sequence[int]) -> None:
        for place in places:
            tasks = blocks[place].tasks
            rows = slice(tasks[0], tasks[-1] + 1)
            write(place, posteriors[rows])
            labels[rows] = choose_labels(posteriors[rows], tasks, ties, seed)

    in_threads(answer, range(len(blocks)), num_threads())
    return posteriors, labels


@compiled()
def _choose(posteriors, tasks, lowest, seed, labels):  # type: ignore[no-untyped-def]  # for Numba
    num_classes = np.uint64(posteriors.shape[1])
    for i in range(np.uint64(posteriors.shape[0])):
        label = np.uint64(0)
        for k in range(np.uint64(1), num_classes):
            if posteriors[i, k] > posteriors[i, label]:
                label = k  # type: ignore[assignment]  # for Numba
        least = posteriors[i, label] - TOLERANCE
        number = 0
        for k in range(num_classes):
            number += posteriors[i, k] >= least
        if number > 1:
            skip = 0 if lowest else min(int(_draw(U(tasks[i]), seed) * number), number - 1)
            for k in range(num_classes):
                if posteriors[i, k] >= least:
                    label = k  # type: ignore[assignment]  # for Numba
                    if skip == 0:
                        break
                    skip -= 1
        labels[i] = label


@compiled()
def _draw(code, seed):  # type: ignore[no-untyped-def]  # for Numba
    """Returns a number in [0, 1) for a code, or for each of an array."""
    return (split_mix(split_mix(seed) ^ code) >> U(11)) * 2.0**-53


@compiled()
def split_mix(values):  # type: ignore[no-untyped-def]  # for Numba
    """SplitMix64's next number (Steele, Lea and Flood, OOPSLA 2014), for uint64 or an array of them."""
    state = values + U(0x9E3779B97F4A7C15)
    state = (state ^ (state >> U(30))) * U(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> U(27))) * U(0x94D049BB133111EB)
    return state ^ (state >> U(31))
