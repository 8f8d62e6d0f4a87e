"""Annotators who agree more than their errors explain: families of copiers, and annotations without copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from crowdzoo.aggregation.engine.block import Block, occurrences
from crowdzoo.aggregation.engine.clusters import linked_groups
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.figures import wilson
from crowdzoo.quality.reliability import EDGE, LEAST, accuracies

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

COPIED = 0.7  # share of the answers that two would not have in common by themselves, which they have all the same
LEAST_SHARED = 7  # tasks of two annotators; fewer prove nothing
MOST_CELLS = 1 << 25  # of annotators, or pairs of them, by different answers
MOST_ANSWERS = 1_000_000  # that are compared; from more, tasks are drawn
ROUNDS = 5
NAMED = 5  # of a family
MOST_PAIRS = 5_000_000  # pairs of annotations that are compared
LEVEL = 0.05  # expected share of false pairs among those that are found
CHANCE = 1e-6  # an expected agreement is kept so far from zero and one
KEPT = 0.5  # of a group's correlation, which a member has with the others at least


def copies(
    names: NDArray[np.generic], tasks: NDArray[np.int64], annotators: NDArray[np.int64], answers: NDArray[np.generic]
) -> list[str | None]:
    """Names of each annotator's family; None for independent annotators. Arguments as in `copy_families`."""
    return family_names(names, copy_families(len(names), tasks, annotators, answers))


def family_names(annotators: NDArray[np.generic], families: NDArray[np.int64]) -> list[str | None]:
    """Names of each annotator's family, the first five; None for independent annotators."""
    names: dict[int, str] = {}
    for family in np.flatnonzero(np.bincount(families) > 1).tolist():
        places = np.flatnonzero(families == family).tolist()
        rest = f" and {len(places) - NAMED:,} more" if len(places) > NAMED else ""
        names[family] = ", ".join(str(annotators[place]) for place in places[:NAMED]) + rest
    return [names.get(family) for family in families.tolist()]


def families_of(names: Sequence[str | None]) -> NDArray[np.int64]:
    """Inverse of `family_names`."""
    firsts = {name: place for place, name in reversed([*enumerate(names)])}
    return np.array([place if name is None else firsts[name] for place, name in enumerate(names)], np.int64)


