"""The replay of a table of annotations against a plain loop, and crowds where the answer is known."""

import sys
from pathlib import Path

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import DawidSkene, HierarchicalDawidSkene, MajorityVote, Wawa
from crowdzoo.quality import sure_tasks

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reproduce"))
from simulated_next import SimulatedNext, simulate_next

sys.path.pop(0)


def uneven_crowd(seed=0, num_tasks=150):
    """Half of ten annotators are nearly always right, the others guess; all label all tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=num_tasks)
    right = rng.random((num_tasks, 10)) < np.repeat([0.95, 0.5], 5)
    return Annotations.from_dense(np.where(right, truth[:, None], 1 - truth[:, None])), truth


@pytest.mark.slow
def test_the_choice_saves_annotations_where_annotators_differ():
    annotations, truth = uneven_crowd()
    found = simulate_next(annotations, truth, HierarchicalDawidSkene(), runs=4, sure=0.99)
    assert found.all_annotations == 1500
    assert (found.random > 300).all()
    mean, low, high = found.interval()
    assert mean > 0.3
    assert low <= mean <= high
    np.testing.assert_allclose(found.saved, 1 - found.chosen / found.random)
    assert found.stopped.max() < 1500
    assert found.stopped_accuracy.mean() > found.target


def test_an_interval_does_not_save_more_than_all():
    found = SimulatedNext(0.9, 10, np.array([10, 10]), np.array([1, 9]), *(np.array([1, 1]),) * 3)
    mean, low, high = found.interval()
    assert (mean, high) == (0.5, 1.0)
    assert low == pytest.approx(0.5 - 1.96 * 0.4)


def test_a_task_with_one_annotation_is_never_sure():
    annotations = Annotations.from_arrays([0, 1, 1, 2, 2], [0, 0, 1, 0, 1], [0, 0, 0, 0, 1], tasks=range(4))
    result = MajorityVote().fit(annotations)
    assert result.posteriors.max(axis=1)[:3].tolist() == [1, 1, 0.5]
    assert sure_tasks(result, 0.99).tolist() == [False, True, False, False]
    assert sure_tasks(result, 0.5).tolist() == [False, True, True, False]


def test_what_cannot_be_simulated_is_refused():
    annotations, truth = uneven_crowd(num_tasks=30)
    with pytest.raises(DataError, match="wawa has no confusion matrices"):
        simulate_next(annotations, truth, Wawa(), runs=1)
    with pytest.raises(DataError, match="No task has a known class"):
        simulate_next(annotations, np.full(30, -1), DawidSkene(), runs=1)
    ratings = Annotations.from_arrays([0], [0], [1.0], kind="regression")
    with pytest.raises(DataError, match="kind classification, got 'regression'"):
        simulate_next(ratings, [0], DawidSkene(), runs=1)
