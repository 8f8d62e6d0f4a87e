"""Groups of annotators who agree more often than their error rates explain, and what their votes are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from crowdzoo.aggregation.engine.block import Block, occurrences
from crowdzoo.aggregation.engine.clusters import linked_groups

MOST_PAIRS = 5_000_000  # pairs of annotations that are compared
LEVEL = 0.05  # expected share of false pairs among those that are found
CHANCE = 1e-6  # an expected agreement is kept so far from zero and one
KEPT = 0.5  # of a group's correlation, which a member has with the others at least


@dataclass(frozen=True, eq=False)
class SharedTasks:
    """Pairs of annotators, and the tasks that both labelled.

    Attributes:
        left: code of the lower annotator of each pair, int64 [P].
        right: code of the higher annotator, int64 [P].
        shared: number of tasks that both labelled, float64 [P].
        agreement: share of these on which both said the same, float64 [P].
        pairs: which pair each pair of annotations belongs to, int64 [Q].
        tasks: row of its task in the block, int64 [Q].
        same: whether both said the same, bool [Q].
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    shared: NDArray[np.float64]
    agreement: NDArray[np.float64]
    pairs: NDArray[np.int64]
    tasks: NDArray[np.int64]
    same: NDArray[np.bool_]

    @classmethod
    def of(cls, block: Block, num_annotators: int) -> SharedTasks:
        """Compares the annotations of each task with each other; known classes take no part.

        Of a block with more than five million pairs of annotations so many tasks are drawn that there are fewer.

        Args:
            block: T tasks, A annotations.
            num_annotators: R.
        """
        sizes = np.diff(block.starts)
        numbers = sizes * (sizes - 1) // 2
        index, annotators, labels = block.index, block.annotator_ids, block.labels
        if numbers.sum() > MOST_PAIRS:
            order = np.random.default_rng(0).permutation(len(numbers))
            chosen = np.zeros(len(numbers), bool)
            chosen[order[np.cumsum(numbers[order]) <= MOST_PAIRS]] = True
            rows = chosen[index]
            index, annotators, labels = index[rows], annotators[rows], labels[rows]
        some = Block(index, annotators, labels, np.arange(len(numbers)))
        parts = [*pairs_of_annotations(some)]
        tasks, left, right, first, second = (
            np.concatenate([np.empty(0, np.int64), *(part[column] for part in parts)]) for column in range(5)
        )
        keys, pairs, times = np.unique(left * num_annotators + right, return_inverse=True, return_counts=True)
        shared = times.astype(np.float64)
        agreement = np.bincount(pairs, first == second, len(keys)) / shared
        return cls(*np.divmod(keys, max(num_annotators, 1)), shared, agreement, pairs, tasks, first == second)


def pairs_of_annotations(block: Block) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """All pairs of annotations of a task by two annotators: the task, the lower and the higher annotator, their labels.

    Yields:
        Five columns for all tasks of one redundancy; the task is its row in `block.tasks`.
    """
    index, annotators, labels = block.index, block.annotator_ids.astype(np.int64), block.labels.astype(np.int64)
    redundancy = np.bincount(index, minlength=len(block.tasks))
    starts = np.cumsum(redundancy) - redundancy
    for size in np.unique(redundancy[redundancy > 1]):
        rows = starts[redundancy == size, None] + np.arange(size)
        first, second = (rows[:, column].ravel() for column in np.triu_indices(size, 1))
        swap = annotators[first] > annotators[second]
        low, high = np.where(swap, second, first), np.where(swap, first, second)
        two = annotators[low] != annotators[high]
        low, high = low[two], high[two]
        yield index[low], annotators[low], annotators[high], labels[low], labels[high]


