"""Prediction-powered means: ppi-python's numbers, and intervals that cover as often as they say."""

import numpy as np
import pytest

from crowdzoo.errors import ConfigError, DataError
from crowdzoo.quality import prediction_powered_mean

# of ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(alpha=.1) of `waves`
PPI = [
    (0, None, 0.002518522647, -0.157433455806, 0.1624705011),
    (0, 1.0, 0.00825449916, -0.175419214851, 0.191928213172),
    (0, 0.3, -0.00296145169, -0.186864695742, 0.180941792362),
    (1, None, 1.012232241622, 0.796316112707, 1.228148370537),
    (1, 1.0, 1.014478303482, 0.761265705228, 1.267690901736),
    (1, 0.3, 1.009596884239, 0.745933957109, 1.273259811368),
]


def waves(which):
    task = np.arange(90)
    predicted = np.sin(task * 1.7 + which) + (task % 3 if which else 0)
    truth = predicted + 0.5 * np.cos(task * 2.3)
    return truth[:30], predicted[:30], predicted[30:]


@pytest.mark.parametrize(("which", "power", "value", "low", "high"), PPI)
def test_it_is_ppi_pythons(which, power, value, low, high):
    found = prediction_powered_mean(*waves(which), level=0.9, power=power)
    np.testing.assert_allclose([found.value, found.low, found.high], [value, low, high], atol=1e-9)


def test_intervals_cover_as_often_as_they_say_and_are_narrower_than_those_of_people_alone():
    rng = np.random.default_rng(0)
    covered, widths, alone = 0, [], []
    for _ in range(2000):
        truth = (rng.random(1100) < 0.3).astype(float)
        # a model that is wrong in one direction
        predicted = np.where(rng.random(1100) < 0.15, 1.0, truth)
        found = prediction_powered_mean(truth[:100], predicted[:100], predicted[100:])
        covered += found.low <= 0.3 <= found.high
        widths.append(found.high - found.low)
        alone.append(2 * 1.96 * truth[:100].std() / 10)
    assert 0.93 <= covered / 2000 <= 0.97
    assert np.mean(widths) < 0.8 * np.mean(alone)


def test_the_worth_is_the_number_of_labels_that_would_do_alone():
    truth, predicted, more = waves(1)
    found = prediction_powered_mean(truth, predicted, more)
    assert found.worth == pytest.approx(truth.var() / found.standard_error**2)
    assert found.worth > 30
    assert prediction_powered_mean(truth, predicted, more, power=0).worth == pytest.approx(30)


def test_a_model_without_use_gets_no_weight():
    found = prediction_powered_mean([0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 1])
    assert (found.power, found.value) == (0, 0.5)
    constant = prediction_powered_mean([1, 1], [1, 1], [1, 1])
    assert (constant.value, constant.standard_error, constant.worth) == (1, 0, None)


def test_what_cannot_be_used_is_refused():
    with pytest.raises(DataError, match="same tasks, got 2 and 3 values"):
        prediction_powered_mean([0, 1], [0, 1, 1], [0, 1])
    with pytest.raises(DataError, match=r"predicted_only: give two values or more .* shape \[1\]"):
        prediction_powered_mean([0, 1], [0, 1], [0])
    with pytest.raises(DataError, match="truth: value 1 is nan"):
        prediction_powered_mean([0, np.nan], [0, 1], [0, 1])
    with pytest.raises(DataError, match="predicted: holds what is no number"):
        prediction_powered_mean([0, 1], ["a", "b"], [0, 1])
    with pytest.raises(ConfigError, match="level"):
        prediction_powered_mean([0, 1], [0, 1], [0, 1], level=1)


def skewed_numbers(rng):
    """Numbers with a long tail, and a model that shrinks them and errs more where they are large."""
    truth = rng.gamma(2.0, 1.0, 1200)
    return truth, 0.6 * truth + rng.normal(size=1200) * (0.3 + 0.2 * truth), 2.0


def right_or_wrong(rng):
    """Whether a classifier says what people say, and what a model says that errs in favour of the classifier."""
    people, classifier = rng.random((2, 1200)) < 0.5
    people = np.where(rng.random(1200) < 0.5, classifier, people)  # the classifier is right in .75
    model = np.where(rng.random(1200) < 0.5, classifier, people)
    return (classifier == people).astype(float), (classifier == model).astype(float), 0.75


@pytest.mark.parametrize("drawn", [skewed_numbers, right_or_wrong])
def test_intervals_of_numbers_and_of_an_accuracy_cover_as_often_as_they_say(drawn):
    rng = np.random.default_rng(1)
    covered, naive, runs = 0, 0, 1500
    for _ in range(runs):
        truth, predicted, mean = drawn(rng)
        found = prediction_powered_mean(truth[:200], predicted[:200], predicted[200:])
        covered += found.low <= mean <= found.high
        reach = 1.96 * predicted.std() / np.sqrt(len(predicted))
        naive += abs(predicted.mean() - mean) <= reach
    assert 0.93 <= covered / runs <= 0.97
    assert naive / runs < 0.1  # the model's labels alone are off