def copy_families(
    number: int, tasks: NDArray[np.int64], annotators: NDArray[np.int64], answers: NDArray[np.generic]
) -> NDArray[np.int64]:
    """Finds families of annotators who copy each other, or share a source; each is coded by its first annotator.

    Two independent annotators agree as often as their accuracies imply. This is estimated by the largest of three
    values: the product of their skills, fitted to how much they agree with all others beyond chance; their accuracies
    as judged by all outside their family (see `judged_by_others`), where copiers count as one; and how often others
    agree on the same tasks. A pair copies if it agrees more often than that beyond chance (see `dependent_pairs`), and
    shares at least seven tenths of the answers that it need not share (by Wilson's interval). Answers do not tell who
    copied from whom, nor whether half of the crowd copies: families are smaller. Only tasks with at least three answers
    are used; if there are more than a million answers, tasks are sampled.

    Args:
        number: R, number of annotators.
        tasks: task, or question, of each of A answers, [A].
        annotators: annotator of each answer, [A].
        answers: code of each answer, [A].

    Returns:
        int64 [R]; the own code for independent annotators, and if there are too many annotators and answers to compare.
    """
    several = np.bincount(tasks) > 2
    if (drawn := MOST_ANSWERS / max(len(tasks), 1)) < 1:
        several &= np.random.default_rng(0).random(len(several)) < drawn
    rows = several[tasks]
    tasks, annotators, codes = tasks[rows], annotators[rows], np.unique(answers[rows], return_inverse=True)[1]
    families = np.arange(number)
    width = int(codes.max(initial=0)) + 1
    block = Block(tasks, annotators, codes)
    shared = SharedTasks.of(block, number)
    pairs, agreed = np.bincount(shared.tasks), np.bincount(shared.tasks, shared.same)
    peers = (agreed[shared.tasks] - shared.same) / np.maximum(pairs[shared.tasks] - 1, 1)
    easy = np.bincount(shared.pairs, peers) / shared.shared
    some = shared.shared >= LEAST_SHARED
    if not some.any() or max(number, len(block.tasks), np.count_nonzero(some)) * width > MOST_CELLS:
        return families
    left, right, times, agreement = shared.left[some], shared.right[some], shared.shared[some], shared.agreement[some]
    shared = replace(shared, left=left, right=right, shared=times, agreement=agreement)
    shares = np.bincount(annotators * width + codes, minlength=number * width).reshape(number, width)
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)
    by_chance = np.clip((shares[left] * shares[right]).sum(axis=1), CHANCE, 1 - CHANCE)
    beyond = np.tile(np.maximum((agreement - by_chance) / (1 - by_chance), -1), 2)
    first, second = np.concatenate([left, right]), np.concatenate([right, left])
    expected = np.full(len(left), np.clip(np.average(agreement, weights=times), CHANCE, 1 - CHANCE))
    surely = wilson(agreement, times)[0]
    linked = np.ones(len(left), bool)
    for _ in range(ROUNDS):
        before = linked
        linked = dependent_pairs(shared, expected) & (surely - expected >= COPIED * (1 - expected))
        if np.array_equal(linked, before):
            break
        skill = fitted_skills(first, second, beyond, np.tile(times * ~linked, 2), number)
        by_skill = by_chance + (1 - by_chance) * skill[left] * skill[right]
        groups = dependent_groups(shared, expected, linked, number)
        right_of = _accuracies(block, groups.weights(block), groups.members, skill, width)
        both_right, both_wrong = right_of[left] * right_of[right], (1 - right_of[left]) * (1 - right_of[right])
        judged = both_right + both_wrong / max(width - 1, 1)
        expected = np.clip(np.maximum.reduce([by_skill, judged, easy[some]]), CHANCE, 1 - CHANCE)
    members = groups.members
    sizes = np.bincount(members)
    for family in np.flatnonzero((sizes > 1) & (2 * sizes < len(np.unique(annotators)))).tolist():
        places = np.flatnonzero(members == family)
        families[places] = places[0]
    return families


