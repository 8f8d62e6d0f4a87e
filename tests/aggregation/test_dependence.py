import numpy as np

from crowdzoo import Annotations
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.clusters import linked_groups
from crowdzoo.quality import copies
from crowdzoo.quality.copies import Groups, SharedTasks, dependent_groups, dependent_pairs
from crowdzoo.testing.aggregators import simulated_crowd


def test_pairs_by_hand():
    #           annotators 0 and 1 share tasks 0 to 2 and agree on two; 2 shares task 0 with both
    block = whole_block(Annotations.from_arrays([0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 0, 1], [0, 0, 1, 1, 1, 0, 1]))
    shared = SharedTasks.of(block, 3)
    np.testing.assert_array_equal(np.stack([shared.left, shared.right]), [[0, 0, 1], [1, 2, 2]])
    np.testing.assert_array_equal(shared.shared, [3, 1, 1])
    np.testing.assert_allclose(shared.agreement, [2 / 3, 0, 0])


def test_what_is_linked_through_others_is_one_group():
    np.testing.assert_array_equal(linked_groups(np.array([4, 0, 6]), np.array([2, 4, 5]), 8), [0, 1, 0, 2, 0, 3, 3, 4])


def pairs_of(left, right, shared, agreement):
    none = np.empty(0, np.int64)
    numbers = (np.array(each, float) for each in (shared, agreement))
    return SharedTasks(*map(np.array, (left, right)), *numbers, none, none, none)


def test_a_pair_is_found_from_as_many_tasks_as_the_bound_asks_for():
    """With expected agreement one half, n times the same has probability 2^-n: below .05 / 2 from six tasks on."""
    for number, found in ((5, False), (6, True)):
        pairs = pairs_of([0, 0], [1, 2], [number, 10], [1.0, 0.5])
        np.testing.assert_array_equal(dependent_pairs(pairs, np.full(2, 0.5)), [found, False])
    pairs = pairs_of([0, 0], [1, 2], [1000, 10], [0.59, 0.5])
    np.testing.assert_array_equal(dependent_pairs(pairs, np.full(2, 0.5)), [True, False])


def test_who_is_linked_by_one_false_pair_leaves_the_group():
    left, right = np.triu_indices(5, 1)
    same = right < 4  # annotators 0 to 3
    pairs = pairs_of(left, right, np.full(10, 100), np.where(same, 0.95, 0.5))
    pairs.agreement[(left == 3) & (right == 4)] = 0.7
    found = dependent_groups(pairs, np.full(10, 0.5), same | ((left == 3) & (right == 4)), 5)
    np.testing.assert_array_equal(found.members, [0, 0, 0, 0, 1])
    np.testing.assert_allclose(found.correlation, [0.9, 0])


def test_a_group_counts_for_its_effective_number():
    block = whole_block(Annotations.from_arrays([0, 0, 0, 1, 1], [0, 1, 2, 0, 2], [0, 0, 1, 1, 1]))
    groups = Groups(np.array([0, 0, 1]), np.array([0.5, 0.0]))
    np.testing.assert_allclose(groups.weights(block), [1 / 1.5, 1 / 1.5, 1, 1, 1])
    np.testing.assert_allclose(Groups(np.array([0, 0, 1]), np.array([1.0, 0.0])).weights(block), [0.5, 0.5, 1, 1, 1])


def test_too_many_pairs_are_compared_on_some_tasks(monkeypatch):
    block = whole_block(simulated_crowd(num_tasks=1000, num_annotators=20, redundancy=8)[0])
    monkeypatch.setattr(copies, "MOST_PAIRS", 10_000)  # of 28,000
    some = SharedTasks.of(block, 20)
    assert 9_000 < len(some.pairs) <= 10_000
    assert len(np.unique(some.tasks)) < 400
