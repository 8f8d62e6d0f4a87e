import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from crowdzoo.aggregation.engine import correlated_votes as correlated
from crowdzoo.aggregation.engine.correlated_votes import correlated_votes, weighted_votes


def shares_drawn(concentration, right=0.7, num_tasks=3000, votes=8, seed=0):
    """Votes of three classes from a Dirichlet-multinomial, [N, 3], and the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)
    means = np.where(np.eye(3) > 0, right, (1 - right) / 2)[truth]
    shares = np.stack([rng.dirichlet(concentration * mean) for mean in means])
    return np.stack([rng.multinomial(votes, share) for share in shares]).astype(float), truth


@pytest.mark.parametrize("concentration", [2.0, 10.0])
def test_share_and_concentration_come_back(concentration):
    votes, truth = shares_drawn(concentration)
    known = np.arange(len(votes)) % 2 == 0  # half of the classes are told: the votes alone say little at c = 2
    begin = np.where(known[:, None], np.eye(3)[truth], votes / votes.sum(axis=1, keepdims=True))
    found = correlated_votes(votes, begin, known)
    assert found.concentration == pytest.approx(concentration, rel=0.2)
    assert found.right == pytest.approx(0.7, abs=0.03)
    np.testing.assert_array_equal(found.posteriors[known], np.eye(3)[truth[known]])


def test_posteriors_are_those_of_the_dirichlet_multinomial():
    votes, _ = shares_drawn(4.0, num_tasks=50)
    found = correlated_votes(votes, votes / votes.sum(axis=1, keepdims=True), np.zeros(50, bool))
    alpha = found.concentration * np.where(np.eye(3) > 0, found.right, (1 - found.right) / 2)
    score = np.stack([(gammaln(votes + a) - gammaln(a)).sum(axis=1) for a in alpha], axis=1)
    ratio = np.log(found.posteriors) - (score - logsumexp(score, axis=1, keepdims=True))
    # what is left is the log class prior, the same for all tasks up to each one's normaliser
    np.testing.assert_allclose(ratio - ratio[:, :1], np.broadcast_to(ratio[0] - ratio[0, 0], ratio.shape), atol=1e-9)


def test_the_two_numbers_are_fitted_on_a_part_of_many_tasks(monkeypatch):
    votes, _ = shares_drawn(5.0)
    begin, known = votes / votes.sum(axis=1, keepdims=True), np.zeros(len(votes), bool)
    whole = correlated_votes(votes, begin, known)
    monkeypatch.setattr(correlated, "MOST_TASKS", 1500)
    part = correlated_votes(votes, begin, known)
    assert part.concentration != whole.concentration
    assert part.concentration == pytest.approx(whole.concentration, rel=0.15)
    assert (part.posteriors.argmax(axis=1) == whole.posteriors.argmax(axis=1)).mean() > 0.95


def test_weighted_votes_by_hand():
    table = weighted_votes(np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([0.5, 2.0, 1.0]), 3, 2)
    np.testing.assert_array_equal(table, [[0, 2.5], [1, 0], [0, 0]])
