"""RatingEM against its equations in loops, on simulated crowds, and on what data can be at worst."""

import dataclasses

import numpy as np
import pytest
from refusals import bad_row
from scipy.special import digamma, gammaln

from crowdzoo.aggregation import RatingEM, RatingMean, VotesWarning
from crowdzoo.aggregation.ratings.rating_em import RESOLUTION
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError

NAN = np.nan
SMALL = np.array([[1.0, 2.0, NAN, 4.0], [NAN, 3.0, 2.5, NAN], [5.0, NAN, NAN, 6.5], [2.0, 2.5, NAN, NAN]])


def crowd(num_tasks=400, num_annotators=12, redundancy=5, seed=0):
    """Ratings, truth, biases and deviations; the last annotator rates once, the one before is wild."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(5, 1.5, num_tasks)
    bias = rng.normal(0, 0.8, num_annotators)
    deviation = rng.uniform(0.2, 1.0, num_annotators)
    deviation[-2] = 4.0
    dense = np.full((num_tasks, num_annotators), NAN)
    for i in range(num_tasks):
        for r in rng.permutation(num_annotators - 1)[:redundancy]:
            dense[i, r] = truth[i] + bias[r] + rng.normal(0, deviation[r])
    dense[0, -1] = 9.0
    return Annotations.from_dense(dense, kind="regression"), truth, bias, deviation


def log_evidence_of_unrelated(ratings):
    """Of normal ratings whose precision is Gamma(0.1, 0.1) and whose mean has a tenth of it, by a quadrature."""
    precisions = np.exp(np.linspace(-25, 25, 20001))
    number = len(ratings)
    squares = ((ratings - ratings.mean()) ** 2).sum() + number * RESOLUTION**2 if number else 0.0
    mean = ratings.mean() if number else 0.0
    logs = number / 2 * np.log(precisions / (2 * np.pi)) - precisions * squares / 2
    # the mean of the ratings is normal about zero, with variance 1 / (n kappa) + 1 / (0.1 kappa)
    if number:
        logs += np.log(0.1 / (0.1 + number)) / 2 - precisions * mean**2 * 0.1 * number / (0.1 + number) / 2
    logs += 0.1 * np.log(0.1) - gammaln(0.1) + 0.1 * np.log(precisions) - 0.1 * precisions  # d log kappa
    return np.log(np.exp(logs - logs.max()).sum() * 50 / 20000) + logs.max()


def reference(dense, rounds, unrelated, level):
    """Rounds of the variational EM on standardised ratings, with loops; and its bound after each."""
    seen = ~np.isnan(dense)
    y = (dense - dense[seen].mean()) / dense[seen].std()
    tasks, annotators = y.shape
    z, v, b, w = np.zeros(tasks), np.ones(tasks), np.zeros(annotators), np.zeros(annotators)
    lam, log_lam = np.full(annotators, 2.0), np.full(annotators, np.log(2.0))
    m, tau, omega, shape, rate = 0.0, 2.0, 10.0, 2.0, 1.0
    follows = np.full(annotators, 1 - unrelated)
    apart = np.array([log_evidence_of_unrelated(y[seen[:, r], r]) for r in range(annotators)])
    bounds = []

    def if_it_follows(r):
        """The bound on the log-probability of an annotator's ratings."""
        bound = 0.0
        for i in np.flatnonzero(seen[:, r]):
            square = (y[i, r] - m - z[i] - b[r]) ** 2 + v[i] + w[r] + RESOLUTION**2
            bound += (log_lam[r] - np.log(2 * np.pi) - lam[r] * square) / 2
        bound -= (omega * (b[r] ** 2 + w[r]) - 1 - np.log(omega * w[r])) / 2
        entropy = shapes[r] - np.log(rates[r]) + gammaln(shapes[r]) + (1 - shapes[r]) * digamma(shapes[r])
        return bound + entropy + shape * np.log(rate) - gammaln(shape) + (shape - 1) * log_lam[r] - rate * lam[r]

    for _ in range(rounds):
        for i in range(tasks):
            who = np.flatnonzero(seen[i])
            v[i] = 1 / (tau + sum(follows[r] * lam[r] for r in who))
            z[i] = v[i] * sum(follows[r] * lam[r] * (y[i, r] - m - b[r]) for r in who)
        shapes, rates = np.empty(annotators), np.empty(annotators)
        for r in range(annotators):
            rated = np.flatnonzero(seen[:, r])
            w[r] = 1 / (omega + lam[r] * len(rated))
            b[r] = w[r] * lam[r] * sum(y[i, r] - m - z[i] for i in rated)
            squares = sum((y[i, r] - m - z[i] - b[r]) ** 2 + v[i] + w[r] + RESOLUTION**2 for i in rated)
            shapes[r], rates[r] = shape + len(rated) / 2, rate + squares / 2
        lam, log_lam = shapes / rates, digamma(shapes) - np.log(rates)
        if unrelated:
            against = unrelated * np.exp(apart - [if_it_follows(r) for r in range(annotators)])
            follows = (1 - unrelated) / (1 - unrelated + against)
        pairs = list(zip(*np.nonzero(seen), strict=True))
        weights = [follows[r] * lam[r] for _, r in pairs]
        m = np.average([y[i, r] - z[i] - b[r] for i, r in pairs], weights=weights)
        tau, omega = 1 / np.mean(z**2 + v), follows.sum() / (follows @ (b**2 + w))
        grid = np.exp(np.linspace(np.log(0.1), np.log(100), 200001))
        mean = follows @ lam / follows.sum()
        gap = np.log(mean) - follows @ log_lam / follows.sum()
        shape = grid[np.argmin(np.abs(np.log(grid) - digamma(grid) - gap))]
        rate = shape / mean
        bound = -sum(tau * (z**2 + v) - 1 - np.log(tau * v)) / 2
        for r in range(annotators):
            bound += follows[r] * if_it_follows(r)
            if unrelated:
                bound += (1 - follows[r]) * (apart[r] - np.log((1 - follows[r]) / unrelated))
                bound -= follows[r] * np.log(follows[r] / (1 - unrelated))
        bounds.append(bound)
    for r in range(annotators):
        errors = [y[i, r] - m - z[i] for i in np.flatnonzero(seen[:, r])]
        b[r] = follows[r] * b[r] + (1 - follows[r]) * sum(errors) / (len(errors) + 0.1)
    counts = follows if level == "following" else np.ones(annotators)
    common = sum(counts[r] * b[r] for _, r in pairs) / sum(counts[r] for _, r in pairs)
    unit = dense[seen].std()
    return {
        "estimates": dense[seen].mean() + unit * (m + z + common),
        "standard_errors": unit * np.sqrt(v),
        "biases": unit * (b - common),
        "precisions": lam / unit**2,
        "skills": follows / (1 + tau * (1 / lam + (b - common) ** 2)),
        "bounds": bounds,
    }


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize(("unrelated", "level"), [(0.1, "all"), (0.4, "all"), (0.4, "following"), (0.0, "all")])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_rounds_and_bound_are_the_equations(rounds, unrelated, level):
    expected = reference(SMALL, rounds, unrelated, level)
    annotations = Annotations.from_dense(SMALL, kind="regression")
    found = RatingEM(max_iter=rounds, tol=0, unrelated=unrelated, level=level).fit(annotations)
    for name in ("estimates", "standard_errors", "biases", "precisions", "skills"):
        np.testing.assert_allclose(getattr(found, name), expected[name], rtol=1e-4, err_msg=name)
    np.testing.assert_allclose(found.history, expected["bounds"], rtol=1e-5)


