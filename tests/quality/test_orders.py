"""Judgments of pairs: the order that the other annotators give, and majorities that no order fits."""

import itertools

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import create
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.quality import circular_triads, order_of_others


def crowd(careful: int, blind: int, tasks: int = 15, each: int = 60, seed: int = 0) -> Annotations:
    """Annotators who follow an order, and others who answer at random."""
    rng = np.random.default_rng(seed)
    people = careful + blind
    who = np.repeat(np.arange(people), each)
    left = rng.integers(0, tasks, len(who))
    right = (left + rng.integers(1, tasks, len(who))) % tasks
    better_left = left > right
    said_left = np.where(who < careful, better_left, rng.random(len(who)) < 0.5)
    return Annotations.from_arrays(
        left, who, np.where(said_left, "left", "right"), right=right, kind="preference", on_duplicate="all"
    )


def test_with_an_annotator_a_fold_it_is_the_fit_without_that_annotator():
    table = crowd(3, 1)
    found = order_of_others(table)
    for who in range(4):
        mine = table.annotator_ids == who
        scores = create("bradley-terry", kind="preference").fit(table.select_rows(~mine)).scores
        expected = scores[table.task_ids[mine]] - scores[table.right_ids[mine]]
        assert found[mine] == pytest.approx(expected, abs=1e-3)


def test_who_answers_at_random_agrees_with_half_and_not_with_an_order_fitted_to_the_own_answers():
    table = crowd(0, 40, tasks=60, each=25)
    agrees = (order_of_others(table, seed=1) > 0) == (table.labels == 0)
    assert agrees.mean() == pytest.approx(0.5, abs=0.05)
    scores = create("bradley-terry", kind="preference").fit(table).scores
    own = (scores[table.task_ids] > scores[table.right_ids]) == (table.labels == 0)
    assert own.mean() > 0.55


def test_tasks_that_the_others_do_not_link_have_no_order():
    table = Annotations.from_arrays(
        ["a", "b", "x"], ["ann", "bob", "bob"], ["left", "left", "right"], right=["b", "a", "y"], kind="preference"
    )
    found = order_of_others(table)
    assert np.isnan(found).tolist() == [False, False, True]
    assert found[0] < 0  # bob has b ahead
    assert found[1] < 0  # ann has a ahead


def test_two_runs_agree_and_wrong_settings_are_refused():
    table = crowd(10, 5)
    assert np.array_equal(order_of_others(table, seed=4), order_of_others(table, seed=4), equal_nan=True)
    with pytest.raises(ConfigError, match="folds"):
        order_of_others(table, folds=1)
    with pytest.raises(DataError, match="kind 'preference'"):
        order_of_others(Annotations.from_arrays([0], ["a"], [1]))


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
