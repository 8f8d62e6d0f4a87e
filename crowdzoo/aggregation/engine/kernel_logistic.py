"""Multinomial logistic regression with a kernel: few tasks of known class, any number of features."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

MOST_STEPS = 300
STILL = 1e-3  # largest change of a dual coefficient at which the fit ends
FIRST_SLOPE = 0.3


class KernelLogistic(NamedTuple):
    """What is fitted: scores are `slope * offsets + kernel @ dual`.

    Attributes:
        slope: of the offsets, zero or more.
        dual: coefficients of the training rows, [n, K].
    """

    slope: float
    dual: NDArray[np.float64]

    def probabilities(self, offsets: NDArray[np.float64], kernel: NDArray[np.float64]) -> NDArray[np.float64]:
        """Class probabilities of m rows, [m, K].

        Args:
            offsets: [m, K].
            kernel: between these rows and the training rows, [m, n].
        """
        return softmax(self.slope * offsets + kernel @ self.dual, axis=-1)


def kernel_logistic(
    offsets: NDArray[np.float64], kernel: NDArray[np.float64], truth: NDArray[np.float64]
) -> KernelLogistic:
    """The posterior mode of slope and functions; the prior of each class's function is a Gaussian process.

    The Hessian of the log-likelihood is replaced by its bound (I - 1/K) / 2, so that one matrix of the size of the
    training rows is inverted, once (Böhning, "Multinomial logistic regression algorithm", 1992); steps are accelerated
    by Nesterov's momentum. The slope takes Newton steps in between; its prior is a standard normal distribution.

    Args:
        offsets: logarithms of probabilities of the training rows, centred, [n, K].
        kernel: covariance of a class's function at the training rows, [n, n], positive semi-definite.
        truth: one-hot classes, [n, K].
    """
    number = len(kernel)
    steps = np.linalg.inv(kernel / 2 + np.eye(number))
    slope, dual = FIRST_SLOPE, np.zeros_like(truth)
    before = dual
    for step in range(MOST_STEPS):
        ahead = dual + step / (step + 3) * (dual - before)
        probabilities = softmax(slope * offsets + kernel @ ahead, axis=-1)
        before, dual = dual, ahead + steps @ (truth - probabilities - ahead)
        change = np.abs(dual - before).max(initial=0.0)
        if step % 3 == 0:
            probabilities = softmax(slope * offsets + kernel @ dual, axis=-1)
            means = (probabilities * offsets).sum(axis=1)
            gradient = ((truth - probabilities) * offsets).sum() - slope
            curvature = ((probabilities * offsets**2).sum(axis=1) - means**2).sum() + 1
            leap = max(slope + gradient / curvature, 0.0) - slope
            slope += float(leap)
            change = max(change, abs(leap))
            if change < STILL:
                break
    return KernelLogistic(slope, dual)