def test_the_bound_never_exceeds_the_evidence_and_meets_it_where_it_can():
    # without biases and own precisions the posterior factorises, so that the bound is the evidence
    annotations = Annotations.from_dense(SMALL, kind="regression")
    found = RatingEM(bias=False, precision=False, tol=1e-12, max_iter=5000).fit(annotations)
    seen = ~np.isnan(SMALL)
    unit = SMALL[seen].std()
    precision = found.precisions[0] * unit**2
    spread = (1 / found.skills[0] - 1) * precision  # reliability is 1 / (1 + tau / lambda)
    errors = (SMALL - SMALL[seen].mean()) / unit
    mean = found.estimates
    evidence = 0.0
    for i in range(len(SMALL)):
        y = errors[i][seen[i]]
        # m from any task: estimate = centre + unit (m + z)
        shrink = len(y) * precision / (spread + len(y) * precision)
        m = ((mean[i] - SMALL[seen].mean()) / unit - shrink * y.mean()) / (1 - shrink)
        covariance = np.eye(len(y)) / precision + 1 / spread
        rest = y - m
        evidence -= (rest @ np.linalg.solve(covariance, rest) + np.linalg.slogdet(2 * np.pi * covariance)[1]) / 2
    evidence -= seen.sum() * precision * RESOLUTION**2 / 2
    assert found.history[-1] == pytest.approx(evidence, abs=1e-4)


