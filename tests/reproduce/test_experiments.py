"""The functions behind the experiments beside the papers' tables, by numbers from elsewhere."""

import numpy as np
import pytest

from crowdzoo.data.annotations import Annotations


def test_a_ranking_finds_wrong_votes_by_the_pairs_that_it_orders(reproduce):
    finds = reproduce("waum_variants").finds_wrong
    wrong = np.array([0.0, 0.0, 1.0, 1.0])  # whether the vote is right
    assert finds(np.array([3.0, 2.0, 1.0, 0.0]), wrong) == 1.0
    assert finds(np.array([0.0, 1.0, 2.0, 3.0]), wrong) == 0.0
    assert finds(np.array([0.0, 2.0, 1.0, 3.0]), wrong) == 0.25  # one pair of four
    assert finds(np.ones(4), wrong) == 0.5
    assert finds(np.array([2.0, 1.0]), np.array([0.25, 1.0])) == pytest.approx(0.9)  # half of a tie with itself


def test_simulated_annotators_have_the_sensitivities_that_were_asked_for(reproduce):
    module = reproduce("crowd_layer")
    counts = sum(module.label_counts(data.annotations, data.gold) for data in map(module.five_annotators, range(4)))
    shares = counts / counts.sum(axis=2, keepdims=True)  # 1,660 tasks of one class, 1,340 of the other
    np.testing.assert_allclose(shares[:, 1, 1], [0.705, 0.796, 0.499, 0.195, 0.898], atol=0.05)
    np.testing.assert_allclose(shares[:, 0, 0], [0.591, 0.898, 0.497, 0.899, 0.900], atol=0.05)


def test_tasks_that_are_pruned_are_not_trained_on(reproduce):
    """Their targets would be rows of zeros, for which Keras' gradient on TensorFlow is wrong."""
    module, seen = reproduce("waum_variants"), {}

    class Trainer:
        def fit(self, x, targets, epochs, seed):
            seen.update(x=x, targets=targets)
            return self

        def predict(self, x, verbose):
            return np.eye(2)[[0] * len(x)]

    tasks, annotators = np.divmod(np.arange(60), 3)
    annotations = Annotations.from_arrays(tasks, annotators, tasks % 2)
    x = np.arange(20, dtype="float32")[:, None]
    crowd = module.Crowd(x, annotations, np.arange(20) % 2, x[:4], np.array([0, 0, 0, 1]))
    badness = np.zeros(20)
    badness[[3, 8]] = 1.0
    assert module._trained_without(crowd, badness, Trainer(), 0) == 0.75
    assert seen["x"][:, 0].tolist() == [each for each in range(20) if each not in (3, 8)]
    np.testing.assert_allclose(seen["targets"].sum(axis=1), 1)
