"""choose_labels: from class probabilities to one class a task, ties included."""

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import DataError

__all__ = ["TIES", "choose_labels", "tied_classes"]

TIES = ("uniform", "random", "lowest")
TOLERANCE = 1e-9  # two engines add up in different orders: what differs by less is a tie in both


def tied_classes(posteriors: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which classes are as probable as the most probable one, bool [T, K]."""
    return posteriors >= posteriors.max(axis=1, keepdims=True, initial=0.0) - TOLERANCE


def choose_labels(
    posteriors: NDArray[np.float64], tasks: NDArray[np.int64], ties: str = "random", seed: int = 0
) -> NDArray[np.int64]:
    """The most probable class of each task.

    Args:
        posteriors: class probabilities, [T, K].
        tasks: the tasks' codes, [T]: a tie is broken by a hash of seed and code, so that the draw depends neither on
            the order of the tasks nor on which other tasks are there.
        ties: "lowest" class code, or a draw: "random", "uniform".
        seed: of the draws.

    Returns:
        Class codes, int64 [T].
    """
    if posteriors.shape[0] != len(tasks):
        raise DataError(f"{posteriors.shape[0]} rows of posteriors for {len(tasks)} tasks.")
    if not posteriors.size:
        return np.zeros(len(posteriors), np.int64)
    tied = tied_classes(posteriors)
    if ties == "lowest":
        return tied.argmax(axis=1)
    number = tied.sum(axis=1)
    chosen = np.minimum((_uniform(tasks, seed) * number).astype(np.int64), number - 1)
    return (tied.cumsum(axis=1) > chosen[:, None]).argmax(axis=1)


def _uniform(codes: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each code: the SplitMix64 finaliser (Steele, Lea, Flood, OOPSLA 2014), twice."""
    state = np.full(codes.shape, seed, np.uint64)
    for salt in (np.zeros(codes.shape, np.uint64), codes.astype(np.uint64)):
        state = (state ^ salt) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)) * 2.0**-53
