"""The layer RatingEM against the equations of its EM in loops and float64; LabelUnit and the ratings' loss with it."""

import keras
import numpy as np
import pytest
from keras import ops
from refusals import about
from scipy.special import gammaln

from crowdzoo.data.annotations import Annotations
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.layers.rating_em import RatingEM, Ratings, posterior
from crowdzoo.losses import MaskedCrowdMeanSquaredError, RatingSquaredError
from crowdzoo.models import CrowdModel, FeatureRegressor, rating_unit

B, D, R = 4, 4, 5
NAN = np.nan
# Annotator 3 rated once, annotator 4 never; nobody rated task 2.
DENSE = np.array(
    [[1.0, 2, 4, NAN, NAN], [2, 3.5, NAN, NAN, NAN], [NAN] * 5, [5, NAN, 6, 4, NAN], [0, 1, NAN, NAN, NAN]]
)
ANNOTATIONS = Annotations.from_dense(DENSE, kind="regression")


# === The equations ===


def log_evidence_of_unrelated(ratings):
    """Normal ratings, precision Gamma(0.1, 0.1), mean normal about zero with a tenth of it: Student's t, one by one."""
    found, kappa, mean, shape, rate = 0.0, 0.1, 0.0, 0.1, 0.1
    for y in ratings:  # each given those before
        scale = rate * (kappa + 1) / (shape * kappa)
        found += gammaln(shape + 0.5) - gammaln(shape) - np.log(2 * np.pi * shape * scale) / 2
        found -= (shape + 0.5) * np.log1p((y - mean) ** 2 / (2 * shape * scale))
        rate += kappa * (y - mean) ** 2 / (2 * (kappa + 1))
        mean, kappa, shape = (kappa * mean + y) / (kappa + 1), kappa + 1, shape + 0.5
    return found


def rounds(estimates, state, center, unit, prior, unrelated, level):
    """One round in loops: E-step, biases, anchor, precisions, variances. Returns targets, state, log-likelihood."""
    bias, precision, variance, among, follows = state
    y = (DENSE - center) / unit
    seen = ~np.isnan(y)
    pairs = list(zip(*np.nonzero(seen), strict=True))
    mean, spread, likelihood = np.array(estimates, float), np.full(len(y), variance), 0.0
    for i in range(len(y)):
        who = np.flatnonzero(seen[i])
        if not len(who):
            continue
        weight = follows * precision
        total = 1 / variance + sum(weight[r] for r in who)
        mean[i] = (estimates[i] / variance + sum(weight[r] * (y[i, r] - bias[r]) for r in who)) / total
        spread[i] = 1 / total
        # the integral of the prior of the truth and of the ratings' densities, each to the power of its probability
        truths = np.linspace(-12, 12, 4001) * np.sqrt(variance) + estimates[i]
        logs = -((truths - estimates[i]) ** 2) / (2 * variance) - np.log(2 * np.pi * variance) / 2
        for r in who:
            errors = y[i, r] - truths - bias[r]
            logs = logs + follows[r] * (np.log(precision[r] / (2 * np.pi)) - precision[r] * errors**2) / 2
        likelihood += np.log(np.exp(logs).sum() * (truths[1] - truths[0]))
    apart = np.array([log_evidence_of_unrelated(y[seen[:, r], r]) for r in range(R)])
    likelihood += (1 - follows) @ apart
    new, width = np.zeros(R), np.zeros(R)
    for r in range(R):
        rated = np.flatnonzero(seen[:, r])
        width[r] = 1 / (1 / among + precision[r] * len(rated))
        new[r] = width[r] * precision[r] * sum(y[i, r] - mean[i] for i in rated)
    some = [r for r in range(R) if seen[:, r].any()]
    among = np.average([new[r] ** 2 + width[r] for r in some], weights=follows[some])
    squares = [
        sum((y[i, r] - mean[i] - new[r]) ** 2 + spread[i] + width[r] for i in np.flatnonzero(seen[:, r]))
        for r in range(R)
    ]
    number = seen.sum(axis=0)
    pooled = follows @ squares / (follows @ number)
    precision = np.array([(prior + number[r] / 2) / (prior * pooled + squares[r] / 2) for r in range(R)])
    if unrelated:
        for r in range(R):
            # the integral of the precision's prior and of the likelihood with the expected squares
            values = np.exp(np.linspace(-20, 20, 20001))
            logs = number[r] / 2 * np.log(values / (2 * np.pi)) - values * squares[r] / 2
            logs += prior * np.log(prior * pooled * values) - gammaln(prior) - prior * pooled * values
            evidence = np.log(np.exp(logs).sum() * 40 / 20000)
            evidence -= (new[r] ** 2 / among + width[r] / among - 1 - np.log(width[r] / among)) / 2
            follows[r] = 1 / (1 + unrelated / (1 - unrelated) * np.exp(apart[r] - evidence))
    for r in range(R):
        mean_error = sum(y[i, r] - mean[i] for i in np.flatnonzero(seen[:, r])) / (number[r] + 0.1)
        bias[r] = follows[r] * new[r] + (1 - follows[r]) * mean_error
    counts = follows if level == "following" else np.ones(R)
    common = sum(counts[r] * bias[r] for _, r in pairs) / sum(counts[r] for _, r in pairs)
    bias, mean = bias - common, mean + common
    rated = seen.any(axis=1)
    variance = np.mean((mean - estimates)[rated] ** 2 + spread[rated])
    return mean, (bias, precision, variance, among, follows), likelihood


