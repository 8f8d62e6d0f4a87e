"""The choice of a deep method by hidden annotations."""

import numpy as np
import pytest

from crowdzoo.comparison.method_choice import num_trainings
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.models import TrainingSettings, choose_method, train
from crowdzoo.training.held_out_annotations import scores

VALID = ("aggregated", "crowdsourced-layer", "deep-em")


def crowd(num_tasks=240, wrong=0.5, seed=0):
    """Two classes in two clouds; one careful annotator, and four who say class 1 for most of class 0."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 2, num_tasks)
    x = (rng.normal(size=(num_tasks, 4)) + 2.5 * gold[:, None]).astype("float32")
    said = np.repeat(gold[:, None], 5, axis=1)
    for annotator in range(1, 5):
        flipped = (gold == 0) & (rng.random(num_tasks) < wrong)
        said[flipped, annotator] = 1
    said[rng.random(said.shape) < 0.4] = -1
    said[(said < 0).all(axis=1), 0] = 0
    return x, Annotations.from_dense(said, classes=("no", "yes")), gold


def settings(**given):
    return TrainingSettings(**{"hidden": (8,), "epochs": 8, "batch_size": 32, "learning_rate": 0.02, "seed": 3} | given)


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


def test_the_number_of_trainings():
    assert num_trainings(10_000, VALID) == 3  # one part is enough
    assert num_trainings(500, VALID) == 6
    assert num_trainings(30, VALID) == 15


@pytest.mark.slow
def test_a_model_that_predicts_annotators_better_is_chosen_and_the_choice_is_repeated():
    x, annotations, gold = crowd()
    tried = (("doctor-net", {}), ("deep-em", {}))  # which has too few labels for heads of their own
    counted = []
    choice = choose_method(settings(), x, annotations, candidates=tried, on_training=lambda: counted.append(1))
    assert len(counted) == num_trainings(240, tried) == 10
    assert choice.num_hidden == 240
    first, second = choice.candidates
    assert first.settings.method == "deep-em"
    assert choice.settings == first.settings
    assert (first.behind, first.error) == (0.0, 0.0)
    assert second.behind == pytest.approx(first.score - second.score)
    assert second.behind > 2 * second.error > 0
    assert choice.settings.epochs in (2, 4, 6, 8)
    assert choose_method(settings(), x, annotations, candidates=tried) == choice
    model, _ = train(choice.settings, x, annotations=annotations)
    assert np.mean(model.predict(x, verbose=0).argmax(axis=1) == gold) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("method", ["conal", "doctor-net", "cross-fitted-em", "lia", "max-mig"])
def test_methods_with_phases_heads_or_copies_of_the_base_are_scored(method):
    x, annotations, _ = crowd(num_tasks=80)
    choice = choose_method(settings(), x, annotations, candidates=((method, {}), ("aggregated", {})))
    assert all(np.isfinite(each.score) for each in choice.candidates)
    best = -np.log(2)  # of a coin for each annotation
    assert max(each.score for each in choice.candidates) > best


def test_what_cannot_be_compared_is_said():
    x, annotations, _ = crowd(num_tasks=30)
    with pytest.raises(ConfigError, match="name at least one method"):
        choose_method(settings(), x, annotations, candidates=())
    with pytest.raises(ConfigError, match=r"unknown method 'deep-me'.*Did you mean 'deep-em'"):
        choose_method(settings(), x, annotations, candidates=(("deep-me", {}),))
    with pytest.raises(ConfigError, match="deep-em is there twice"):
        choose_method(settings(), x, annotations, candidates=(("deep-em", {}), ("conal", {}), ("deep-em", {})))
    with pytest.raises(ConfigError, match="auto compares methods, and cannot be one of them"):
        choose_method(settings(), x, annotations, candidates=(("auto", {}),))
    with pytest.raises(DataError, match=r"15 labelled tasks are too few .* label at least 20"):
        choose_method(settings(), x[:15], annotations.select_tasks(np.arange(15)))
    ratings = Annotations.from_dense(np.ones((30, 2)), kind="regression")
    with pytest.raises(DataError, match="compares methods for classes or for ratings"):
        choose_method(settings(), x, ratings)
