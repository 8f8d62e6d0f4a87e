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
    found = prediction_powered_mean(*waves(which), level=0.9, power=power, few=False)
    np.testing.assert_allclose([found.value, found.low, found.high], [value, low, high], atol=1e-9)


def proportion(rng, number):
    """People and a model that is wrong in one direction."""
    truth = (rng.random(number + 1000) < 0.3).astype(float)
    return truth, np.where(rng.random(number + 1000) < 0.15, 1.0, truth)


def seldom(rng, number):
    truth = (rng.random(number + 1000) < 0.9).astype(float)
    return truth, np.where(rng.random(number + 1000) < 0.05, 1 - truth, truth)


def ratings(rng, number):
    truth = rng.gamma(2.0, 0.5, number + 1000)
    return truth, 0.8 * truth + rng.normal(1.0, 0.4, number + 1000)


@pytest.mark.slow
@pytest.mark.parametrize("number", [30, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("sort", "expected"), [(proportion, 0.3), (seldom, 0.9), (ratings, 1.0)])
def test_intervals_cover_as_often_as_they_say_and_are_narrower_than_those_of_people_alone(sort, expected, number):
    rng = np.random.default_rng(number)
    covered, widths, alone = 0, [], []
    for _ in range(1000):
        truth, predicted = sort(rng, number)
        found = prediction_powered_mean(truth[:number], predicted[:number], predicted[number:])
        covered += found.low <= expected <= found.high
        widths.append(found.high - found.low)
        powerless = prediction_powered_mean(truth[:number], predicted[:number], predicted[number:], power=0)
        alone.append(powerless.high - powerless.low)
    # 0.3 and 0.9 of 30 labels are few sorts of samples, so the share that covers goes in steps
    assert 0.93 <= covered / 1000 <= (0.99 if sort is seldom and number == 30 else 0.97)
    assert np.mean(widths) < 0.85 * np.mean(alone)


def test_errors_of_ratings_count_by_their_leverage():
    """Against HC3 of a regression on one variable, where the model's weight is the regression's slope."""
    truth, predicted, _ = waves(1)
    truth = 0.5 * predicted + (truth - predicted)
    more = np.tile(predicted, 4000)  # so many that their own variance does not matter
    found = prediction_powered_mean(truth, predicted, more)
    design = np.stack([np.ones(30), predicted - predicted.mean()], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    residuals = truth - design @ (inverse @ design.T @ truth)
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    hc3 = inverse @ (design.T * (residuals / (1 - leverage)) ** 2) @ design @ inverse
    assert found.power == pytest.approx((inverse @ design.T @ truth)[1], abs=1e-3)
    assert found.standard_error == pytest.approx(np.sqrt(hc3[0, 0]), rel=1e-2)


def test_the_worth_is_the_number_of_labels_that_would_do_alone():
    truth, predicted, more = waves(1)
    found = prediction_powered_mean(truth, predicted, more, few=False)
    assert found.worth == pytest.approx(truth.var() / found.standard_error**2)
    assert found.worth > 30
    assert prediction_powered_mean(truth, predicted, more, power=0).worth == pytest.approx(30)
    assert prediction_powered_mean(truth, predicted, more).worth > 30


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
