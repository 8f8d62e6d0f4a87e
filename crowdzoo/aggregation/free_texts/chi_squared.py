"""upper_quantile: quantiles of the chi-squared distribution."""

import math
from statistics import NormalDist

import numpy as np


def upper_quantile(share: float, degrees: int) -> float:
    """What a chi-squared variable exceeds with a probability.

    Newton's iteration from the approximation of Wilson and Hilferty, 1931; the tail is a finite sum of Poisson's terms,
    and of a normal tail for odd degrees.

    Args:
        share: the probability.
        degrees: of freedom, 1 or more.
    """
    spread = 2 / (9 * degrees)
    found = degrees * max(1 - spread + NormalDist().inv_cdf(1 - share) * math.sqrt(spread), 0.05) ** 3
    odd = degrees % 2
    powers = np.arange(degrees // 2) + odd / 2
    norms = np.array([math.lgamma(power + 1) for power in powers.tolist()])
    for _ in range(50):
        half = found / 2
        tail = np.exp(powers * math.log(half) - half - norms).sum() + (math.erfc(math.sqrt(half)) if odd else 0.0)
        power = degrees / 2 - 1
        density = math.exp(power * math.log(half) - half - math.lgamma(power + 1)) / 2
        step = (tail - share) / density
        found = max(found + step, found / 10)
        if abs(step) < 1e-13 * found:
            break
    return found
