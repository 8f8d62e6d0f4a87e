import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.quality import effective_votes, effective_votes_interval


def crowd(groups: int, copies: int, num_tasks: int = 1500, seed: int = 0) -> Annotations:
    """Groups of annotators, right for 70 %; in a group all give the same answer."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)
    said = [
        np.where(rng.random(num_tasks) < 0.7, truth, (truth + rng.integers(1, 3, num_tasks)) % 3) for _ in range(groups)
    ]
    labels = np.repeat(np.stack(said), copies, axis=0)
    annotators = np.repeat(np.arange(groups * copies), num_tasks)
    return Annotations.from_arrays(np.tile(np.arange(num_tasks), groups * copies), annotators, labels.ravel())


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
    crowd = Annotations.from_arrays(np.tile(np.arange(200), number), np.repeat(np.arange(number), 200), labels.ravel())
    value, low, high = effective_votes_interval(crowd)
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
        crowd = Annotations.from_arrays(np.repeat(np.arange(300), 5), np.tile(np.arange(5), 300), labels.ravel())
        _, low, high = effective_votes_interval(crowd)
        covered += low <= 2.5 <= high
    assert covered >= 17