@pytest.mark.parametrize(
    ("unrelated", "level"),
    [(0.3, "following"), *(pytest.param(share, "all", marks=pytest.mark.slow) for share in (0.3, 0.0))],
)
def test_whole_epochs_are_the_equations(unrelated, level):
    x = np.random.default_rng(0).normal(size=(len(DENSE), D)).astype("float32")
    center, unit = rating_unit(ANNOTATIONS)
    keras.utils.set_random_seed(0)
    base = FeatureRegressor(D, hidden=(), center=center, unit=unit)
    layer = RatingEM(R, prior=0.7, start_rounds=3, center=center, unit=unit, unrelated=unrelated, level=level)
    model = CrowdModel(base, layer)
    model.compile(keras.optimizers.SGD(0.3))
    kernel, bias = (np.array(weight, "float64") for weight in base.get_weights()[2:])
    state = (np.zeros(R), np.ones(R), 1.0, 0.1, np.full(R, 1 - unrelated))
    rated = np.array([0, 1, 3, 4])
    estimates = np.zeros(len(DENSE))
    for _ in range(3):
        targets, state, _ = rounds(estimates, state, center, unit, 0.7, unrelated, level)
        estimates[:] = targets[rated].mean()
    losses, likelihoods = [], []
    for epoch in range(3):
        if epoch:
            targets, state, likelihood = rounds((x @ kernel + bias)[:, 0], state, center, unit, 0.7, unrelated, level)
            likelihoods.append(likelihood)
        error = (x @ kernel + bias)[rated, 0] - targets[rated]
        losses.append(np.mean(error**2))
        kernel = kernel - 0.3 * 2 * (x[rated].T @ error)[:, None] / len(rated) * 1.0
        bias = bias - 0.3 * 2 * error.mean()
    history = model.fit(x, ANNOTATIONS, epochs=3, batch_size=32, verbose=0).history
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-3)
    np.testing.assert_allclose(history["log_likelihood"], likelihoods, rtol=1e-3)
    np.testing.assert_allclose(model.annotator_biases(), state[0] * unit, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(layer.annotator_precisions(), state[1] / unit**2, rtol=1e-3)
    np.testing.assert_allclose(model.predict(x, verbose=0), center + unit * (x @ kernel + bias), rtol=1e-3)
    anchor = (state[4] if level == "following" else np.ones(R)) * (~np.isnan(DENSE)).sum(axis=0)
    assert abs(anchor @ model.annotator_biases()) < 1e-4  # anchored


def test_the_posterior_is_that_of_a_normal_distribution():
    rng = np.random.default_rng(0)
    bias, precision = rng.normal(size=R), rng.uniform(0.5, 2, R)
    tasks, annotators = np.nonzero(~np.isnan(DENSE))
    means, variances, likelihood = posterior(
        np.zeros(5), 0.5, tasks, annotators, DENSE[tasks, annotators], bias, precision, np.ones(R)
    )
    expected = 0.0
    for i in (0, 1, 3, 4):
        who = annotators[tasks == i]
        rest = DENSE[i, who] - bias[who]
        covariance = np.diag(1 / precision[who]) + 0.5
        expected -= (rest @ np.linalg.solve(covariance, rest) + np.linalg.slogdet(2 * np.pi * covariance)[1]) / 2
        np.testing.assert_allclose(means[i], 0.5 * np.linalg.solve(covariance, rest).sum(), rtol=1e-9)
        np.testing.assert_allclose(variances[i], 0.5 - 0.25 * np.linalg.inv(covariance).sum(), rtol=1e-9)
    assert likelihood == pytest.approx(expected, rel=1e-9)
    assert (means[2], variances[2]) == (0.0, 0.5)


@pytest.mark.parametrize(
    ("honest", "constant"),
    [(2, 1), *(pytest.param(*counts, marks=pytest.mark.slow) for counts in ((2, 2), (2, 4), (4, 1)))],
)
def test_targets_do_not_follow_annotators_who_always_say_the_same(honest, constant):
    rng = np.random.default_rng(honest)
    x = np.stack([rng.normal(size=300), np.ones(300)], axis=1)
    said = 5 + 2 * x[:, :1] + rng.normal(0, 0.8, (300, honest))
    annotations = Annotations.from_dense(
        np.hstack([said, np.tile([9.0, 7.0, 8.0, 9.0], (300, 1))[:, :constant]]), kind="regression"
    )
    columns = Ratings(annotations.task_ids, annotations.annotator_ids, annotations.labels)
    center, unit = rating_unit(annotations)

    def learnt(**more):
        layer = RatingEM(honest + constant, center=center, unit=unit, **more)
        layer.build((None, 1))
        targets = layer.start_from(300, columns)[:, 0]
        for _ in range(20):
            network = x @ np.linalg.lstsq(x, targets, rcond=None)[0]
            targets = layer.update(network, columns)[0][:, 0]
        return layer, targets

    layer, targets = learnt()
    assert np.std(targets - 2 * x[:, 0]) < 0.8
    assert abs(np.mean(learnt(level="following")[1]) - said.mean()) < 0.05
    follows = ops.convert_to_numpy(layer.follows)
    assert follows[:honest].min() > 0.99
    assert follows[honest:].max() < 1e-6
    if honest == 2:  # as it was
        assert np.std(learnt(unrelated=0.0)[1]) < 0.1


# === The ratings' loss, and the crowd layer in units ===


def test_the_loss_counts_in_units_of_the_ratings():
    y, p = np.array([[1.0, NAN], [4.0, 2.0]], "float32"), np.array([[3.0, 9.0], [4.0, 1.0]], "float32")
    plain = MaskedCrowdMeanSquaredError()(y, p)
    np.testing.assert_allclose(ops.convert_to_numpy(RatingSquaredError(2.0)(y, p)), ops.convert_to_numpy(plain) / 4)
    revived = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(RatingSquaredError(2.0)))
    assert revived.unit == 2.0
    with pytest.raises(ValueError, check=about("unit")):
        RatingSquaredError(0.0)


@pytest.mark.parametrize("connection", ["S", "B", "S+B"])
def test_the_crowd_layer_in_units_answers_as_on_standardised_ratings(connection):
    p = np.random.default_rng(0).normal(size=(B, 1)).astype("float32")
    plain = CrowdsourcedLayer(R, connection, "regression")
    other = CrowdsourcedLayer(R, connection, "regression", center=5.0, unit=2.0)
    for layer in (plain, other):
        layer.build((None, 1))
        layer.set_weights([np.arange(R) / 4 + number for number in range(len(layer.weights))])
    answers = ops.convert_to_numpy(plain(p))
    np.testing.assert_allclose(ops.convert_to_numpy(other(5 + 2 * p)), 5 + 2 * answers, rtol=1e-5)
    np.testing.assert_allclose(other.annotator_biases(), 2 * plain.annotator_biases())
    revived = CrowdsourcedLayer.from_config(other.get_config())
    assert (revived.center, revived.unit, revived.anchor) == (5.0, 2.0, False)
