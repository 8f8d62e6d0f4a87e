"""The plan of the first round, before anybody has answered."""

from itertools import combinations

import numpy as np
import pytest

from crowdzoo import Annotations, ConfigError, DataError, next_answers
from crowdzoo.quality import first_annotations, first_pairs


def table(found, tasks, annotators):
    answers = np.zeros((tasks, annotators), int)
    np.add.at(answers, (found.tasks, found.annotators), 1)
    return answers


@pytest.mark.parametrize(("tasks", "annotators", "per_task"), [(60, 6, 3), (40, 8, 2), (90, 10, 3), (30, 4, 4)])
def test_loads_are_equal_and_every_pair_of_annotators_shares_tasks(tasks, annotators, per_task):
    answers = table(first_annotations(tasks, annotators, per_task=per_task), tasks, annotators)
    assert answers.max() == 1
    assert set(answers.sum(axis=1)) == {per_task}
    assert np.ptp(answers.sum(axis=0)) <= 2
    shared = [int((answers[:, one] & answers[:, other]).sum()) for one, other in combinations(range(annotators), 2)]
    mean = tasks * per_task * (per_task - 1) / (annotators * (annotators - 1))
    assert min(shared) >= max(1, np.floor(mean) - 1)


def test_the_first_questions_of_a_plan_are_balanced_too():
    found = first_annotations(60, 6)
    answers = np.bincount(found.annotators[:60], minlength=6)
    assert answers.min() >= 6
    assert np.unique(found.tasks[:60]).size == 20  # all answers to a task stand together


def test_gold_is_asked_of_everybody_in_turn():
    gold = np.arange(50) < 5
    found = first_annotations(50, 6, 120, gold=gold)
    answers = table(found, 50, 6)
    assert answers[gold].sum(axis=0).tolist() == [2] * 6  # a tenth of 20
    assert np.ptp(answers[gold].sum(axis=1)) <= 1
    assert answers[~gold].sum(axis=0).min() >= 17
    assert len(found.tasks) <= 120
    first = {annotator: found.tasks[found.annotators == annotator] for annotator in range(6)}
    assert any((tasks[:-2] < 5).any() for tasks in first.values())  # mixed in, and not at the end


def test_limits_and_costs():
    found = first_annotations(30, 3, costs=[1, 1, 5], budget=40)
    assert found.costs.sum() <= 40
    assert table(found, 30, 3).sum(axis=0).tolist() == [5, 5, 5]  # 7 for each task
    assert sorted(np.bincount(first_annotations(30, 5, per_annotator=4).annotators)) == [3, 3, 4, 4, 4]  # whole tasks
    assert len(first_annotations(3, 1).tasks) == 3
    with pytest.raises(ConfigError):
        first_annotations(0, 3)
    with pytest.raises(DataError, match="gold has one value for each of 4 tasks"):
        first_annotations(4, 3, gold=[True])


def test_seeds_decide():
    one, again, other = (first_annotations(40, 5, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.tasks, again.tasks)
    np.testing.assert_array_equal(one.annotators, again.annotators)
    assert (one.tasks != other.tasks).any()


def test_first_pairs_link_all_tasks_evenly():
    pairs = first_pairs(12, 24)
    assert len({frozenset(pair) for pair in pairs.tolist()}) == 24
    assert np.bincount(pairs[:12].ravel()).tolist() == [2] * 12
    linked = {0}
    for _ in range(12):
        linked |= {task for pair in pairs[:12].tolist() for task in pair if linked & {*pair}}
    assert linked == {*range(12)}
    assert len(first_pairs(4, 99)) == 6  # all there are


def test_without_answers_next_answers_is_a_plan():
    empty = Annotations.from_arrays([], [], [], tasks=range(20), annotators=["ann", "bob", "cem", "dee"], classes=["a"])
    found = next_answers(empty, 30, annotators=[1, 2, 3])
    assert {*found.annotators.tolist()} == {1, 2, 3}
    assert len(found.tasks) == 30
    pairs = Annotations.from_arrays([], [], [], right=[], tasks=range(8), annotators=["ann", "bob"], kind="preference")
    found = next_answers(pairs, 16)
    assert len(found.tasks) == 16
    linked = {0}
    for _ in range(8):  # two answers to each of the eight pairs of a cycle
        linked |= {task for pair in zip(found.tasks.tolist(), found.rights.tolist(), strict=True) for task in pair
                   if linked & {*pair}}  # fmt: skip
    assert linked == {*range(8)}
    assert len(next_answers(pairs, 99, budget=7, costs=[1, 1]).tasks) == 6  # whole pairs
    assert len(first_annotations(5, 2, gold=[True] * 5).tasks) == 2


def test_a_plan_for_nobody_or_at_wrong_costs_is_refused():
    names = {"tasks": range(4), "annotators": ["ann", "bob"]}
    pairs = Annotations.from_arrays([], [], [], right=[], kind="preference", **names)
    classes = Annotations.from_arrays([], [], [], classes=["a"], **names)
    for crowd in (pairs, classes):
        for options, told in (
            ({"annotators": []}, "annotators are codes of some of the 2"),
            ({"annotators": [2]}, "annotators are codes of some of the 2"),
            ({"costs": [1]}, "one number for each annotator"),
            ({"costs": [0, 0], "budget": 3}, "above 0"),
        ):
            with pytest.raises(DataError, match=told):
                next_answers(crowd, 4, **options)
