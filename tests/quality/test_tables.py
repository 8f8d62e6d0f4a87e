"""Tables of tasks, annotators and classes, and the spread of the annotations."""

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import entropy
from strategies import annotations as tables

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import MajorityVote
from crowdzoo.quality import annotator_table, gini, redundancy, spammer_scores, task_table

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")

few = settings(max_examples=40, deadline=None)


def crowd():
    """Votes: a: cat cat dog; b: cat dog; c: owl; d: none. Annotators 0, 1, 2 and one who did nothing."""
    rows = [("a", 0, "cat"), ("a", 1, "cat"), ("a", 2, "dog"), ("b", 2, "cat"), ("b", 0, "dog"), ("c", 0, "owl")]
    return Annotations.from_arrays(*zip(*rows, strict=True), tasks=["a", "b", "c", "d"], annotators=[0, 1, 2, 3])


def test_tasks_by_hand():
    table = task_table(crowd()).to_pydict()
    assert table["task"] == ["a", "b", "c", "d"]
    assert table["annotations"] == [3, 2, 1, 0]
    assert table["labels"] == [2, 2, 1, 0]
    assert table["top_share"] == [pytest.approx(2 / 3), 0.5, 1.0, None]
    assert table["tied"] == [False, True, False, None]
    assert table["agreement"] == [pytest.approx(1 / 3), 0.0, None, None]
    assert table["entropy"] == [pytest.approx(entropy([2, 1])), pytest.approx(np.log(2)), 0.0, None]
    assert table["entropy_normalised"] == [pytest.approx(entropy([2, 1]) / np.log(3)), 1.0, None, None]
    assert list(table) == ["task", "annotations", "labels", "top_share", "tied", "agreement", "entropy",
                           "entropy_normalised"]  # fmt: skip


def test_annotators_by_hand():
    table = annotator_table(crowd()).to_pydict()
    assert table["annotator"] == [0, 1, 2, 3]
    assert table["annotations"] == [3, 1, 2, 0]
    assert table["shared"] == [2, 1, 2, 0]
    assert table["agreement"] == [pytest.approx((1 / 2 + 0) / 2), 0.5, 0.0, None]
    assert table["labels"] == [3, 1, 2, 0]
    assert table["top_label"] == ["cat", "cat", "cat", None]  # the lowest code of those that are as frequent
    assert table["top_share"] == [pytest.approx(1 / 3), 1, 0.5, None]
    assert table["label_entropy"] == [pytest.approx(np.log(3)), 0, pytest.approx(np.log(2)), None]


@few
@given(tables(max_tasks=6, named=True))
def test_tables_are_what_counting_gives(table):
    """Against a matrix of counts, and without a word from NumPy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tasks = task_table(table).to_pylist()
        annotators = annotator_table(table).to_pylist()
    for rows, codes, names in (
        (tasks, table.task_ids, table.tasks), (annotators, table.annotator_ids, table.annotators),
    ):  # fmt: skip
        counts = np.zeros((len(names), table.num_classes), int)
        np.add.at(counts, (codes, table.labels), 1)
        for row, name, count in zip(rows, names.tolist(), counts, strict=True):
            assert name in row.values()
            assert row["annotations"] == count.sum()
            assert row["labels"] == (count > 0).sum()
            if not count.sum():
                assert row["top_share"] is None
                continue
            assert row["top_share"] == pytest.approx(count.max() / count.sum())
            value = row["entropy"] if "entropy" in row else row["label_entropy"]
            assert value == pytest.approx(entropy(count), abs=1e-12)
            if "tied" in row:
                assert row["tied"] == ((count == count.max()).sum() > 1)
                assert row["agreement"] is None or 0 <= row["agreement"] <= 1
                assert row["entropy_normalised"] is None or 0 <= row["entropy_normalised"] <= 1
            else:
                assert row["top_label"] == table.classes[count.argmax()]


def test_an_aggregation_of_something_else_is_refused():
    annotations = crowd()
    result = MajorityVote().fit(annotations)
    for name in ("tasks", "annotators", "classes"):
        other = dataclasses.replace(result, **{name: getattr(result, name)[::-1]})
        for make in (task_table, annotator_table):
            with pytest.raises(DataError, match=f"other {name} than"):
                make(annotations, other)


# === Spammer score ===


def raykar_and_yu(matrix):
    """The paper's sum over pairs of rows, one matrix."""
    classes = len(matrix)
    pairs = [(c, d) for c in range(classes) for d in range(c + 1, classes)]
    return sum(((matrix[c] - matrix[d]) ** 2).sum() for c, d in pairs) / (classes * (classes - 1))


def test_the_score_is_the_papers_sum_over_pairs():
    matrices = np.random.default_rng(0).dirichlet(np.ones(4), (20, 4))
    np.testing.assert_allclose(spammer_scores(matrices), [raykar_and_yu(matrix) for matrix in matrices])
    two = np.array([[[0.9, 0.1], [0.3, 0.7]]])
    np.testing.assert_allclose(spammer_scores(two), (0.9 + 0.7 - 1) ** 2)


def test_without_confusions_there_is_no_spammer_score():
    result = dataclasses.replace(MajorityVote().fit(crowd()), confusions=None)
    with pytest.raises(DataError, match="method 'majority-vote' gives none"):
        spammer_scores(result)
    with pytest.raises(DataError, match=r"\[R, K, K\], got \[2, 2\]"):
        spammer_scores(np.eye(2))
    with pytest.raises(DataError, match="two classes or more, got one"):
        spammer_scores(np.ones((3, 1, 1)))


# === Redundancy ===


def test_spread_by_hand():
    spread = redundancy(crowd())
    assert (spread.tasks.values.tolist(), spread.tasks.owners.tolist()) == ([0, 1, 2, 3], [1, 1, 1, 1])
    assert spread.tasks.mean == 1.5
    assert spread.tasks.quantiles[::5] == (0, 3)
    assert spread.tasks.quantiles[2] == 1.5
    assert spread.annotators.values.tolist() == [0, 1, 2, 3]
    # (|0-1| + |0-2| + |0-3| + |1-2| + |1-3| + |2-3|) * 2 / 16 over twice the mean
    assert spread.tasks.gini == pytest.approx(10 * 2 / 16 / 3)


def test_gini_of_equal_and_of_one_who_does_all():
    assert gini([4, 4, 4]) == 0
    assert gini([0, 0, 0, 9]) == pytest.approx(3 / 4)
    counts = np.random.default_rng(0).integers(0, 50, 40)
    by_pairs = np.abs(counts[:, None] - counts).mean() / (2 * counts.mean())
    assert gini(counts) == pytest.approx(by_pairs)
    for bad in ([], [0, 0], [-1, 2], [np.nan, 1], [np.inf, 1]):
        with pytest.raises(DataError, match="Gini"):
            gini(bad)


def test_an_annotator_counts_once_a_sequence():
    rows = [(0, 0, "a", 0), (0, 0, "b", 1), (0, 1, "a", 0), (0, 1, "a", 1), (1, 1, "b", 0)]
    task, annotator, label, position = zip(*rows, strict=True)
    spread = redundancy(Annotations.from_arrays(task, annotator, label, position=position, kind="sequence"))
    assert spread.tasks.values.tolist() == [1, 2]
    assert (spread.annotators.values.tolist(), spread.annotators.owners.tolist()) == ([1, 2], [1, 1])
