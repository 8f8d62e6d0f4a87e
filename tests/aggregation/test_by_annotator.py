"""Dawid-Skene without tables of all annotators: the same answers as with them."""

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import ConvergenceWarning, DawidSkene
from crowdzoo.aggregation.engine.by_annotator import ByAnnotator
from crowdzoo.testing.aggregators import simulated_crowd


def both_ways(monkeypatch, aggregator, crowd, **given):
    """Results by annotator, and with tables."""
    found = []
    for way in (True, False):
        monkeypatch.setattr(ByAnnotator, "pays", staticmethod(lambda annotations, way=way: way))
        found.append(aggregator.fit(crowd, **given))
    return found


def assert_same(one, other):
    np.testing.assert_allclose(one.posteriors, other.posteriors, atol=1e-9)
    np.testing.assert_allclose(one.confusions, other.confusions, atol=1e-9)
    np.testing.assert_allclose(one.class_prior, other.class_prior, atol=1e-12)
    np.testing.assert_allclose(one.history, other.history, rtol=1e-12)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)
    assert (one.converged, one.num_iterations) == (other.converged, other.num_iterations)


@pytest.mark.parametrize(
    ("num_classes", "threads"), [(1, "3"), (4, "1"), (4, "3"), pytest.param(130, "3", marks=pytest.mark.slow)]
)
def test_equal_to_the_tables(monkeypatch, num_classes, threads):
    monkeypatch.setenv("CROWDZOO_THREADS", threads)
    crowd, _ = simulated_crowd(num_tasks=300, num_annotators=200, num_classes=num_classes, redundancy=3)
    assert_same(*both_ways(monkeypatch, DawidSkene(), crowd))


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.against_votes.VotesWarning")  # random votes
@pytest.mark.parametrize("settings", [{"prior": 0.0, "diagonal": 0.0}, {"prior": 0.5, "diagonal": 0.0}])
def test_equal_to_the_tables_with_gold_ties_and_tasks_and_annotators_without_annotations(monkeypatch, settings):
    rng = np.random.default_rng(0)
    crowd = Annotations(
        "classification",
        task_ids=rng.permutation(np.repeat(np.arange(40), 2)),
        annotator_ids=rng.integers(0, 25, 80),
        labels=rng.integers(0, 3, 80),
        tasks=np.arange(45),
        annotators=np.arange(30),
        classes=np.arange(4),  # one is never seen
    )
    gold = np.full(45, -1)
    gold[[0, 3, 44]] = [1, 3, 2]
    one, other = both_ways(monkeypatch, DawidSkene(**settings), crowd, gold=gold)
    assert_same(one, other)
    np.testing.assert_array_equal(one.labels[[0, 3, 44]], [1, 3, 2])


def test_equal_to_the_tables_from_posteriors_and_from_one_coin(monkeypatch):
    crowd, truth = simulated_crowd(num_tasks=120, num_annotators=90, num_classes=4, redundancy=3)
    initial = np.full((120, 4), 0.1)
    initial[np.arange(120), truth] = 0.7
    assert_same(*both_ways(monkeypatch, DawidSkene(), crowd, initial=initial))
    assert_same(*both_ways(monkeypatch, DawidSkene(start="one-coin"), crowd))


@pytest.mark.parametrize("name", ["CELLS", "MOST_BYTES"])
def test_equal_to_the_tables_with_an_annotator_at_a_time_or_one_thread(monkeypatch, name):
    monkeypatch.setenv("CROWDZOO_THREADS", "3")
    monkeypatch.setattr(f"crowdzoo.aggregation.engine.by_annotator.{name}", 1)
    crowd, _ = simulated_crowd(num_tasks=50, num_annotators=40, num_classes=4, redundancy=3)
    assert len(ByAnnotator(crowd).parts) == (3 if name == "CELLS" else 1)
    assert_same(*both_ways(monkeypatch, DawidSkene(), crowd))


def test_it_says_if_it_has_not_converged(monkeypatch):
    crowd, _ = simulated_crowd(num_tasks=120, num_annotators=90, redundancy=3)
    monkeypatch.setattr(ByAnnotator, "pays", staticmethod(lambda annotations: True))
    with pytest.warns(ConvergenceWarning) as found:
        DawidSkene(max_iter=2, tol=0.0).fit(crowd)
    assert found[0].filename == __file__


def test_it_is_taken_where_annotators_have_larger_tables_than_tasks_have_posteriors():
    def crowd(tasks, annotators, classes):
        ids = np.arange(10)
        return Annotations("classification", ids, ids, ids % 2, *map(np.arange, (tasks, annotators, classes)))

    assert ByAnnotator.pays(crowd(100_000, 20_000, 10))
    assert not ByAnnotator.pays(crowd(300_000, 20_000, 10))  # the posteriors are larger
    assert not ByAnnotator.pays(crowd(100, 200, 10))  # all tables are in the cache
