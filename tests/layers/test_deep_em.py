"""DeepEM against the equations of its EM, written out in NumPy with loops and float64."""

import dataclasses

import keras
import numpy as np
import pytest
from drawn_crowds import labels_of
from keras import ops

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.layers.deep_em import DeepEM
from crowdzoo.models import CrowdModel, FeatureClassifier
from crowdzoo.training.expectation import answers_of

D, K, R = 4, 3, 5
# One label each of annotators 3; none of annotator 4. Class 2 nobody says. Task 1 is a tie, task 3 has no label.
DENSE = np.array([[0, 0, 1, -1, -1], [0, 1, -1, -1, -1], [1, 1, 0, 1, -1], [-1] * 5, [1, -1, 1, -1, -1]])


# === The equations ===


def prior_matrix(prior, diagonal):
    return [[prior * (diagonal if k == said else (1 - diagonal) / (K - 1)) for said in range(K)] for k in range(K)]


def em(x, dense, kernel, bias, *, epochs, prior, diagonal, rate, every=1, answers=None):
    """Epochs of the EM with softmax regression as its network, a step of gradient descent on all tasks an epoch.

    `answers` [N, R, K] are the annotators' distributions; without them labels are certain.
    """
    x, kernel, bias = (np.array(array, "float64") for array in (x, kernel, bias))
    tasks = [i for i in range(len(dense)) if max(dense[i]) >= 0]
    labels = {i: [(r, label) for r, label in enumerate(dense[i]) if label >= 0] for i in tasks}
    answers = np.eye(K)[dense] if answers is None else answers
    q = {i: np.mean([answers[i, r] for r, _ in labels[i]], axis=0) for i in tasks}
    old = np.ones((R, K, K))
    losses, likelihoods, confusions = [], [], None

    def estimate(i):
        odds = np.exp(x[i] @ kernel + bias)
        return odds / odds.sum()

    for epoch in range(epochs):
        if epoch % every == 0:
            if epoch > 0:
                likelihood = 0.0
                for i in tasks:
                    odds = estimate(i)
                    for r, _ in labels[i]:
                        odds = odds * (confusions[r] @ answers[i, r])  # of the round before
                    q[i] = odds / odds.sum()
                    likelihood += np.log(odds.sum())
                likelihoods += [likelihood] * every
            confusions = np.array([prior_matrix(prior, diagonal)] * R)
            for i in tasks:
                for r, _ in labels[i]:
                    for k in range(K):
                        meant = answers[i, r] * old[r, k]
                        confusions[r, k] += q[i][k] * meant / meant.sum()
            confusions /= confusions.sum(axis=2, keepdims=True)
            old = confusions
        loss, by_kernel, by_bias = 0.0, np.zeros_like(kernel), np.zeros_like(bias)
        for i in tasks:
            p = estimate(i)
            for k in range(K):
                said = sum(np.log(confusions[r, k, label]) for r, label in labels[i])
                loss -= q[i][k] * (np.log(p[k]) + said) / len(tasks)
            by_kernel += np.outer(x[i], p - q[i]) / len(tasks)
            by_bias += (p - q[i]) / len(tasks)
        losses.append(loss)
        kernel -= rate * by_kernel
        bias -= rate * by_bias
    return {"kernel": kernel, "bias": bias, "confusions": confusions, "loss": losses, "log_likelihood": likelihoods}


