"""Annotators' biases against gold, and how well learnt ones follow them."""

import numpy as np
import pytest

from crowdzoo.data.annotations import Annotations
from crowdzoo.metrics import annotator_biases_from_gold, bias_correlation

NAN = np.nan
DENSE = np.array([[1.0, 3.0, NAN], [2.0, NAN, NAN], [4.0, 9.0, NAN]])
ANNOTATIONS = Annotations.from_dense(DENSE, kind="regression")


def test_true_biases_are_mean_differences_where_the_truth_is_known():
    biases, counts = annotator_biases_from_gold(ANNOTATIONS, np.array([0.5, 1.0, NAN]))
    np.testing.assert_allclose(biases, [0.75, 2.5, 0.0])
    assert counts.tolist() == [2, 1, 0]


def test_only_annotators_with_enough_ratings_count_and_a_constant_does_not():
    true, counts = np.array([0.0, 1.0, 2.0, -50.0]), np.array([20, 25, 30, 19])
    assert bias_correlation(true, np.array([7.0, 8.0, 9.0, 100.0]), counts) == pytest.approx(1.0)
    assert bias_correlation(true, np.array([1.0, 1.0, 1.0, 0.0]), counts) == 0.0
    learned = np.array([1.0, 0.5, 3.0, 2.0])
    assert bias_correlation(true, learned, counts, at_least=1) == pytest.approx(np.corrcoef(true, learned)[0, 1])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="only ratings have biases"):
        annotator_biases_from_gold(Annotations.from_dense(np.array([[0, 1]])), np.zeros(1))
    with pytest.raises(ValueError, match=r"gold must have shape \(3,\), one number a task, got \(2,\)"):
        annotator_biases_from_gold(ANNOTATIONS, np.zeros(2))
    with pytest.raises(ValueError, match="1 annotators have 20 ratings or more; it takes two"):
        bias_correlation(np.zeros(2), np.zeros(2), np.array([20, 3]))
    with pytest.raises(ValueError, match="must have shape"):
        bias_correlation(np.zeros(2), np.zeros(2), np.array([20]))
