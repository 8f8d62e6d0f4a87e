"""OrdinalThresholds: its likelihood in loops, recovery of a simulated crowd, and both kinds of annotations."""

import numpy as np
import pytest

from crowdzoo.aggregation import Aggregation, MajorityVote, OrdinalThresholds
from crowdzoo.aggregation.ratings.ordinal_thresholds import GRID, PRIOR, _Model
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")

K = 5
THRESHOLDS = np.array([-1.2, -0.4, 0.4, 1.2])


def crowd(num_tasks=300, num_annotators=10, redundancy=5, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=num_tasks)
    bias = rng.normal(0, 0.6, num_annotators)
    sharpness = np.exp(rng.normal(1.2, 0.5, num_annotators))
    dense = np.full((num_tasks, num_annotators), -1)
    for i in range(num_tasks):
        for r in rng.permutation(num_annotators)[:redundancy]:
            noise = rng.logistic() / sharpness[r]
            dense[i, r] = np.searchsorted(THRESHOLDS, hidden[i] + bias[r] + noise)
    return dense, np.searchsorted(THRESHOLDS, hidden), bias, sharpness


DENSE, TRUTH, BIAS, SHARPNESS = crowd()
CLASSES = Annotations.from_dense(DENSE, classes=np.arange(K))


def test_the_likelihood_is_a_sum_over_the_hidden_number():
    dense = DENSE[:4]
    annotations = Annotations.from_dense(dense, classes=np.arange(K))
    model = _Model(THRESHOLDS, BIAS, np.log(SHARPNESS))
    posterior, likelihood = OrdinalThresholds()._posterior(model, annotations, annotations.labels, K)
    expected = 0.0
    edges = [-np.inf, *THRESHOLDS, np.inf]
    for i in range(4):
        joint = PRIOR.copy()
        for g, z in enumerate(GRID):
            for r in np.flatnonzero(dense[i] >= 0):
                upper, lower = (
                    1 / (1 + np.exp(-SHARPNESS[r] * (edges[dense[i, r] + o] - z - BIAS[r]))) for o in (1, 0)
                )
                joint[g] *= upper - lower
        expected += np.log(joint.sum())
        np.testing.assert_allclose(posterior[i], joint / joint.sum(), rtol=1e-6, atol=1e-9)
    assert likelihood == pytest.approx(expected, rel=1e-8)


def test_a_simulated_crowd_is_recovered_better_than_by_vote():
    found = OrdinalThresholds().fit(CLASSES)
    assert isinstance(found, Aggregation)
    assert np.diff(found.history).min() > -1e-8
    assert found.converged
    np.testing.assert_allclose(found.posteriors.sum(axis=1), 1)
    np.testing.assert_allclose(found.confusions.sum(axis=2), 1)
    vote = MajorityVote().fit(CLASSES).expected_accuracy(TRUTH)
    assert found.expected_accuracy(TRUTH) > vote + 0.05
    assert np.corrcoef(np.log(found.reliability), np.log(SHARPNESS))[0, 1] > 0.85


def test_whole_number_ratings_have_estimates_and_anchored_biases():
    dense = np.where(DENSE < 0, np.nan, DENSE + 1.0)
    found = OrdinalThresholds(low=1, high=5).fit(Annotations.from_dense(dense, kind="regression"))
    mean = np.nanmean(dense, axis=1)
    assert np.abs(found.estimates - TRUTH - 1).mean() < 0.85 * np.abs(mean - TRUTH - 1).mean()
    assert np.corrcoef(found.biases, BIAS)[0, 1] > 0.95
    assert abs(found.biases @ found.annotations_per_annotator) < 1e-9
    assert found.standard_errors.min() >= 0
    # the same labels as classes are the same fit
    np.testing.assert_allclose(found.history, OrdinalThresholds().fit(CLASSES).history, rtol=1e-9)


def test_the_first_thresholds_say_each_class_as_often_as_it_was_said():
    shares = np.array([0.1, 0.4, 0.3, 0.2])
    labels = np.repeat(np.arange(4), (200 * shares).astype(int))  # one a task, so its likelihood is the class's share
    history = OrdinalThresholds().fit(Annotations.from_dense(labels[:, None])).history
    assert history[0] / 200 == pytest.approx(shares @ np.log(shares), rel=0.005)


def test_a_class_that_nobody_said_and_a_single_class_are_no_trouble():
    found = OrdinalThresholds().fit(Annotations.from_dense(np.where(DENSE == 2, 3, DENSE)[:60], classes=np.arange(K)))
    assert np.isfinite(found.posteriors).all()
    assert np.bincount(found.labels, minlength=K)[2] <= 3
    single = OrdinalThresholds().fit(Annotations.from_dense(np.zeros((3, 2), int)))
    np.testing.assert_allclose(single.posteriors, np.ones((3, 1)), rtol=1e-12)


def test_what_has_no_levels_is_refused():
    many = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(DataError, match=r"at most 100 different ratings, got 120"):
        OrdinalThresholds().fit(Annotations.from_dense(many, kind="regression"))
    with pytest.raises(ConfigError, match=r"bias_deviation must be a number from 0\.001"):
        OrdinalThresholds(bias_deviation=0)
    with pytest.raises(ConfigError, match=r"sharpness_deviation must be a number from 0\.001"):
        OrdinalThresholds(sharpness_deviation=-1)
