"""Crowds on which fixed priors, or classes taken as equally frequent, once lost to the plain vote."""

import functools
import warnings

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import MACE, MajorityVote, OneCoinDawidSkene


@functools.cache
def crowd(num_tasks, num_annotators, frequencies, redundancy, accuracy, tail, seed):
    """Annotators of whom a few do most of the tasks, each right with a probability of its own, and true classes.

    Args:
        num_tasks: N.
        num_annotators: of whom to draw.
        frequencies: of the classes.
        redundancy: annotations a task.
        accuracy: parameters of the Beta distribution of being right.
        tail: annotator r is drawn with a weight of 1 / (r + 1)**tail.
        seed: of all draws.
    """
    rng = np.random.default_rng(seed)
    num_classes = len(frequencies)
    truth = rng.choice(num_classes, num_tasks, p=np.array(frequencies) / sum(frequencies))
    weights = (1.0 + np.arange(num_annotators)) ** -tail
    chosen = [rng.choice(num_annotators, redundancy, False, weights / weights.sum()) for _ in range(num_tasks)]
    annotators, tasks = np.concatenate(chosen), np.repeat(np.arange(num_tasks), redundancy)
    right = rng.random(len(tasks)) < rng.beta(*accuracy, num_annotators)[annotators]
    slips = (truth[tasks] + rng.integers(1, num_classes, len(tasks))) % num_classes
    return Annotations.from_arrays(tasks, annotators, np.where(right, truth[tasks], slips)), truth


def rare_class(seed=0):
    """12 % are of the second class, and annotators err on both classes alike."""
    return crowd(2000, 150, (0.88, 0.12), 5, (6, 2), 1.0, seed)


def fitted(aggregator, annotations):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return aggregator.fit(annotations)


@pytest.mark.parametrize("kind", [MACE, OneCoinDawidSkene])
def test_a_rare_class_is_found_where_frequencies_are_learnt(kind):
    annotations, truth = rare_class()
    vote = MajorityVote().fit(annotations).accuracy(truth)
    learnt, equal = (fitted(kind(**given), annotations) for given in ({}, {"class_prior": "uniform"}))
    assert learnt.accuracy(truth) > vote
    assert learnt.accuracy(truth) > equal.accuracy(truth)
    assert abs(learnt.class_prior[1] - 0.12) < abs(equal.class_prior[1] - 0.12) / 2 + 0.01
    assert (np.diff(learnt.history) >= -1e-9 * abs(learnt.history[0])).all()


def test_half_way_between_shares_and_equal_frequencies():
    annotations, _ = rare_class()
    result = fitted(OneCoinDawidSkene(tol=1e-12, max_iter=1000), annotations)
    np.testing.assert_allclose(result.class_prior, (result.posteriors.mean(axis=0) + 0.5) / 2, atol=1e-6)