@pytest.mark.parametrize(
    ("every", "confidence"),
    [(2, False), *(pytest.param(1, confidence, marks=pytest.mark.slow) for confidence in (False, True))],
)
def test_whole_rounds_are_the_equations(every, confidence):
    settings = {"prior": 0.7, "diagonal": 0.6}
    x = np.random.default_rng(0).normal(size=(len(DENSE), D)).astype("float32")
    sure = np.random.default_rng(1).uniform(0.2, 1.0, DENSE.shape) if confidence else np.ones(DENSE.shape)
    answers = np.where(np.eye(K)[DENSE] == 1, sure[..., None], (1 - sure[..., None]) / (K - 1))
    labels = Annotations.from_dense(DENSE, classes=np.arange(K))
    annotations = dataclasses.replace(labels, confidence=sure[labels.task_ids, labels.annotator_ids])
    keras.utils.set_random_seed(0)
    base = keras.Sequential([keras.Input((D,)), keras.layers.Dense(K, activation="softmax")])
    model = CrowdModel(base, DeepEM(R, epochs_per_round=every, confidence=confidence, **settings))
    model.compile(keras.optimizers.SGD(0.5))
    expected = em(x, DENSE, *base.get_weights(), epochs=4, rate=0.5, every=every, answers=answers, **settings)
    history = model.fit(x, annotations, epochs=4, batch_size=32, verbose=0).history
    if not confidence:
        np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-4)
    np.testing.assert_allclose(history["log_likelihood"], expected["log_likelihood"], rtol=1e-4)
    found = model.annotator_confusions()
    np.testing.assert_allclose(found, expected["confusions"], rtol=1e-3, atol=1e-5)
    for weight, name in zip(base.get_weights(), ("kernel", "bias"), strict=True):
        np.testing.assert_allclose(weight, expected[name], rtol=1e-3, atol=1e-5)
    # annotator 4 has no labels and keeps the prior; 3 has one label and is pulled from it
    np.testing.assert_allclose(found[4], np.array(prior_matrix(1, 0.6)), rtol=1e-5)
    odds = np.float64(model.predict(x, verbose=0))  # and the posteriors of the trained model
    for i, r in np.argwhere(DENSE >= 0):
        odds[i] *= found[r] @ answers[i, r]
    wanted = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.posteriors(x, annotations), wanted, rtol=1e-4, atol=1e-6)
    # annotations without a confidence are labels
    assert (np.abs(model.posteriors(x, labels) - wanted).max() > 0.05) == confidence


def test_confidence_needs_a_column_in_memory():
    model = CrowdModel(FeatureClassifier(D, K), DeepEM(R, confidence=True))
    annotations = Annotations.from_dense(DENSE, classes=np.arange(K))
    with pytest.raises(DataError, match="needs annotations with a column `confidence`"):
        model.fit(np.zeros((len(DENSE), D), "float32"), annotations, verbose=0)
    with pytest.raises(DataError, match="DeepEM: confidence=True needs annotations in memory"):
        answers_of(object(), K, "DeepEM")


@pytest.mark.parametrize(("prior", "diagonal"), [(0.1, 0.6), (3.0, 0.9)])
def test_the_m_step_adds_as_many_labels_as_the_prior_says_to_every_row(prior, diagonal):
    layer = DeepEM(R, prior=prior, diagonal=diagonal)
    layer.build((None, K))
    counts = np.random.default_rng(0).integers(5, size=(R, K, K)).astype("float64")
    counts[4] = 0
    layer.update(counts)
    for r in range(R):
        for k in range(K):
            row = counts[r, k] + prior_matrix(prior, diagonal)[k]
            np.testing.assert_allclose(layer.annotator_confusions()[r, k], row / row.sum(), rtol=1e-4)


# === Training ===

N, ANNOTATORS = 600, 7


def a_crowd(seed=0):
    """Features, truth, confusions of six annotators, the second always wrong, and labels; the seventh says nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, D)).astype("float32")
    truth = x[:, :K].argmax(axis=1)
    confusions = np.array([rng.dirichlet(np.ones(K), K) * 0.3 + 0.7 * np.eye(K) for _ in range(6)])
    confusions[1] = 0.1 / 3 + 0.9 * np.eye(K)[[1, 2, 0]]
    dense = labels_of(truth, confusions, 4, ANNOTATORS, rng)
    return x, truth, confusions, Annotations.from_dense(dense, classes=np.arange(K))


def a_model(seed=0, dropout=0.0, annotators=ANNOTATORS, **more):
    keras.utils.set_random_seed(seed)
    model = CrowdModel(FeatureClassifier(D, K, hidden=(16,), dropout=dropout), DeepEM(annotators, **more))
    model.compile(keras.optimizers.Adam(0.02))
    return model


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_validation_and_evaluation_are_the_cross_entropy_of_the_labels():
    x, _, _, annotations = a_crowd()
    model = a_model()
    history = model.fit(x, annotations, validation_data=(x, annotations), epochs=2, batch_size=1000, verbose=0).history
    assert len(history["val_loss"]) == 2
    answers = np.exp(ops.convert_to_numpy(model.crowd(model.base(x))))
    i, r = annotations.task_ids, annotations.annotator_ids
    expected = -np.log(answers[i, r, annotations.labels]).mean()
    np.testing.assert_allclose(history["val_loss"][-1], expected, rtol=1e-4)
    np.testing.assert_allclose(model.evaluate(x, annotations, batch_size=1000, verbose=0), expected, rtol=1e-4)
