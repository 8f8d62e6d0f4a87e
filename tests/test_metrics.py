"""Metrics: expected numbers by hand, and scikit-learn where it has the same one."""

import numpy as np
import pytest
import sklearn.metrics

from crowdzoo import metrics


def test_accuracy_leaves_out_unknown_truths():
    assert metrics.accuracy(np.array([0, 1, -1, 2]), np.array([0, 2, 1, 2])) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("metric", "arguments", "message"),
    [
        (metrics.accuracy, ([-1], [0]), "truth of no task"),
        (metrics.accuracy, ([0, 1], [[0], [1]]), r"same shape, got \(2,\) and \(2, 1\)"),
        (metrics.expected_calibration_error, ([0], [[1.0, 0.0]], 0), "bins must be at least 1"),
        (metrics.expected_calibration_error, ([0], [1.0]), "probabilities"),
        (metrics.expected_calibration_error, ([-1], [[1.0, 0.0]]), "truth of no task"),
        (metrics.r2_score, ([0.0] * 3, [[0.0]] * 3), "same shape"),
        (metrics.mean_absolute_error, ([np.nan], [0.0]), "truth of no task"),
    ],
)
def test_what_cannot_be_counted_is_refused(metric, arguments, message):
    with pytest.raises(ValueError, match=message):
        metric(*map(np.array, arguments))


def test_calibration_error_is_the_gap_per_bin():
    probabilities = np.array([[0.95, 0.05], [0.95, 0.05], [0.3, 0.7], [0.6, 0.4], [0.6, 0.4]])
    gold = np.array([0, 1, 1, 0, -1])
    # bins of 0.1: two at .95, one of them right; one at .7, right; one at .6, right
    expected = (2 * abs(0.5 - 0.95) + abs(1 - 0.7) + abs(1 - 0.6)) / 4
    assert metrics.expected_calibration_error(gold, probabilities, bins=10) == pytest.approx(expected)


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