@pytest.mark.parametrize("settings", [{}, {"bias": False}, {"precision": False}, {"shape": 5.0}, {"unrelated": 0.0}])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_the_history_never_falls_and_biases_are_anchored(settings):
    annotations = crowd(num_tasks=60)[0]
    found = RatingEM(tol=1e-12, max_iter=300, **settings)
    found = found.fit(annotations)
    assert len(found.history) > 5
    assert np.diff(found.history).min() > -1e-9
    if settings.get("bias", True):
        assert abs(found.biases @ found.annotations_per_annotator) < 1e-9
        assert np.abs(found.biases).max() > 0.1
    else:
        assert found.biases is None


def test_a_change_of_unit_changes_the_result_by_the_same():
    annotations = crowd(num_tasks=60)[0]
    other = Annotations.from_dense(annotations.to_dense() * 250 - 7, kind="regression")
    one, two = RatingEM().fit(annotations), RatingEM().fit(other)
    np.testing.assert_allclose(two.estimates, one.estimates * 250 - 7, rtol=1e-8)
    np.testing.assert_allclose(two.standard_errors, one.standard_errors * 250, rtol=1e-7)
    np.testing.assert_allclose(two.biases, one.biases * 250, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(two.precisions, one.precisions / 250**2, rtol=1e-7)
    np.testing.assert_allclose(two.skills, one.skills, rtol=1e-7)
    np.testing.assert_allclose(two.history, one.history, rtol=1e-8)


# === What data can be at worst ===


def finite(found):
    for name in ("estimates", "standard_errors", "biases", "precisions", "skills", "history"):
        value = getattr(found, name)
        assert value is None or np.isfinite(value).all(), name
    assert ((found.skills >= 0) & (found.skills <= 1)).all()


def test_a_task_that_nobody_rated_gets_the_mean_and_the_spread_of_the_others():
    dense = crowd(num_tasks=80)[0].to_dense()
    dense[3] = NAN
    found = RatingEM().fit(Annotations.from_dense(dense, kind="regression"))
    rest = np.delete(found.estimates, 3)
    assert found.estimates[3] == pytest.approx(rest.mean(), abs=0.2)
    assert found.standard_errors[3] == pytest.approx(rest.std(), rel=0.15)
    assert found.standard_errors[3] > np.delete(found.standard_errors, 3).max()
    finite(found)


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_estimates_keep_to_a_scale_and_ratings_outside_are_named():
    annotations = Annotations.from_dense(SMALL, kind="regression", tasks=list("abcd"))
    found = RatingEM(low=1.0, high=6.5).fit(annotations)
    assert found.estimates.min() >= 1
    assert found.estimates.max() <= 6.5
    with pytest.raises(DataError, check=bad_row(6, "label", 6.5), match=r"task 'c', annotator 3\) .* scale 1 to 6"):
        RatingEM(low=1, high=6).fit(annotations)


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_estimates_beyond_the_ratings_of_a_scale_are_said():
    """Who rates lower than others gives the highest rating of all to a task that nobody else rates."""
    dense = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [3.0, 4.0, 5.0], [2.0, 3.0, 4.0], [5.0, NAN, NAN]])
    annotations = Annotations.from_dense(dense, kind="regression")
    with pytest.warns(VotesWarning, match="1 estimates .* set low to 1 and high to 5"):
        found = RatingEM().fit(annotations)
    assert found.estimates.max() > 5
    assert RatingEM(low=1, high=5).fit(annotations).estimates.max() <= 5
    halves = Annotations.from_dense(dense / 2, kind="regression")
    assert RatingEM().fit(halves).notes == ()  # not those of a scale, as far as one can tell