@dataclass(frozen=True, eq=False)
class Groups:
    """Who depends on whom.

    Attributes:
        members: group of each annotator, int64 [R]; most groups have one member.
        correlation: how often a member says what another says instead of an answer of its own, of each group, [G].
            1 are copies; 0 where a group has one member.
    """

    members: NDArray[np.int64]
    correlation: NDArray[np.float64]

    def weights(self, block: Block) -> NDArray[np.float64]:
        """What each annotation of a block counts for, [A]: 1 / (1 + (m - 1) c).

        m is the number of annotations of the task by the annotator's group and c the group's correlation, so that the
        group together counts for m / (1 + (m - 1) c) annotations, which is Kish's effective number.
        """
        cells = block.index * len(self.correlation) + self.members[block.annotator_ids]
        _, place, numbers = np.unique(cells, return_inverse=True, return_counts=True)
        weights: NDArray[np.float64] = 1 / (
            1 + (numbers[place] - 1) * self.correlation[self.members[block.annotator_ids]]
        )
        return weights


def dependent_pairs(shared: SharedTasks, expected: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Pairs that agree so much more often than expected that it is not chance, bool [P].

    The probability of n a agreements or more among n tasks with e expected is at most exp(-n KL(a || e)) for any n
    (Chernoff), so pairs that share few tasks are not found by accident. For the pairs that are found, one in twenty is
    false on average if pairs were independent (Benjamini and Hochberg 1995).

    Args:
        shared: P pairs.
        expected: agreement if errors were independent, [P], above 0 and below 1.
    """
    divergence = rel_entr(shared.agreement, expected) + rel_entr(1 - shared.agreement, 1 - expected)
    log_tail = np.where(shared.agreement > expected, -shared.shared * divergence, 0.0)
    order = np.argsort(log_tail, kind="stable")
    with np.errstate(divide="ignore"):  # no pairs
        limits = np.log(LEVEL * np.arange(1, len(order) + 1) / len(order))
    passed = np.flatnonzero(log_tail[order] <= limits)
    rejected = np.zeros(len(order), bool)
    rejected[order[: passed[-1] + 1 if passed.size else 0]] = True
    return rejected


def _pooled(
    shared: SharedTasks, expected: NDArray[np.float64], among: Sequence[NDArray[np.int64]], number: int
) -> NDArray[np.float64]:
    """Agreement beyond the expected one, as a share of what could be beyond it, of each of some sets of pairs.

    Args:
        shared: P pairs.
        expected: of each, [P].
        among: the set of each pair, -1 for none, [P]; several of these where a pair may belong to several sets.
        number: of sets, G.

    Returns:
        [G], 0 to 1; 0 where a set has no pairs, or agrees less than expected.
    """
    more, most = np.zeros(number), np.zeros(number)
    for column in among:
        some = column >= 0
        more += np.bincount(column[some], (shared.shared * (shared.agreement - expected))[some], number)
        most += np.bincount(column[some], (shared.shared * (1 - expected))[some], number)
    return np.clip(np.divide(more, most, out=np.zeros(number), where=most > 0), 0.0, 1.0)


def dependent_groups(
    shared: SharedTasks, expected: NDArray[np.float64], linked: NDArray[np.bool_], num_annotators: int
) -> Groups:
    """The connected parts of the graph of dependent pairs.

    A member whose correlation with the others of its group is less than half of the group's leaves it, until nobody
    does: so one false pair brings nobody into a group.

    Args:
        shared: P pairs.
        expected: agreement if errors were independent, [P].
        linked: pairs that depend on each other, see `dependent_pairs`; bool [P].
        num_annotators: R.
    """
    left, right = shared.left, shared.right
    linked = linked.copy()
    while True:
        members = linked_groups(left[linked], right[linked], num_annotators)
        number = int(members.max(initial=-1)) + 1
        same = members[left] == members[right]
        correlation = _pooled(shared, expected, [np.where(same, members[left], -1)], number)
        sizes = occurrences(members, number)
        ends = [np.where(same, side, -1) for side in (left, right)]
        leaves = (sizes[members] > 2) & (_pooled(shared, expected, ends, num_annotators) < KEPT * correlation[members])
        if not leaves.any():
            return Groups(members, np.where(sizes > 1, correlation, 0.0))
        linked &= ~(leaves[left] | leaves[right])
