"""Circular triads: majorities that no order fits."""

import itertools

import numpy as np

from crowdzoo import Annotations
from crowdzoo.quality import circular_triads


def judgments(*rows) -> Annotations:
    """Judgments (better, worse) by annotators of their own, the better one on either side in turn."""
    left = [row[place % 2] for place, row in enumerate(rows)]
    right = [row[1 - place % 2] for place, row in enumerate(rows)]
    said = ["left" if place % 2 == 0 else "right" for place in range(len(rows))]
    return Annotations.from_arrays(left, range(len(rows)), said, right=right, kind="preference")


def test_a_circle_of_three_is_one_and_an_order_is_none():
    found = circular_triads(judgments("ab", "bc", "ca"))
    assert (found.circular, found.total, found.of_tasks.tolist()) == (1, 1, [1, 1, 1])
    found = circular_triads(judgments("ab", "bc", "ac", "ad", "bd"))
    assert (found.circular, found.total, found.share) == (0, 2, 0.0)


def test_the_majority_of_a_pair_counts_and_a_tie_has_none():
    assert circular_triads(judgments("ab", "bc", "ca", "ac", "ac")).circular == 0
    found = circular_triads(judgments("ab", "bc", "ca", "ac"))
    assert found.total == 0
    assert np.isnan(found.share)


def test_counts_are_those_of_looking_at_every_three_tasks():
    rng = np.random.default_rng(3)
    left, right = rng.integers(0, 25, 600), rng.integers(0, 25, 600)
    left, right = left[left != right], right[left != right]
    said = rng.choice(["left", "right", "equal"], len(left))
    table = Annotations.from_arrays(left, np.arange(len(left)), said, right=right, kind="preference")
    ahead = np.zeros((25, 25))
    sign = np.array([1, -1, 0])[table.labels]
    np.add.at(ahead, (table.task_ids, table.right_ids), sign)
    np.add.at(ahead, (table.right_ids, table.task_ids), -sign)
    expected, total, of_tasks = 0, 0, np.zeros(25, int)
    for three in itertools.combinations(range(25), 3):
        a, b, c = three
        if not (ahead[a, b] and ahead[b, c] and ahead[a, c]):
            continue
        total += 1
        wins = [(ahead[one, list(set(three) - {one})] > 0).sum() for one in three]
        if wins == [1, 1, 1]:
            expected += 1
            of_tasks[list(three)] += 1
    found = circular_triads(table)
    assert (found.circular, found.total) == (expected, total)
    assert total > 100
    assert found.of_tasks.tolist() == of_tasks.tolist()
