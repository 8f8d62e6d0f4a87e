"""Intervals of the tables contain the expected value as often as they say, also where runs are not independent."""

import numpy as np
import pytest
from scipy import stats

TIMES = 2000


@pytest.fixture(scope="module")
def intervals(reproduce):
    return reproduce("intervals")


def coverage(found, truth):
    return np.mean([abs(mean - truth) <= half for mean, half in found])


def test_one_set_of_independent_runs_has_students_interval(intervals):
    values = [81.2, 83.0, 79.9, 82.4, 80.5]
    low, high = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    mean, half = intervals.mean_interval([intervals.Runs(values)])
    assert (mean - half, mean + half) == pytest.approx((low, high))


@pytest.mark.slow
def test_fifths_of_one_set_of_tasks_are_wider_than_students_interval_and_hold(intervals):
    """Two learners of a mean, ridge and none, by five-fold cross-validation of 40 tasks."""
    rng, tasks, folds = np.random.default_rng(0), 40, 5

    def differences(y):
        order = rng.permutation(len(y)).reshape(folds, -1)
        found = []
        for test in order:
            train = np.setdiff1d(order, test)
            errors = [np.mean((y[test] - guess) ** 2) for guess in (y[train].mean(), 0.0)]
            found.append(errors[0] - errors[1])
        return found

    runs = [differences(rng.normal(0.5, 1.0, tasks)) for _ in range(TIMES)]
    # (mean of n - y)² - y²: variance of the mean of 32, minus 0.5²
    truth = 1 / 32 - 0.25
    naive = coverage([intervals.mean_interval([intervals.Runs(one)]) for one in runs], truth)
    corrected = coverage([intervals.mean_interval([intervals.Runs(one, overlap=1 / 4)]) for one in runs], truth)
    assert naive < 0.93 < corrected


@pytest.mark.slow
def test_the_bootstrap_over_tasks_holds_for_other_test_tasks_where_the_seeds_do_not(intervals):
    """Two classifiers that are right with .8 and .75, by three seeds that agree on nearly every task."""
    rng, tasks = np.random.default_rng(3), 300
    by_tasks, by_seeds = [], []
    for _ in range(300):
        shared = rng.random((2, tasks))
        hits = (shared[:, None] + 0.02 * rng.normal(size=(2, 3, tasks))) < np.array([0.8, 0.75])[:, None, None]
        mean, low, high = intervals.bootstrap(*hits, draws=500, seed=rng.integers(1000))
        by_tasks.append((mean, low, high))
        by_seeds.append(intervals.mean_interval([intervals.Runs(hits[0].mean(axis=1) - hits[1].mean(axis=1))]))
    assert np.mean([low <= 0.05 <= high for _, low, high in by_tasks]) == pytest.approx(0.95, abs=0.035)
    assert coverage(by_seeds, 0.05) < 0.6


def test_a_run_alone_has_no_interval_and_equal_runs_have_one_of_no_width(intervals):
    assert np.isnan(intervals.mean_interval([intervals.Runs([1.0, 2.0]), intervals.Runs([3.0])])[1])
    assert intervals.mean_interval([intervals.Runs([2.0, 2.0, 2.0])]) == (2.0, 0.0)
    assert intervals.shown([intervals.Runs([1.0, 3.0])]) == "+2.0 ± 12.7"
    assert intervals.shown([intervals.Runs([3.0])]) == "+3.0"


def test_a_cell_of_the_bootstrap_is_in_points_and_hits_are_saved_as_digits(intervals):
    hits = np.array([True, False, True, True])
    assert intervals.packed(hits) == "1011"
    assert intervals.unpacked("1011").tolist() == [1, 0, 1, 1]
    assert intervals.shown_bootstrap([hits], [hits]) == "+0.0 [+0.0, +0.0]"
    mean, low, high = intervals.bootstrap([hits], [np.zeros(4)], seed=1)
    assert (mean, high) == (0.75, 1.0)
    # of four draws none to four are wrong, with probability 1/4 each: P(2 or more wrong) = .26, P(3 or more) = .05
    assert low == 0.25
