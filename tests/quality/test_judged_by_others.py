"""How often an annotator is right, by the others alone."""

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import GLAD, DawidSkene
from crowdzoo.errors import DataError
from crowdzoo.quality import judged_by_others


def crowd() -> Annotations:
    rng = np.random.default_rng(3)
    tasks, annotators = np.divmod(rng.choice(30 * 5, 90, replace=False), 5)
    labels = np.where(rng.random(90) < 0.8, tasks % 3, rng.integers(0, 3, 90))
    return Annotations.from_arrays(tasks, annotators, labels, classes=[0, 1, 2])


def test_it_is_bayes_rule_without_the_annotators_own_label(monkeypatch):
    annotations = crowd()
    result = DawidSkene().fit(annotations)
    expected: dict[int, list[float]] = {}
    columns = (annotations.task_ids, annotations.annotator_ids, annotations.labels)
    rows = np.stack(columns, axis=1).tolist()
    for task, annotator, label in rows:
        others = [(who, said) for other, who, said in rows if other == task and who != annotator]
        if others:
            weight = [
                result.class_prior[true] * np.prod([result.confusions[who, true, said] for who, said in others])
                for true in range(3)
            ]
            expected.setdefault(annotator, []).append(weight[label] / sum(weight))
    found = judged_by_others(annotations, result)
    np.testing.assert_allclose(found, [np.mean(expected[annotator]) for annotator in range(5)], rtol=1e-12)
    monkeypatch.setattr("crowdzoo.quality.reliability.NUMBERS_AT_ONCE", 12)  # the same in blocks of a few tasks
    np.testing.assert_allclose(judged_by_others(annotations, result), found, rtol=1e-12)


def test_who_shares_no_task_has_none():
    annotations = Annotations.from_arrays([0, 0, 1], ["a", "b", "c"], [0, 1, 1])
    found = judged_by_others(annotations, DawidSkene().fit(annotations))
    assert np.isnan(found).tolist() == [False, False, True]


def test_a_method_without_confusion_matrices_is_refused():
    annotations = crowd()
    with pytest.raises(DataError, match=r"'glad' gives none"):
        judged_by_others(annotations, GLAD().fit(annotations))
