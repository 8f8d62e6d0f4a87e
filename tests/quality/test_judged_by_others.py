"""How often an annotator is right, by the others alone."""

from dataclasses import replace

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import GLAD, DawidSkene, OneCoinDawidSkene, Robust
from crowdzoo.errors import DataError
from crowdzoo.quality import judged_by_others
from crowdzoo.quality.annotators import annotator_table
from crowdzoo.quality.figures import wilson


def crowd() -> Annotations:
    rng = np.random.default_rng(3)
    tasks, annotators = np.divmod(rng.choice(30 * 5, 90, replace=False), 5)
    labels = np.where(rng.random(90) < 0.8, tasks % 3, rng.integers(0, 3, 90))
    return Annotations.from_arrays(tasks, annotators, labels, classes=[0, 1, 2])


def chances(annotations: Annotations, result, judges=(True,) * 5) -> dict[int, list[float]]:
    """Of each annotator, the probabilities that their labels are right, by the other judges' labels."""
    expected: dict[int, list[float]] = {}
    columns = (annotations.task_ids, annotations.annotator_ids, annotations.labels)
    rows = np.stack(columns, axis=1).tolist()
    for task, annotator, label in rows:
        others = [(who, said) for other, who, said in rows if other == task and who != annotator and judges[who]]
        if others:
            weight = [
                result.class_prior[true] * np.prod([result.confusions[who, true, said] for who, said in others])
                for true in range(3)
            ]
            expected.setdefault(annotator, []).append(weight[label] / sum(weight))
    return expected


def most_likely(right: list[float], size: int) -> float:
    """The accuracy of the largest likelihood, by search."""
    q = np.array(right)
    grid = np.linspace(0, 1, 20001)[:, None]
    return float(grid[np.log(grid * q + (1 - grid) * (1 - q) / (size - 1)).sum(axis=1).argmax(), 0])


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("judges", [(True,) * 5, (True, False, True, True, False)])
def test_it_is_the_most_likely_accuracy_by_bayes_rule_without_the_annotators_own_label(monkeypatch, judges):
    annotations = crowd()
    result = DawidSkene().fit(annotations)
    found, worth = judged_by_others(annotations, result, np.array(judges))
    right = chances(annotations, result, judges)
    np.testing.assert_allclose(found, [most_likely(right[who], 3) for who in range(5)], atol=2e-4)
    assert (worth <= [len(right[who]) for who in range(5)]).all()
    monkeypatch.setattr("crowdzoo.quality.reliability.NUMBERS_AT_ONCE", 12)  # the same in blocks of a few tasks
    again = judged_by_others(annotations, result, np.array(judges))
    np.testing.assert_allclose(again, [found, worth], rtol=1e-9)


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_it_is_how_often_annotators_are_right_where_a_task_has_three(size):
    errors, inside = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        accuracy, truth = rng.uniform(0.5, 0.97, 20), rng.integers(0, size, 600)
        who = np.concatenate([rng.choice(20, 3, replace=False) for _ in range(600)])
        tasks = np.repeat(np.arange(600), 3)
        right = rng.random(1800) < accuracy[who]
        labels = np.where(right, truth[tasks], (truth[tasks] + rng.integers(1, size, 1800)) % size)
        annotations = Annotations.from_arrays(tasks, who, labels)
        found, worth = judged_by_others(annotations, Robust().fit(annotations))
        low, high = wilson(found, worth)
        errors.append(found - accuracy)
        inside.append((low <= accuracy) & (accuracy <= high))
    assert abs(np.mean(errors)) < 0.03  # the mean probability by the others is .11 and .16 too low
    assert 0.89 < np.mean(inside) < 0.99


def test_who_shares_no_task_and_whom_others_tell_nothing_of_has_none():
    annotations = Annotations.from_arrays([0, 0, 1], ["a", "b", "c"], [0, 1, 1])
    found, worth = judged_by_others(annotations, DawidSkene().fit(annotations))
    assert np.isnan(found[2])
    assert np.isnan(worth[2])
    guesses = np.random.default_rng(0).integers(0, 2, (2, 50))  # of two who guess, neither says how good the other is
    annotations = Annotations.from_arrays(np.tile(np.arange(50), 2), np.repeat(["a", "b"], 50), guesses.ravel())
    result = replace(OneCoinDawidSkene().fit(annotations), confusions=np.full((2, 2, 2), 0.5))
    assert np.isnan(judged_by_others(annotations, result)).all()
    with pytest.raises(DataError, match="judges: give a boolean for each of the 2 annotators"):
        judged_by_others(annotations, result, np.array([True]))


def test_a_method_without_confusion_matrices_is_refused():
    annotations = crowd()
    with pytest.raises(DataError, match=r"'glad' gives none"):
        judged_by_others(annotations, GLAD().fit(annotations))


def test_intervals_hold_the_accuracy_where_a_task_has_two_labels():
    inside, widths = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        truth, skill = rng.integers(0, 8, 1000), rng.beta(8, 2.5, 10)
        rows = np.where(np.eye(8) > 0, skill[:, None, None], (1 - skill[:, None, None]) / 7)
        confusions = np.array([[rng.dirichlet(15 * row) for row in each] for each in rows])
        accuracy = confusions.diagonal(axis1=1, axis2=2).mean(axis=1)
        who = rng.random((1000, 10)).argsort(axis=1)[:, :2]
        limits = confusions[who, truth[:, None]].cumsum(axis=2)
        labels = np.minimum((rng.random((1000, 2, 1)) > limits).sum(axis=2), 7)
        annotations = Annotations.from_arrays(np.repeat(np.arange(1000), 2), who.ravel(), labels.ravel())
        table = annotator_table(annotations, Robust().fit(annotations))
        low, high = (table[f"reliability_{end}"].to_numpy() for end in ("low", "high"))
        inside.append((low <= accuracy) & (accuracy <= high))
        widths.append(high - low)
    assert np.mean(inside) >= 0.92, "0.86 where others are judged by matrices that fit their own labels"
    assert np.mean(widths) < 0.2
