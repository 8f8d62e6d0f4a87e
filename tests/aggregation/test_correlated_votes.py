import math

import numpy as np
import pytest
from scipy.stats import dirichlet_multinomial

from crowdzoo.aggregation.engine.correlated_votes import likelihood_of_concentrations, weighted_votes
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
    votes, _ = shares_drawn(concentration)
    concentrations, likelihood = likelihood_of_concentrations(votes, np.full(3, 1 / 3))
    assert concentrations[likelihood.argmax()] == pytest.approx(concentration, rel=0.25)


def test_the_likelihood_is_that_of_the_dirichlet_multinomial_at_the_best_share():
    votes, _ = shares_drawn(4.0, num_tasks=60)
    prior = np.array([0.2, 0.3, 0.5])
    concentrations, likelihood = likelihood_of_concentrations(votes, prior)
    orders = sum(
        np.log(float(math.factorial(8))) - sum(np.log(float(math.factorial(int(v)))) for v in row) for row in votes
    )
    for place in (80, 200, 320):
        best = -np.inf
        for right in np.linspace(0.34, 0.99, 400):
            alphas = concentrations[place] * np.where(np.eye(3) > 0, right, (1 - right) / 2)
            of_classes = [dirichlet_multinomial.pmf(votes.astype(int), alpha, 8) for alpha in alphas]
            best = max(best, np.log(prior @ np.array(of_classes)).sum())
        assert likelihood[place] == pytest.approx(best - orders, abs=0.02)


def test_the_likelihood_of_many_tasks_is_scaled_from_a_part():
    votes, _ = shares_drawn(5.0)
    prior = np.full(3, 1 / 3)
    concentrations, part = likelihood_of_concentrations(votes, prior)  # of 2,000 of the 3,000
    whole = sum(likelihood_of_concentrations(half, prior)[1] for half in (votes[:1500], votes[1500:]))
    assert part.max() == pytest.approx(whole.max(), rel=0.03)
    assert part.max() != pytest.approx(whole.max(), rel=1e-4)  # of some tasks only
    assert np.log(concentrations[part.argmax()] / concentrations[whole.argmax()]) == pytest.approx(0, abs=0.25)


def test_weighted_votes_by_hand():
    crowd = Annotations.from_arrays([0, 0, 1], ["a", "b", "a"], [1, 1, 0], tasks=range(3))
    table = weighted_votes(crowd, np.array([0.5, 2.0, 1.0]))
    np.testing.assert_array_equal(table, [[0, 2.5], [1, 0], [0, 0]])
