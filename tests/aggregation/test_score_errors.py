"""Standard errors of the scores of preferences."""

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import create
from crowdzoo.errors import DataError


def preferences(left, right, said, who=None) -> Annotations:
    who = np.arange(len(left)) if who is None else who
    return Annotations.from_arrays(left, who, said, right=right, kind="preference", on_duplicate="all")


def simulated(scores, number, seed, bias=0.0) -> Annotations:
    rng = np.random.default_rng(seed)
    left = rng.integers(0, len(scores), number)
    right = (left + rng.integers(1, len(scores), number)) % len(scores)
    chance = 1 / (1 + np.exp(-(scores[left] - scores[right]) - bias))
    return preferences(left, right, np.where(rng.random(number) < chance, "left", "right"), rng.integers(0, 9, number))


def test_of_two_tasks_it_is_half_the_error_of_their_log_odds():
    table = preferences([0] * 40, [1] * 40, ["left"] * 30 + ["right"] * 10)
    found = create("bradley-terry", kind="preference", prior=0.0).fit(table)
    assert found.scores[0] - found.scores[1] == pytest.approx(np.log(3), abs=1e-3)
    # the variance of log odds is 1 / (n p (1 - p)); either task is half of that difference from the mean
    assert found.standard_errors(table) == pytest.approx([np.sqrt(1 / (40 * 0.75 * 0.25)) / 2] * 2, rel=1e-3)


def test_it_is_the_pseudoinverse_of_the_information():
    table = simulated(np.linspace(-1, 1, 8), 300, 0)
    found = create("bradley-terry", kind="preference").fit(table)
    information = np.zeros((8, 8))
    for left, right in zip(table.task_ids, table.right_ids, strict=True):
        p = 1 / (1 + np.exp(found.scores[right] - found.scores[left]))
        step = np.zeros(8)
        step[[left, right]] = 1, -1
        information += p * (1 - p) * np.outer(step, step)
    expected = np.sqrt(np.diag(np.linalg.pinv(information)))
    assert found.standard_errors(table) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("method", ["bradley-terry", "annotator-bradley-terry", "crowd-bt", "noisy-bradley-terry"])
def test_more_judgments_make_it_smaller_for_every_method(method):
    errors = []
    for number in (400, 1600):
        table = simulated(np.linspace(-1, 1, 10), number, 1)
        errors.append(create(method, kind="preference").fit(table).standard_errors(table).mean())
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.2)


def test_groups_have_their_own_and_tasks_without_comparisons_and_large_groups_none():
    table = preferences([0, 1, 3], [1, 2, 4], ["left"] * 3)
    apart = Annotations.from_arrays(
        [0, 1, 3], range(3), ["left"] * 3, right=[1, 2, 4], kind="preference", tasks=range(6)
    )
    found = create("bradley-terry", kind="preference").fit(apart)
    errors = found.standard_errors(apart)
    assert np.isfinite(errors[:5]).all()
    assert np.isnan(errors[5])
    of_two = preferences([3], [4], ["left"])
    alone = create("bradley-terry", kind="preference").fit(of_two)
    assert errors[3:5] == pytest.approx(alone.standard_errors(of_two), rel=1e-3)
    chain = np.arange(2000)  # of 2,001 tasks
    large = preferences([*chain, 3000], [*(chain + 1), 3001], ["left"] * 2001, np.arange(2001) % 9)
    large_errors = create("bradley-terry", kind="preference").fit(large).standard_errors(large)
    assert np.isnan(large_errors).tolist() == [True] * 2001 + [False] * 2
    with pytest.raises(DataError, match="other tasks"):
        found.standard_errors(table)
