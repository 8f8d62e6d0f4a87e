"""The replay of a table of annotations against a plain loop, and crowds where the answer is known."""

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote
from crowdzoo.quality import sure_tasks


def uneven_crowd(seed=0, num_tasks=150):
    """Half of ten annotators are nearly always right, the others guess; all label all tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=num_tasks)
    right = rng.random((num_tasks, 10)) < np.repeat([0.95, 0.5], 5)
    return Annotations.from_dense(np.where(right, truth[:, None], 1 - truth[:, None])), truth


@pytest.mark.slow
def test_the_choice_saves_annotations_where_annotators_differ(reproduce):
    annotations, truth = uneven_crowd()
    runs = list(reproduce("next_annotations").replayed(annotations, truth, 4))
    assert {run["all"] for run in runs} == {1500}
    assert all(run["random"] > 300 for run in runs)
    assert np.mean([run["saved"] for run in runs]) > 0.3
    assert max(run["stopped"] for run in runs) < 1500
    assert np.mean([run["stopped accuracy"] for run in runs]) > runs[0]["target"]


def test_a_task_with_one_annotation_is_never_sure():
    annotations = Annotations.from_arrays([0, 1, 1, 2, 2], [0, 0, 1, 0, 1], [0, 0, 0, 0, 1], tasks=range(4))
    result = MajorityVote().fit(annotations)
    assert result.posteriors.max(axis=1)[:3].tolist() == [1, 1, 0.5]
    assert sure_tasks(result, 0.99).tolist() == [False, True, False, False]
    assert sure_tasks(result, 0.5).tolist() == [False, True, True, False]
