"""upper_quantile: quantiles of the chi-squared distribution."""

import math

import numpy as np


def upper_quantile(share: float, degrees: int) -> float:
    """What a chi-squared variable exceeds with a probability, by bisection.

    The tail is a finite sum of Poisson's terms, and of a normal tail for odd degrees (M. Abramowitz and I. A. Stegun:
    Handbook of Mathematical Functions, 1964, 26.4.4 and 26.4.5).

    Args:
        share: the probability.
        degrees: of freedom, 1 or more.
    """
    powers = np.arange(degrees // 2) + degrees % 2 / 2
    norms = np.array([math.lgamma(power + 1) for power in powers.tolist()])
    low, high = 0.0, 10.0 * degrees + 1000
    while low < (middle := (low + high) / 2) < high:
        tail = np.exp(powers * math.log(middle / 2) - middle / 2 - norms).sum()
        tail += math.erfc(math.sqrt(middle / 2)) * (degrees % 2)
        low, high = (middle, high) if tail > share else (low, middle)
    return low
