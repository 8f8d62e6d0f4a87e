from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation.classes import ebcc
from crowdzoo.aggregation.classes.ebcc import EBCC
from crowdzoo.aggregation.classes.ibcc import IBCC
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


# === The equations, written once more ===


def reference(annotations, first, rounds, subtype_prior, prior, diagonal, class_prior, gold):
    """Variational Bayes in loops with SciPy's functions: posteriors, mean confusions and class prior, and the bound."""
    n, k, m = first.shape
    rows = list(zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True))
    q, bound = first, None
    for _ in range(rounds):
        nu = class_prior + q.sum(axis=(0, 2))
        eta = subtype_prior / m + q.sum(axis=0)
        mu = np.full((annotations.num_annotators, k, m, k), prior)
        for true in range(k):
            mu[:, true, :, true] += diagonal
        start = mu[0].copy()
        for task, annotator, label in rows:
            mu[annotator, :, :, label] += q[task]
        tau = digamma(nu) - digamma(nu.sum())
        pi = digamma(eta) - digamma(eta.sum(axis=1, keepdims=True))
        v = digamma(mu) - digamma(mu.sum(axis=3, keepdims=True))
        score = np.tile(tau[:, None] + pi, (n, 1, 1))
        for task, annotator, label in rows:
            score[task] += v[annotator, :, :, label]
        for task in np.flatnonzero(gold >= 0):
            score[task, np.arange(k) != gold[task]] = -np.inf
        evidence = logsumexp(score, axis=(1, 2))
        q = np.exp(score - evidence[:, None, None])
        bound = evidence.sum() - kl(nu, np.full(k, class_prior)) - kl(eta, np.full((k, m), subtype_prior / m))
        bound -= kl(mu, np.broadcast_to(start, mu.shape))
    weights = eta / eta.sum(axis=1, keepdims=True)
    confusions = np.einsum("rkml,km->rkl", mu / mu.sum(axis=3, keepdims=True), weights)
    return q.sum(axis=2), confusions, nu / nu.sum(), bound


def kl(a, b):
    total = a.sum(axis=-1, keepdims=True)
    result = gammaln(total[..., 0]) - gammaln(a).sum(axis=-1) - gammaln(b.sum(axis=-1)) + gammaln(b).sum(axis=-1)
    return (result + ((a - b) * (digamma(a) - digamma(total))).sum(axis=-1)).sum()


@pytest.mark.parametrize("rounds", [2, 8])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.ConvergenceWarning")
def test_as_the_equations_say(monkeypatch, rounds, known):
    annotations, truth = simulated_crowd(num_tasks=25, redundancy=3)
    gold = np.where(np.arange(25) < 6, (truth + 1) % 3, -1) if known else np.full(25, -1)
    draws = np.random.default_rng(0).dirichlet(np.ones(4), (25, 3))
    monkeypatch.setattr(EBCC, "_draws", lambda self, start, colours: draws)
    shares = np.random.default_rng(1).dirichlet(np.ones(3), 25)
    priors = {"subtype_prior": 0.5, "prior": 0.7, "diagonal": 2.0, "class_prior": 1.5}
    first = np.where((gold >= 0)[:, None], np.eye(3)[gold], shares)[:, :, None] * draws
    expected = reference(annotations, first, rounds, **priors, gold=gold)
    aggregator = EBCC(subtypes=4, num_starts=1, tol=0, max_iter=rounds - 1, **priors)
    result = aggregator.fit(annotations, gold=gold, initial=shares)
    np.testing.assert_allclose(result.posteriors, expected[0], atol=1e-10)
    np.testing.assert_allclose(result.confusions, expected[1], atol=1e-10)
    np.testing.assert_allclose(result.class_prior, expected[2], atol=1e-10)
    assert result.history[-1] == pytest.approx(expected[3], rel=1e-11)


@pytest.mark.parametrize("known", [False, True])
def test_one_subtype_is_ibcc(known):
    annotations, truth = simulated_crowd()
    gold = np.where(np.arange(60) < 10, truth, -1) if known else None
    ours = EBCC(subtypes=1, num_starts=2, class_prior=1.0).fit(annotations, gold=gold)
    theirs = IBCC(prior=1.0, diagonal=3.0).fit(annotations, gold=gold)
    np.testing.assert_allclose(ours.posteriors, theirs.posteriors, atol=1e-10)
    np.testing.assert_allclose(ours.confusions, theirs.confusions, atol=1e-10)
    np.testing.assert_allclose(ours.history, theirs.history, rtol=1e-12)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-12)


# === Subtypes and starts ===


@pytest.mark.slow
def test_draws_are_uniform_on_the_simplex():
    annotations, _ = simulated_crowd(num_tasks=4000, num_annotators=40)
    colours = ebcc._colours(whole_block(annotations), 40, 3)
    draws, *others = (EBCC(subtypes=4, seed=seed)._draws(start, colours) for start, seed in ((1, 0), (2, 0), (1, 1)))
    assert draws.shape == (4000, 3, 4)
    np.testing.assert_allclose(draws.sum(axis=2), 1)
    np.testing.assert_allclose(draws.mean(axis=(0, 1)), 1 / 4, atol=0.01)
    np.testing.assert_allclose(draws.var(axis=(0, 1)), 3 / (16 * 5), atol=0.002)  # of Dirichlet(1, 1, 1, 1)
    flat = draws.reshape(4000, -1)
    assert np.abs(np.corrcoef(flat[:, :4].T, flat[:, 4:8].T)[:4, 4:]).max() < 0.06
    assert np.abs(np.corrcoef(flat[1:, 0], flat[:-1, 0])[0, 1]) < 0.06
    assert all(np.abs(np.corrcoef(flat[:, 0], other[:, 0, 0])[0, 1]) < 0.06 for other in others)


def test_first_start_has_one_subtype_a_class():
    annotations, _ = simulated_crowd()
    one = EBCC(num_starts=1).fit(annotations)
    np.testing.assert_allclose(one.posteriors, EBCC(num_starts=1, subtypes=1).fit(annotations).posteriors, atol=1e-3)


def test_too_many_annotators_are_refused():
    annotations, _ = simulated_crowd(num_classes=100)
    with pytest.raises(DataError, match="1,400 annotators and 100 classes: use fewer subtypes"):
        EBCC().fit(replace(annotations, annotators=np.arange(1400)))  # 1.4e8 cells, of 1.34e8


def test_five_hundred_classes_end_at_once_in_the_message():
    annotations = Annotations.from_arrays(range(500), [task % 5 for task in range(500)], range(500))
    with pytest.raises(DataError, match=r"5 annotators, 500 classes, .* num_starts to 21 or less"):
        EBCC().fit(annotations)
