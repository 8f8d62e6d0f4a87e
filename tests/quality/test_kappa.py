import numpy as np
import pytest
import slow_measures as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from strategies import annotations as tables

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.quality import cohen_kappa, cohen_kappas, fleiss_kappa, kappa, raw_agreement

few = settings(max_examples=40, deadline=None)

# Fleiss 1971, table 1: 30 patients, six psychiatrists each, how many gave each of five diagnoses; kappa .430
DIAGNOSES = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""


def counted(patients):
    """A table with that many annotations of each class; annotators differ from task to task."""
    rows = []
    for task, counts in enumerate(patients):
        labels = np.repeat(np.arange(len(counts)), counts)
        rows += [(task, who, label) for who, label in enumerate(labels)]
    return Annotations.from_arrays(*zip(*rows, strict=True), classes=range(len(patients[0])))


def dense(matrix, **more):
    return Annotations.from_dense(np.array(matrix), **more)


def test_fleiss_own_example():
    table = counted([[int(digit) for digit in patient] for patient in DIAGNOSES.split()])
    assert (table.num_tasks, len(table)) == (30, 180)
    assert fleiss_kappa(table) == pytest.approx(0.430, abs=5e-4)
    assert raw_agreement(table) == pytest.approx(0.555, abs=1e-3)


def test_raw_agreement_by_hand():
    """Tasks of 2, 3 and 1 annotations: 0 of 1 pair, 1 of 3 pairs, none."""
    table = dense([[0, 1, -1], [1, 1, 0], [-1, -1, 1]])
    assert raw_agreement(table) == pytest.approx((0 + 1 / 3) / 2)


@few
@given(tables(max_tasks=8))
def test_fleiss_with_any_redundancy_is_its_definition(table):
    expected = slow.fleiss(table)
    if expected is None:
        with pytest.raises(DataError, match="Fleiss' kappa is not defined"):
            fleiss_kappa(table)
    else:
        assert fleiss_kappa(table) == pytest.approx(expected, abs=1e-12)


def crowd(seed=0, tasks=60, annotators=9, classes=4):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, (tasks, 1))
    labels = np.where(generator.random((tasks, annotators)) < 0.5, labels, generator.integers(0, classes, labels.shape))
    return np.where(generator.random((tasks, annotators)) < 0.4, labels, -1)


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_cohen_is_scikit_learns(weights):
    matrix = crowd()
    table = dense(matrix, classes=range(4))
    rows = cohen_kappas(table, weights).to_pylist()
    assert len(rows) == 36
    for row in rows:
        both = (matrix[:, [row["first"], row["second"]]] >= 0).all(axis=1)
        one, two = matrix[both, row["first"]], matrix[both, row["second"]]
        expected = cohen_kappa_score(one, two, weights=None if weights == "none" else weights, labels=range(4))
        assert row["kappa"] == pytest.approx(expected, abs=1e-12)
        assert row["tasks"] == both.sum()
        assert row["agreement"] == pytest.approx((one == two).mean())
        assert cohen_kappa(table, row["second"], row["first"], weights) == pytest.approx(expected, abs=1e-12)


@few
@given(tables(max_tasks=6), st.sampled_from(list(kappa.POWERS)), st.integers(1, 6))
def test_the_table_has_exactly_the_pairs_that_share_tasks(table, weights, at_once):
    matrix = table.to_dense()
    expected = {}
    for first in range(table.num_annotators):
        for second in range(first + 1, table.num_annotators):
            both = (matrix[:, [first, second]] >= 0).all(axis=1)
            if both.any():
                expected[first, second] = int(both.sum())
    whole = kappa.PAIRS_AT_ONCE
    kappa.PAIRS_AT_ONCE = at_once  # so that pieces end anywhere
    try:
        rows = cohen_kappas(table, weights).to_pylist()
    finally:
        kappa.PAIRS_AT_ONCE = whole
    assert [(row["first"], row["second"]) for row in rows] == sorted(expected)
    for row in rows:
        pair = row["first"], row["second"]
        assert row["tasks"] == expected[pair]
        if row["kappa"] is None:
            with pytest.raises(DataError, match="not defined: each said but one class"):
                cohen_kappa(table, *pair, weights)
        else:
            assert row["kappa"] == pytest.approx(cohen_kappa(table, *pair, weights), abs=1e-12)


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(kappa, "MAX_PAIRS", 5)
    with pytest.raises(DataError, match=r"6 pairs of .*at most 5.*restrict\(redundancy=20\)"):
        cohen_kappas(dense([[0, 1, 0], [1, 1, 0]]))
    assert cohen_kappas(dense([[0, 1, 0], [1, 1, -1]])).num_rows == 3


PAIR = dense([[0, 1, -1], [1, 1, -1], [-1, -1, 1]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cohen_kappa(PAIR, 0, 2), DataError, "0 and 2 have no task in common"),
        (lambda: cohen_kappa(PAIR, 0, 3), DataError, "annotator code 3 is not one of 0 to 2"),
        (lambda: cohen_kappa(PAIR, 0, "bo"), DataError, "unknown annotator 'bo'"),
        (lambda: cohen_kappa(PAIR, 1, 1), ConfigError, "1 twice"),
        (lambda: cohen_kappa(PAIR, 0, 1, "square"), ConfigError, "unknown weights 'square': choose one of none"),
        (lambda: cohen_kappas(PAIR, "linaer"), ConfigError, "Did you mean 'linear'"),
        (lambda: cohen_kappa(dense([[1, 1]]), 0, 1), DataError, "not defined: each said but one class"),
        (lambda: raw_agreement(dense([[0, -1], [-1, 1]])), DataError, "no task has two"),
        (lambda: fleiss_kappa(dense([[0, -1], [-1, 1]])), DataError, "no task has two"),
        (lambda: fleiss_kappa(dense([[1, 1], [-1, 0]])), DataError, "are the same"),
        (lambda: fleiss_kappa(dense([[1.5, 1]], kind="regression")), DataError, "'classification', got"),
    ],
)
def test_what_cannot_be_measured_is_said(call, error, message):
    with pytest.raises(error, match=message):
        call()
