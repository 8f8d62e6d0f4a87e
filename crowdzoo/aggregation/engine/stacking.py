"""stacking_weights: weights of several predictive densities, by what they say of data that they did not see."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["stacking_weights"]

STEPS = 300
STILL = 1e-6  # largest change of a weight at which EM ends


def stacking_weights(densities: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights, summing to one, whose mixture of the densities gives unseen data the highest likelihood, by EM.

    The objective is concave (Yao, Vehtari, Simpson and Gelman, "Using stacking to average Bayesian predictive
    distributions", Bayesian Analysis 2018, section 3.1).

    Args:
        densities: probability that each of M models gives to each of H observations, positive, [M, H].
        rows: how much each observation counts, not negative, [H].

    Returns:
        Weights, [M]; equal ones where nothing counts.
    """
    weights = np.full(len(densities), 1 / len(densities))
    total = rows.sum()
    if total <= 0:
        return weights
    for _ in range(STEPS):
        shares = weights[:, None] * densities
        shares *= rows / shares.sum(axis=0)
        before, weights = weights, shares.sum(axis=1) / total
        if np.abs(weights - before).max() < STILL:
            break
    return weights / weights.sum()
