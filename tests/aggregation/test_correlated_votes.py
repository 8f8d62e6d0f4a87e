import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from crowdzoo.aggregation.engine import correlated_votes as correlated
from crowdzoo.aggregation.engine.correlated_votes import concentration_of, weighted_votes
from crowdzoo.data.annotations import Annotations


def shares_drawn(concentration, right=0.7, num_tasks=3000, votes=8, seed=0):
    """Votes of three classes from a Dirichlet-multinomial, [N, 3], and the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)
    means = np.where(np.eye(3) > 0, right, (1 - right) / 2)[truth]
    shares = np.stack([rng.dirichlet(concentration * mean) for mean in means])
    return np.stack([rng.multinomial(votes, share) for share in shares]).astype(float), truth


@pytest.mark.parametrize("concentration", [4.0, 10.0])
def test_the_concentration_comes_back(concentration):
    votes, truth = shares_drawn(concentration)
    assert concentration_of(votes, np.eye(3)[truth]) == pytest.approx(concentration, rel=0.2)


def test_posteriors_are_those_of_the_dirichlet_multinomial():
    votes, _ = shares_drawn(4.0, num_tasks=50)
    found, log_prior = np.empty_like(votes), np.log([0.2, 0.3, 0.5])
    correlated._write_posteriors(votes, log_prior, 4.0 * 0.7, 4.0 * 0.15, found)
    alpha = np.where(np.eye(3) > 0, 4.0 * 0.7, 4.0 * 0.15)
    score = log_prior + np.stack([(gammaln(votes + a) - gammaln(a)).sum(axis=1) for a in alpha], axis=1)
    np.testing.assert_allclose(np.log(found), score - logsumexp(score, axis=1, keepdims=True), atol=1e-9)


def test_the_two_numbers_are_fitted_on_a_part_of_many_tasks(monkeypatch):
    votes, _ = shares_drawn(5.0)
    begin = votes / votes.sum(axis=1, keepdims=True)
    whole = concentration_of(votes, begin)
    monkeypatch.setattr(correlated, "MOST_TASKS", 1500)
    assert whole != concentration_of(votes, begin) == pytest.approx(whole, rel=0.15)


def test_weighted_votes_by_hand():
    crowd = Annotations.from_arrays([0, 0, 1], ["a", "b", "a"], [1, 1, 0], tasks=range(3))
    table = weighted_votes(crowd, np.array([0.5, 2.0, 1.0]))
    np.testing.assert_array_equal(table, [[0, 2.5], [1, 0], [0, 0]])
