import numpy as np
import pytest
import scipy.special

from crowdzoo.aggregation.engine import dirichlet

PRIOR = np.array([[4.0, 1.0, 0.5], [1.0, 4.0, 0.5], [1.0, 1.0, 0.5], [0.01, 1.0, 2.0]])


def test_nothing_counted_is_the_prior():
    logs, divergence = dirichlet.expected_logs(np.zeros((7, 4, 3)), PRIOR)
    assert divergence == 0
    expected = scipy.special.digamma(PRIOR) - scipy.special.digamma(PRIOR.sum(axis=0))
    np.testing.assert_allclose(logs, np.broadcast_to(expected, logs.shape), rtol=1e-12)


def counts_of_all_sizes(prior):
    """From far below the pseudo-counts to far above; and none."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.choice([-200, -12, -6, -4.3, -4, -3.7, -2, 0, 2, 5], (300, *prior.shape))
    return prior * sizes * rng.uniform(0.5, 1.5, sizes.shape) * (rng.random(sizes.shape) < 0.8)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_counts_of_any_size_are_as_in_scipy(scale):
    prior = scale * PRIOR
    counts = counts_of_all_sizes(prior)
    logs, divergence = dirichlet.expected_logs(counts, prior)
    alpha = counts + prior
    expected = scipy.special.digamma(alpha) - scipy.special.digamma(alpha.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(logs, expected, rtol=1e-12, atol=1e-12)
    tables, slope = dirichlet.expected_tables(counts, prior)
    rises = prior * (scipy.special.digamma(alpha) - scipy.special.digamma(prior))
    np.testing.assert_allclose(tables, rises.sum(axis=0), rtol=1e-11)
    sums = prior.sum(axis=0)
    rises = scipy.special.digamma(alpha.sum(axis=1)) - scipy.special.digamma(sums)
    assert slope == pytest.approx(rises.sum(), rel=1e-11)
    parts = scipy.special.gammaln(alpha.sum(axis=1)) - scipy.special.gammaln(sums)
    parts = parts + (counts * expected - scipy.special.gammaln(alpha) + scipy.special.gammaln(prior)).sum(axis=1)
    assert divergence == pytest.approx(parts.sum(), rel=1e-11)
