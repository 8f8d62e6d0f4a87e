"""The score without gold for callbacks and tuners: it ranks models as gold does, and says what it needs."""

import functools

import keras
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import CrowdModel, HeldOutAnnotations
from crowdzoo.training.held_out_annotations import log_likelihoods, scores
from crowdzoo.training.held_out_ratings import SPREADS, RatingEvidence, rating_scores

K, N = 10, 600
LOOKS_LIKE = {1: 7, 3: 8, 4: 9}
RNG = np.random.default_rng(0)
GOLD = RNG.integers(K, size=N)


@functools.cache
def a_crowd(annotators=30, each=4):
    """Twelve right in .8, twelve who mix three pairs of classes up in .58, six at random; four answer a task."""
    said = np.full((N, annotators), -1)
    for task, truth in enumerate(GOLD):
        for annotator in RNG.choice(annotators, each, replace=False):
            right = annotator < 24 and RNG.random() < 0.8
            label = truth if right else RNG.integers(K)
            if 12 <= annotator < 24 and truth in LOOKS_LIKE and RNG.random() < 0.58:
                label = LOOKS_LIKE[truth]
            said[task, annotator] = label
    return Annotations.from_dense(said, classes=np.arange(K))


@pytest.mark.usefixtures("eager")
def test_the_score_goes_to_the_history_where_callbacks_find_it():
    annotations, tasks = a_crowd(), np.arange(N)
    x = np.eye(K)[GOLD] + np.random.default_rng(3).normal(size=(N, K))
    base = keras.Sequential([keras.Input((K,)), keras.layers.Dense(K, "softmax")])
    model = CrowdModel(base, CrowdsourcedLayer(30))
    score = HeldOutAnnotations(x[500:], annotations, tasks=tasks[500:])
    stop = keras.callbacks.EarlyStopping("held_out_log_likelihood", mode="max", patience=9, restore_best_weights=True)
    train = annotations.select_tasks(tasks[:500])
    history = model.fit(
        x[:500], train, tasks=tasks[:500], epochs=3, batch_size=250, callbacks=[score, stop], verbose=0
    ).history
    likelihoods = log_likelihoods(annotations)[500:]
    expected = scores(model.predict(x[500:], verbose=0), likelihoods).sum() / annotations.redundancy[500:].sum()
    assert max(history["held_out_log_likelihood"]) == pytest.approx(expected)


def test_what_the_score_needs_is_said():
    annotations, x = a_crowd(), np.zeros((1, 1))
    with pytest.raises(DataError, match="task 600 is not in the annotations"):
        HeldOutAnnotations(x, annotations, tasks=[600])
    plain = HeldOutAnnotations(x.astype(int), annotations, tasks=[0])
    plain.set_model(keras.Sequential([keras.Input((1,)), keras.layers.RepeatVector(30)]))  # answers of each annotator
    with pytest.raises(ConfigError, match=r"gives shape \(1, 30, 1\).*Train a CrowdModel\(base, layer\)"):
        plain.on_epoch_end(0, {})
    nobody = Annotations.from_dense(np.array([[0, 1], [-1, -1]]), classes=np.arange(2))
    with pytest.raises(DataError, match="none of these tasks is annotated"):
        HeldOutAnnotations(x, nobody, tasks=[1])
    ratings = Annotations.from_dense(np.array([[0.5]]), kind="regression")
    with pytest.raises(DataError, match="scores models of classes, got kind regression"):
        HeldOutAnnotations(x, ratings, tasks=[0])


def test_the_score_is_the_log_probability_at_the_best_temperature():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 400)
    likelihoods = np.log(np.where(np.arange(3) == truth[:, None], 0.7, 0.15))
    calm = np.where(np.arange(3) == truth[:, None], 0.6, 0.2)
    swapped = rng.random(400) < 0.3
    calm[swapped] = np.roll(calm[swapped], 1, axis=1)
    sure = calm**4 / (calm**4).sum(axis=1, keepdims=True)
    plain = np.log((calm * np.exp(likelihoods)).sum(axis=1))
    assert scores(calm, likelihoods).sum() >= plain.sum()
    # sharpening alone changes little: the temperature takes it back, up to the grid's step
    assert scores(sure, likelihoods).sum() == pytest.approx(scores(calm, likelihoods).sum(), abs=2)
    assert scores(sure, likelihoods).sum() > np.log((sure * np.exp(likelihoods)).sum(axis=1)).sum()
    assert np.isfinite(scores(np.eye(3)[truth], likelihoods)).all()  # zeros are floored


def test_a_task_has_the_density_of_its_ratings_around_the_prediction():
    """Against a multivariate normal distribution, for the spread that is best and the level that is best."""
    precisions, biases = np.array([4.0, 1.0, 0.5]), np.array([0.3, -0.2, 0.0])
    ratings = np.array([[1.0, 2.0, 0.5], [3.0, 2.2, 2.0]])
    corrected = ratings - biases
    weight = np.full(2, precisions.sum())
    mean = (corrected * precisions).sum(axis=1) / weight
    constant = (np.log(precisions / (2 * np.pi)) - precisions * (corrected - mean[:, None]) ** 2).sum(axis=1) / 2
    answers = np.array([0.5, 3.5])
    found = rating_scores(answers, RatingEvidence(weight, mean, constant, 2.0))
    level = (mean - answers).mean()  # both tasks weigh the same
    by_spread = [
        [
            multivariate_normal.logpdf(own, np.full(3, answer + level), np.diag(1 / precisions) + (2 * spread) ** 2)
            for own, answer in zip(corrected, answers, strict=True)
        ]
        for spread in SPREADS
    ]
    expected = max(by_spread, key=sum)
    np.testing.assert_allclose(found, expected)