def test_an_earlier_result_without_annotators_changes_nothing():
    annotations, *_ = crowd(50)
    fitted = RatingEM().fit(annotations)
    empty = dict.fromkeys(("annotators", "biases", "precisions", "skills", "annotations_per_annotator"))
    earlier = dataclasses.replace(fitted, **{name: getattr(fitted, name)[:0] for name in empty})
    np.testing.assert_allclose(
        RatingEM().partial_fit(annotations, earlier).estimates, fitted.estimates, rtol=1e-9, atol=1e-12
    )


def with_constant_annotators(honest, constant, seed=0, num_tasks=80):
    """Ratings of tasks by some annotators with noise and by some who always say the same; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(5, 2, num_tasks)
    said = np.clip(np.rint(truth[:, None] + rng.normal(0, 0.8, (num_tasks, honest))), 0, 10)
    lazy = np.tile(rng.integers(3, 8, constant).astype(float), (num_tasks, 1))
    names = [*("ann", "bob", "cy", "dee")[:honest], *("lazy", "idle", "mute", "bored")[:constant]]
    who = np.tile(names, num_tasks)
    tasks = np.repeat(np.arange(num_tasks), len(names))
    return Annotations.from_arrays(tasks, who, np.column_stack([said, lazy]).ravel(), kind="regression"), truth


@pytest.mark.parametrize(("honest", "constant"), [(2, 1), (2, 2), (3, 2), (2, 4), (4, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_estimates_do_not_follow_annotators_who_always_say_the_same(honest, constant, seed):
    annotations, truth = with_constant_annotators(honest, constant, seed)
    found = RatingEM(level="following").fit(annotations)
    assert not found.notes
    errors = found.estimates - truth
    others = RatingMean().fit(annotations).estimates - truth
    assert errors.std() < 0.9 * others.std()
    lazy = np.isin(found.annotators, ["lazy", "idle", "mute", "bored"])
    assert found.skills[lazy].max() < 1e-6
    assert found.skills[~lazy].min() > 0.3


def test_the_level_may_be_that_of_annotators_who_follow_the_truth():
    rng = np.random.default_rng(5)
    truth = rng.normal(5, 1, 40)
    said = truth[:, None] + np.array([0.3, -0.3, 0.0]) + rng.normal(0, 0.3, (40, 3))
    annotations = Annotations.from_dense(np.column_stack([said, np.full(40, 10.0)]), kind="regression")
    with pytest.warns(VotesWarning, match=r"40 of 160 ratings .*annotator 3\), .* by \+1\.[23]"):
        assert RatingEM().fit(annotations).notes
    found = RatingEM(level="following").fit(annotations)
    assert not found.notes
    without = RatingEM().fit(Annotations.from_dense(said, kind="regression"))
    np.testing.assert_allclose(found.estimates, without.estimates, atol=0.05)
    np.testing.assert_allclose(found.biases[:3], without.biases, atol=0.05)
    np.testing.assert_allclose(found.skills[:3], without.skills, atol=0.05)
    assert found.biases[3] == pytest.approx(10 - found.estimates.mean(), abs=0.05)


@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_where_all_must_follow_the_truth_estimates_that_follow_a_constant_annotator_are_told_so():
    annotations, _ = with_constant_annotators(2, 1)
    with pytest.warns(VotesWarning, match=r"they follow annotator 'lazy'"):
        found = RatingEM(unrelated=0.0).fit(annotations)
    assert found.estimates.std() < 0.1
    assert "Set unrelated to 0.1, leave that annotator out" in found.notes[0]


@pytest.mark.slow
def test_going_on_from_an_earlier_result_ends_where_a_fit_to_all_does():
    whole, *_ = crowd()
    early = (whole.task_ids < 150) & (whole.annotator_ids > 1)  # annotators have other codes there
    few = Annotations.from_arrays(
        whole.task_ids[early], whole.annotator_ids[early], whole.labels[early], kind="regression"
    )
    aggregator = RatingEM(tol=1e-13, max_iter=20_000)
    found, wanted = aggregator.partial_fit(whole, aggregator.partial_fit(few)), aggregator.fit(whole)
    np.testing.assert_allclose(found.estimates, wanted.estimates, atol=1e-6)
    np.testing.assert_allclose(found.biases, wanted.biases, atol=1e-6)
    assert RatingEM().partial_fit(whole, RatingEM().fit(whole)).num_iterations < RatingEM().fit(whole).num_iterations
