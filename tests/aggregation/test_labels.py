import numpy as np
import pytest

from crowdzoo import DataError
from crowdzoo.aggregation.engine.labels import choose_labels


@pytest.mark.parametrize("ties", ["lowest", "random", "uniform"])
def test_the_most_probable_class_wins(ties):
    posteriors = np.array([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0]])
    np.testing.assert_array_equal(choose_labels(posteriors, np.array([3, 9]), ties), [1, 0])


def test_what_differs_by_rounding_is_a_tie():
    posteriors = np.array([[0.5 - 1e-13, 0.5 + 1e-13]])
    assert choose_labels(posteriors, np.array([0]), "lowest") == [0]


def test_draws_are_even_over_tasks_and_over_seeds():
    posteriors = np.full((6000, 3), 1 / 3)
    over_tasks = choose_labels(posteriors, np.arange(6000), seed=7)
    over_seeds = [choose_labels(posteriors[:1], np.array([11]), seed=seed)[0] for seed in range(6000)]
    for labels in (over_tasks, over_seeds):  # standard deviation .006
        np.testing.assert_allclose(np.bincount(labels, minlength=3) / 6000, 1 / 3, atol=0.03)


def test_draws_of_neighbouring_seeds_are_unrelated():
    posteriors = np.full((6000, 2), 0.5)
    first, second = (choose_labels(posteriors, np.arange(6000), seed=seed) for seed in (0, 1))
    assert abs((first == second).mean() - 0.5) < 0.03


def test_rows_and_tasks_must_match():
    with pytest.raises(DataError, match="2 rows of posteriors for 1 tasks"):
        choose_labels(np.ones((2, 1)), np.array([0]))
