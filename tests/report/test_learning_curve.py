import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.kinds.classes.learning_curve import learning_curve


def crowd(num_tasks, each, right, seed=0):
    """Tasks of two classes with their truth; each of the annotators labels all of them, and is right independently."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, num_tasks)
    said = np.where(rng.random((each, num_tasks)) < right, truth, 1 - truth)
    names = np.repeat(np.arange(each), num_tasks)
    return Annotations.from_arrays(np.tile(np.arange(num_tasks), each), names, said.ravel()), truth


def test_accuracy_goes_from_that_of_one_annotation_to_that_of_a_vote_of_nine():
    annotations, truth = crowd(2000, 9, 0.7)
    found = learning_curve(annotations, truth, draws=3, seed=0)
    assert [point[0] for point in found["points"]] == [1, 2, 3, 5, 8, 9]
    _, same, _, _, accuracy, low, high = found["points"][0]
    assert low < 0.7 < high, "one annotation is right in seven of ten cases"
    assert abs(same - accuracy) > 0.01
    *_, accuracy, low, high = found["points"][-1]
    assert low < 0.9012 < high, "a vote of nine: 1 - binomial(9, .7).cdf(4)"
    assert found["points"][-1][1] == 1
    added, changed, *_, gain, least, most = found["last"]
    assert added == 1
    assert changed == pytest.approx(1 - found["points"][-2][1], abs=1e-4)
    assert gain == pytest.approx(accuracy - found["points"][-2][4], abs=2e-4)
    assert least < gain < most
    assert (found["tasks"], found["gold"], found["draws"], found["method"]) == (2000, 2000, 3, "one-coin")


def test_the_last_step_is_of_all_tasks_where_a_few_have_many_annotations():
    annotations, truth = crowd(600, 9, 0.75)
    sizes = np.where(np.arange(600) < 10, 9, 5)
    rank = annotations.annotator_ids
    found = learning_curve(annotations.select_rows(rank < sizes[annotations.task_ids]), truth, draws=3, seed=0)
    added, changed, *_, gain, least, _ = found["last"]
    assert 0.9 < added < 1.2
    assert changed > 0.05
    assert gain > least > 0, "a fifth annotation: .896 of the majorities of five are right, .844 of four"
    means = [point[0] for point in found["points"]]
    assert means == sorted(means)
    assert means[-1] == pytest.approx(sizes.mean())


def test_annotators_who_are_always_right_leave_nothing_to_gain():
    annotations, truth = crowd(40, 3, 1.0)
    gold = np.where(np.arange(40) < 10, 1 - truth, truth)
    gold[30:] = -1
    found = learning_curve(annotations, gold, draws=2, seed=0)
    assert [point[1] for point in found["points"]] == [1, 1, 1]
    assert [point[4] for point in found["points"]] == [pytest.approx(2 / 3, abs=1e-4)] * 3, "ten of thirty are wrong"
    assert found["gold"] == 30
    assert found["last"] == [1, 0, 0, pytest.approx(0.0876, abs=1e-4), 0, 0, 0], "Wilson's interval of none of forty"


def test_without_gold_nothing_is_said_of_what_is_right():
    annotations, _ = crowd(40, 3, 0.8)
    found = learning_curve(annotations, None, draws=2, seed=0)
    assert {value for point in found["points"] for value in point[4:]} == {None}
    assert found["last"][4:] == [None, None, None]


def test_there_is_none_where_nothing_can_be_left_out_and_of_too_many_annotations():
    annotations, truth = crowd(60, 5, 0.7)
    assert learning_curve(annotations, truth, draws=0, seed=0) is None
    assert learning_curve(annotations.restrict(redundancy=1), truth, draws=2, seed=0) is None
    large, truth = crowd(40_001, 5, 0.7)
    assert learning_curve(large, truth, draws=2, seed=0) == {"method": "one-coin", "draws": 2, "skipped": True}
