"""WAUM, the training method: its two trainings against what they are said to be."""

import dataclasses

import keras
import numpy as np
import pytest
from drawn_crowds import simulate_annotations

from crowdzoo.aggregation import DawidSkene
from crowdzoo.layers.waum import WAUM, VotesCrossentropy
from crowdzoo.models import CrowdModel, FeatureClassifier
from crowdzoo.quality.aum import label_margins, label_trust, weighted_margins
from crowdzoo.training.data import ArrayData

K, R = 3, 8
P = np.random.default_rng(0).dirichlet(np.ones(K), size=4).astype("float32")


# === The loss of both trainings ===


def test_the_loss_is_the_mean_over_votes_and_tasks_without_any_are_not_counted():
    votes = np.array([[2, 1, 0], [0, 0, 0], [0, 0, 1], [1, 1, 1]], "float32")
    expected = -sum(votes[i, k] * np.log(P[i, k]) for i in range(4) for k in range(K)) / 7
    loss = VotesCrossentropy()
    assert float(loss(votes, P)) == pytest.approx(expected, rel=1e-5)
    assert float(loss(votes[[0, 2, 3]], P[[0, 2, 3]])) == pytest.approx(expected, rel=1e-5)
    # it is what every (task, label) pair would cost on its own
    pairs = [(i, k) for i in range(4) for k in range(K) for _ in range(int(votes[i, k]))]
    rows, labels = np.array(pairs).T
    alone = keras.losses.SparseCategoricalCrossentropy()(labels, P[rows])
    assert float(loss(votes, P)) == pytest.approx(float(alone), rel=1e-5)


def test_a_batch_without_votes_costs_nothing_and_a_certain_mistake_is_finite():
    loss = VotesCrossentropy()
    assert float(loss(np.zeros((4, K), "float32"), P)) == 0
    certain = np.eye(K, dtype="float32")
    assert np.isfinite(float(loss(np.roll(certain, 1, axis=0), certain)))


# === fit ===


def a_crowd(seed=0, number=200, bad=20):
    """Three clouds; of the first `bad` tasks nobody has any idea. Task 50 is unlabelled, annotator 7 says nothing."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(K, size=number)
    x = (np.array([[0, 0], [5, 0], [0, 5]])[gold] + rng.normal(size=(number, 2))).astype("float32")
    confusions = np.tile(np.full((K, K), 0.1) + 0.7 * np.eye(K), (R - 1, 1, 1))
    confusions[0] = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]  # always slips to the next class
    redundancy = np.where(np.arange(number) == 50, 0, 3)
    found = simulate_annotations(gold, confusions, redundancy, seed)
    labels = np.where(found.task_ids < bad, rng.integers(K, size=len(found)), found.labels)
    return x, gold, dataclasses.replace(found, labels=labels, annotators=np.arange(R)), confusions


def a_base(dropout=0.0):
    return FeatureClassifier(2, K, hidden=(12,), dropout=dropout)


def a_model(seed=0, dropout=0.0, rate=0.02, **settings):
    keras.utils.set_random_seed(seed)
    model = CrowdModel(a_base(dropout), WAUM(R, **{"prune": 0.1, "margin_epochs": 2, **settings}))
    model.compile(keras.optimizers.Adam(rate))
    return model


def fitted(x, annotations, epochs=5, seed=0, dropout=0.0, shuffle=True, **settings):
    model = a_model(seed, dropout, **settings)
    model.fit(x, annotations, epochs=epochs, batch_size=64, seed=seed, shuffle=shuffle, verbose=0)
    return model


@pytest.mark.parametrize("denominator", ["trust", pytest.param("redundancy", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("eager")
def test_a_base_that_does_not_learn_gives_the_equations_of_its_probabilities_in_evaluation_mode(denominator):
    x, _, annotations, _ = a_crowd()
    model = fitted(x, annotations, epochs=1, dropout=0.5, rate=0.0, denominator=denominator, smoothing=0.02)
    probabilities = model.base.predict(x, verbose=0).astype("float64")  # dropout is off
    found = model.crowd.scores
    confusions = DawidSkene(prior=0.02, diagonal=0.0).fit(annotations).confusions
    columns = found.annotations.task_ids, found.annotations.annotator_ids, found.annotations.labels
    np.testing.assert_allclose(found.aum, label_margins(probabilities, columns[2], columns[0]), atol=1e-6)
    np.testing.assert_allclose(found.trust, label_trust(confusions, probabilities, *columns[:2]), atol=1e-5)
    expected = weighted_margins(found.aum, found.trust, columns[0], len(x), denominator)
    np.testing.assert_allclose(found.waum, expected, atol=1e-6)
    assert np.isnan(found.waum[50])


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_the_second_training_begins_anew_on_the_soft_labels_of_the_kept_tasks_alone():
    x, _, annotations, _ = a_crowd()
    model = fitted(x, annotations, shuffle=False)
    gone = model.crowd.scores.prunable(0.1)
    assert gone.sum() == 20  # a tenth of 199
    kept = annotations.select_tasks(~gone)
    confusions = DawidSkene(prior=0.01, diagonal=0.0).fit(kept).confusions
    soft = np.zeros((len(x), K), "float32")
    for i, r, k in zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True):
        soft[i, k] += 0 if gone[i] else confusions[r, k, k]
    soft /= np.maximum(soft.sum(axis=1, keepdims=True), 1e-9)

    # by hand: a fresh base and optimizer, and whatever the pruned tasks look like
    nonsense = np.where(gone[:, None], 1e3, x).astype("float32")
    keras.utils.set_random_seed(0)
    alone = CrowdModel(a_base())
    alone.compile(keras.optimizers.Adam(0.02), VotesCrossentropy())
    batches = ArrayData(nonsense, annotations).batches(64, 0, shuffle=False, inputs=(), targets=soft)
    history = alone.fit_batches(batches, epochs=5, verbose=0)
    np.testing.assert_allclose(model.predict(x, verbose=0), alone.predict(x, verbose=0), atol=1e-5)
    assert int(model.optimizer.iterations) == int(alone.optimizer.iterations) == 20
    assert history.history["loss"][-1] < history.history["loss"][0]
    np.testing.assert_allclose(model.annotator_confusions(), confusions, atol=1e-5)