def _accuracies(
    block: Block, weights: NDArray[np.float64], family: NDArray[np.int64], skill: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Accuracies by the answers of all outside the own family, whose accuracies are given by the skills, [R]."""
    annotators, accuracy = block.annotator_ids.astype(np.int64), np.clip(skill + (1 - skill) / size, EDGE, 1 - EDGE)
    odds = weights * np.maximum(np.log(accuracy * (size - 1) / (1 - accuracy) + LEAST), 0)[annotators]
    cells = block.index * size + block.labels
    evidence = np.bincount(cells, odds, len(block.tasks) * size).reshape(-1, size)
    evidence = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    mine = evidence.ravel()[cells]
    _, place = np.unique(cells * len(skill) + family[annotators], return_inverse=True)  # a family's equal votes
    kin = mine * np.exp(-np.bincount(place, odds)[place])
    share = kin / np.maximum(evidence.sum(axis=1)[block.index] - mine + kin, LEAST)
    estimates = accuracies(annotators, share, len(skill), size)[0]
    return np.where(np.isfinite(estimates), estimates, accuracy)


def counted_once(annotations: Annotations, families: NDArray[np.int64]) -> Annotations:
    """Merges the annotations of each family into those of one annotator, with one of the family's labels per task.

    Args:
        annotations: annotations of R annotators.
        families: code of each annotator's representative, [R], as from `copy_families`.

    Returns:
        For each task the annotations of the family's first member who labelled it. Annotators who represent no family
        have none.
    """
    annotators = families[annotations.annotator_ids]
    cells = annotations.task_ids * len(families) + annotators
    _, first, place = np.unique(cells, return_index=True, return_inverse=True)
    if len(first) == len(cells):
        return replace(annotations, annotator_ids=annotators)
    rows = annotations.annotator_ids == annotations.annotator_ids[first][place]
    return replace(annotations.select_rows(rows), annotator_ids=annotators[rows])


def fitted_skills(first: Codes, second: Codes, agreement: Floats, weights: Floats, number: int) -> Floats:
    """Fits skills whose products match the agreement of pairs of annotators, by least squares, 0 to 1, [R].

    Independent annotators agree as often as both are right. So skills can be estimated without an aggregate, even if
    most annotators are bad, as long as their errors are independent.

    Args:
        first: first annotator of each pair, each pair in both orders, [P].
        second: second annotator of each pair, [P].
        agreement: agreement beyond chance, at most 1, [P].
        weights: weight of each pair, [P].
        number: R, number of annotators.
    """
    skill = np.full(number, 0.7)
    for _ in range(30):  # half a step: whole ones go to and fro
        product = np.bincount(first, weights * agreement * skill[second], number)
        square = np.bincount(first, weights * skill[second] ** 2, number)
        skill = (skill + np.clip(product / np.maximum(square, 1e-6), 0, 1)) / 2
    return skill


# === Pairs and groups who depend on each other ===


@dataclass(frozen=True, eq=False)
class SharedTasks:
    """Pairs of annotators, and the tasks that both labelled.

    Attributes:
        left: code of the lower annotator of each pair, int64 [P].
        right: code of the higher annotator, int64 [P].
        shared: number of tasks that both labelled, float64 [P].
        agreement: share of these on which both gave the same label, float64 [P].
        pairs: index of the pair for each pair of annotations, int64 [Q].
        tasks: row of its task in the block, int64 [Q].
        same: whether both labels are the same, bool [Q].
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
        """Compares the annotations of each task with each other; known classes are not used.

        If a block has more than five million pairs of annotations, tasks are sampled to stay below.

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
    """Yields all pairs of annotations of a task by two annotators: task, lower and higher annotator, and their labels.

    Yields:
        Five columns for all tasks with the same redundancy; the task is its row in `block.tasks`.
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
    """Groups of dependent annotators.

    Attributes:
        members: group of each annotator, int64 [R]; most groups have one member.
        correlation: how often a member repeats another's answer instead of giving its own, per group, [G]. 1 are
            copies; 0 for groups with one member.
    """

    members: NDArray[np.int64]
    correlation: NDArray[np.float64]

    def weights(self, block: Block) -> NDArray[np.float64]:
        """Weight of each annotation of a block, [A]: 1 / (1 + (m - 1) c).

        m is the number of annotations of the task by the annotator's group and c the group's correlation, so that the
        group together is worth m / (1 + (m - 1) c) annotations, Kish's effective number.
        """
        cells = block.index * len(self.correlation) + self.members[block.annotator_ids]
        _, place, numbers = np.unique(cells, return_inverse=True, return_counts=True)
        weights: NDArray[np.float64] = 1 / (
            1 + (numbers[place] - 1) * self.correlation[self.members[block.annotator_ids]]
        )
        return weights


def dependent_pairs(shared: SharedTasks, expected: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Finds pairs that agree more often than expected beyond chance, bool [P].

    The probability of n a agreements or more among n tasks with e expected is at most exp(-n KL(a || e)) for any n
    (Chernoff), so pairs that share few tasks are not found by accident. One in twenty of the pairs found would be false
    on average if pairs were independent (Benjamini and Hochberg 1995).

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
    """Agreement beyond the expected one, as a share of the maximum, for sets of pairs.

    Args:
        shared: P pairs.
        expected: expected agreement of each pair, [P].
        among: set of each pair, -1 for none, [P]; several of these if a pair may belong to several sets.
        number: G, number of sets.

    Returns:
        [G], 0 to 1; 0 for sets without pairs, or with less agreement than expected.
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
    """Finds the connected components of the graph of dependent pairs.

    A member whose correlation with the others is less than half of the group's leaves it, until none does, so that one
    false pair does not bring anybody into a group.

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
