"""Correlation of models' errors: by hand on known truth, and on models of a known correlation."""

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import VotesWarning
from crowdzoo.quality import people_and_models


def crowd(correlation, seed=0, num_tasks=400, num_models=2, num_people=3, num_classes=2, asked=None):
    """Models that are wrong in 17 % of cases with this correlation of errors, people in 15 %, and the truth.

    A model takes the common error of a task with probability sqrt(correlation), and else errs alone.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, num_classes, num_tasks)

    def other():
        return (truth + rng.integers(1, num_classes, num_tasks)) % num_classes

    common, together = rng.random(num_tasks) < 0.17, other()
    said = {}
    for number in range(num_models):
        copied = rng.random(num_tasks) < np.sqrt(correlation)
        wrong = np.where(copied, common, rng.random(num_tasks) < 0.17)
        said[f"model{number}"] = np.where(wrong, np.where(copied, together, other()), truth)
    for number in range(num_people):
        said[f"person{number}"] = np.where(rng.random(num_tasks) < 0.85, truth, other())
    table = np.stack([*said.values()], axis=1)
    if asked is not None:
        table[asked:, num_models:] = -1
    models = [name for name in said if name.startswith("model")]
    return Annotations.from_dense(table, annotators=[*said], classes=range(num_classes)), models, truth


@pytest.mark.parametrize("settings", [{}, pytest.param({"num_models": 6, "num_classes": 4}, marks=pytest.mark.slow)])
@pytest.mark.parametrize("correlation", [0.2, pytest.param(0.5, marks=pytest.mark.slow), 0.87])
def test_it_is_the_correlation_of_the_errors(correlation, settings):
    found = [people_and_models(*crowd(correlation, seed, **settings)[:2]).correlation for seed in range(9)]
    assert np.median([each.value for each in found]) == pytest.approx(correlation, abs=0.1)
    assert sum(each.low <= correlation <= each.high for each in found) >= 7
    assert all(each.high - each.low < 0.45 for each in found)


def test_it_is_pearsons_where_people_are_always_right():
    """All people say the true class: the moments are those of the errors themselves."""
    table, models, truth = crowd(0.6, num_models=3)
    said = table.to_dense()
    said[:, 3:] = truth[:, None]
    table = Annotations.from_dense(said, annotators=table.annotators, classes=range(2))
    wrong = (said[:, :3] != truth[:, None]).astype(float)
    covariance = np.cov(wrong.T, bias=True)
    spread = np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()))
    one, other = np.triu_indices(3, 1)
    expected = covariance[one, other].sum() / spread[one, other].sum()
    assert people_and_models(table, models).correlation.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"num_people": 1}, "two people or more labelled 0 of the tasks that models labelled"),
        ({"asked": 20}, "people labelled 20 of the tasks that two models labelled or more, and 30 are needed"),
        ({"num_models": 1}, "it takes two models"),
    ],
)
def test_where_the_labels_cannot_tell_it_says_why(settings, reason):
    found = people_and_models(*crowd(0.5, **settings)[:2]).correlation
    assert (found.value, found.low, found.high) == (None, None, None)
    assert reason in found.reason
    assert str(found) == f"not known: {found.reason}"


def test_people_who_guess_tell_nothing():
    table, models, _ = crowd(0.5)
    rng = np.random.default_rng(5)
    labels = np.where(table.annotator_ids < 2, table.labels, rng.integers(0, 2, len(table)))
    drawn = Annotations.from_arrays(
        table.task_ids, table.annotators[table.annotator_ids].astype(str), labels, classes=range(2)
    )
    with pytest.warns(VotesWarning):
        found = people_and_models(drawn, models).correlation
    assert found.value is None
    assert "people" in found.reason


def test_two_runs_agree_and_the_interval_is_shown():
    table, models, _ = crowd(0.5)
    first, again = (people_and_models(table, models).correlation for _ in range(2))
    assert first == again
    assert str(first) == f"{first.value:.2f} ({first.low:.2f} to {first.high:.2f})"
