"""How many independent votes annotators are worth, and what is noted of a table."""

import re

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.quality import data_notes, effective_votes, effective_votes_interval


def crowd(groups: int, copies: int, num_tasks: int = 1500, seed: int = 0) -> Annotations:
    """Groups of annotators, right for 70 %; in a group all give the same answer."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)
    wrong = (truth + rng.integers(1, 3, (groups, num_tasks))) % 3
    said = np.where(rng.random((groups, num_tasks)) < 0.7, truth, wrong)
    return Annotations.from_dense(np.repeat(said, copies, axis=0).T)


def test_ten_who_answer_for_themselves_are_worth_ten():
    assert effective_votes(crowd(10, 1)) == pytest.approx(10, abs=0.5)


def test_twenty_who_copy_in_five_groups_are_worth_no_more_than_five():
    assert 1 < effective_votes(crowd(5, 4)) < 5


def test_there_is_no_such_number_without_a_second_vote_or_class():
    assert effective_votes(Annotations.from_arrays([0, 1], [0, 0], [0, 1])) is None
    assert effective_votes(Annotations.from_arrays([0, 0], [0, 1], [0, 0])) is None


def test_the_interval_has_the_value_inside_and_is_wider_for_a_small_crowd():
    small, large = (effective_votes_interval(crowd(5, 3, num_tasks)) for num_tasks in (80, 1000))
    assert small[0] == effective_votes(crowd(5, 3, 80))
    for value, low, high in (small, large):
        assert 1 <= low < value < high <= 15
    assert np.log(small[2] / small[1]) > 2 * np.log(large[2] / large[1])
    assert effective_votes_interval(crowd(5, 3, 80)) == small
    assert effective_votes_interval(Annotations.from_arrays([0, 1], [0, 0], [0, 1])) is None


@pytest.mark.parametrize("number", [3, 5])
@pytest.mark.parametrize("errors", [0.0, 0.01, 0.05])
def test_annotators_who_hardly_disagree_are_worth_their_number_and_little_is_known(number, errors):
    rng = np.random.default_rng(7)
    truth = rng.integers(2, size=200)
    labels = np.where(rng.random((number, 200)) < errors, 1 - truth, truth)
    value, low, high = effective_votes_interval(Annotations.from_dense(labels.T))
    assert (value, high) == (number, number)
    if number == 3:  # of three votes for two classes nothing tells correlation from errors
        assert low < 1.5


def test_the_interval_covers_the_number_of_drawn_votes():
    """Shares of votes are drawn from a Dirichlet distribution, so the number is known: 5 (1 + 3) / (5 + 3)."""
    covered, rng = 0, np.random.default_rng(0)
    for _ in range(20):
        truth = rng.integers(3, size=300)
        means = np.where(np.eye(3)[truth] > 0, 0.8, 0.1)
        shares = np.stack([rng.dirichlet(3 * row) for row in means])
        labels = np.stack([rng.choice(3, 5, p=row) for row in shares])
        _, low, high = effective_votes_interval(Annotations.from_dense(labels))
        covered += low <= 2.5 <= high
    assert covered >= 17


def test_annotators_who_err_together_are_noted():
    note = data_notes(crowd(4, 4, 210))[0]
    shown = re.search(
        r"The 16 annotations of a task are worth ([.\d]+) independent ones \(([.\d]+) to ([.\d]+)\)", note
    )
    worth, low, high = map(float, shown.groups())
    assert 1 <= low <= worth <= high < 8
    assert "Label 50 tasks" in note
    assert "--gold-sample 50 --out gold.csv" in note
    assert "--gold gold.csv --calibrate" in note
    assert data_notes(crowd(4, 1, 400)) == ()


def test_an_interval_that_tells_nothing_is_not_said_to_tell_something():
    annotations = crowd(4, 1, 12)
    (note,) = data_notes(annotations, worth=(1.7, 1.0, 3.7))  # of four
    assert "12 tasks are too few to tell whether annotators err" in note
    assert "annotators err on the same tasks" not in note
    assert "annotators err on the same tasks" in data_notes(annotations, worth=(1.7, 1.0, 3.0))[0]


def test_who_is_a_model_is_not_asked_where_it_was_said():
    annotations, worth = crowd(4, 4, 210), (3.0, 2.0, 4.0)
    asked, (known,) = (data_notes(annotations, worth=worth, models_named=named) for named in (False, True))
    asked = asked[0]
    assert "--annotator-table" in asked
    assert asked.startswith(known)
    assert "--annotator-table" not in known


def test_too_few_annotations_for_matrices_are_noted():
    rng = np.random.default_rng(0)
    tasks = np.repeat(np.arange(50), 2)
    few = Annotations.from_arrays(tasks, (tasks + np.tile([0, 10], 50)) % 20, rng.integers(0, 6, 100))
    (note,) = data_notes(few, "dawid-skene")
    assert note.startswith("An annotator has 0.8 annotations of each class on average")  # 100 / (20 * 6)
    assert data_notes(few, "one-coin") == data_notes(few) == ()
    assert data_notes(few.select_tasks([]), "dawid-skene") == ()
