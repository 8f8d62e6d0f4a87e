"""Metrics: expected numbers by hand, and scikit-learn where it has the same one."""

import numpy as np
import pytest
import sklearn.metrics

from crowdzoo import metrics
from crowdzoo.data.annotations import Annotations


def test_accuracy_leaves_out_unknown_truths():
    assert metrics.accuracy(np.array([0, 1, -1, 2]), np.array([0, 2, 1, 2])) == pytest.approx(2 / 3)


def test_accuracy_without_truth_or_with_other_shapes_is_refused():
    with pytest.raises(ValueError, match="truth of no task"):
        metrics.accuracy(np.array([-1]), np.array([0]))
    with pytest.raises(ValueError, match=r"same shape, got \(2,\) and \(2, 1\)"):
        metrics.accuracy(np.array([0, 1]), np.array([[0], [1]]))


def test_calibration_error_is_the_gap_per_bin():
    probabilities = np.array([[0.95, 0.05], [0.95, 0.05], [0.3, 0.7], [0.6, 0.4], [0.6, 0.4]])
    gold = np.array([0, 1, 1, 0, -1])
    # bins of 0.1: two at .95, one of them right; one at .7, right; one at .6, right
    expected = (2 * abs(0.5 - 0.95) + abs(1 - 0.7) + abs(1 - 0.6)) / 4
    assert metrics.expected_calibration_error(gold, probabilities, bins=10) == pytest.approx(expected)


def test_calibration_error_refuses_what_it_cannot_count():
    with pytest.raises(ValueError, match="bins must be at least 1"):
        metrics.expected_calibration_error(np.array([0]), np.array([[1.0, 0.0]]), bins=0)
    with pytest.raises(ValueError, match="probabilities"):
        metrics.expected_calibration_error(np.array([0]), np.array([1.0]))
    with pytest.raises(ValueError, match="truth of no task"):
        metrics.expected_calibration_error(np.array([-1]), np.array([[1.0, 0.0]]))


def test_regression_metrics_by_hand_and_as_in_scikit_learn():
    gold, predicted = np.array([1.0, 2.0, 4.0, np.nan]), np.array([1.5, 2.0, 3.0, 100.0])
    assert metrics.mean_absolute_error(gold, predicted) == pytest.approx(0.5)
    assert metrics.root_mean_squared_error(gold, predicted) == pytest.approx(np.sqrt(1.25 / 3))
    # mean 7/3, total (16 + 1 + 25) / 9
    assert metrics.r2_score(gold, predicted) == pytest.approx(1 - 1.25 / (42 / 9))
    rng = np.random.default_rng(0)
    gold, predicted = rng.normal(size=(2, 50))
    assert metrics.r2_score(gold, predicted) == pytest.approx(sklearn.metrics.r2_score(gold, predicted))
    assert metrics.mean_absolute_error(gold, predicted) == pytest.approx(
        sklearn.metrics.mean_absolute_error(gold, predicted)
    )


def test_regression_metrics_refuse_broadcasting_and_emptiness():
    with pytest.raises(ValueError, match="same shape"):
        metrics.r2_score(np.zeros(3), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="truth of no task"):
        metrics.mean_absolute_error(np.array([np.nan]), np.zeros(1))


def test_true_confusions_are_counted_annotator_then_true_then_said():
    #                annotator   0  1  2
    labels = Annotations.from_dense([[0, 1, -1], [1, 1, -1], [1, -1, -1], [0, 0, -1]])
    confusions, counts = metrics.annotator_confusions_from_gold(labels, np.array([0, 1, 0, -1]))
    np.testing.assert_array_equal(counts, [[2, 1], [1, 1], [0, 0]])
    # annotator 0: of two tasks of truth 0, said 0 once and 1 once
    np.testing.assert_allclose(confusions, [[[0.5, 0.5], [0, 1]], [[0, 1], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]])


def test_true_confusions_refuse_gold_of_another_shape_and_regressions():
    labels = Annotations.from_dense([[0, 1], [1, 1]])
    with pytest.raises(ValueError, match=r"2 rows \(one per task\), got shape \(3,\)"):
        metrics.annotator_confusions_from_gold(labels, np.zeros(3, dtype=int))
    numbers = Annotations.from_dense([[0.5, np.nan]], kind="regression")
    with pytest.raises(ValueError, match="no confusion matrices"):
        metrics.annotator_confusions_from_gold(numbers, np.zeros(1))


def test_recovery_weighs_rows_by_how_often_they_were_seen():
    true = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.8, 0.2], [0.0, 1.0]]])
    learned = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.6, 0.4], [0.3, 0.7]]])
    recovery = metrics.confusion_recovery(true, learned, weights=np.array([[3, 1], [2, 0]]))
    # rows' errors: .1, 0 and .2, .3
    assert recovery.mean_absolute_error == pytest.approx((3 * 0.1 + 0 + 2 * 0.2) / 6)
    np.testing.assert_allclose(recovery.annotator_errors, [0.3 / 4, 0.2])
    weight = [3, 1, 2, 0]
    expected = np.cov([1, 0.5, 0.8, 1], [0.9, 0.5, 0.6, 0.7], fweights=weight)
    assert recovery.diagonal_correlation == pytest.approx(expected[0, 1] / np.sqrt(expected[0, 0] * expected[1, 1]))
    plain = metrics.confusion_recovery(true, learned)
    assert plain.mean_absolute_error == pytest.approx(0.15)
    per_annotator = metrics.confusion_recovery(true, learned, weights=np.array([1.0, 0.0]))
    assert per_annotator.mean_absolute_error == pytest.approx(0.05)
    assert per_annotator.annotator_errors[1] == 0


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.zeros((3, 2)), "not all 0"), (-np.ones((3, 2)), "not be negative"), (np.ones(5), "weights must have shape")],
)
def test_recovery_refuses_weights_that_mean_nothing(weights, message):
    same = np.stack([np.eye(2)] * 3)
    with pytest.raises(ValueError, match=message):
        metrics.confusion_recovery(same, same, weights)
