"""Multinomial logistic regression with a kernel, for few tasks of known class and any number of features."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

MOST_STEPS = 300
STILL = 1e-3  # largest change of a dual coefficient or a slope at which the fit ends


class KernelLogistic(NamedTuple):
    """A fitted model: scores are `offsets @ slopes + kernel @ dual`.

    Attributes:
        slopes: slopes of the offsets, [M].
        dual: coefficients of the training rows, [n, K].
    """

    slopes: NDArray[np.float64]
    dual: NDArray[np.float64]

    def probabilities(self, offsets: NDArray[np.float64], kernel: NDArray[np.float64]) -> NDArray[np.float64]:
        """Class probabilities of m rows, [m, K].

        Args:
            offsets: offsets of these rows, [m, K, M].
            kernel: kernel between these rows and the training rows, [m, n].
        """
        return softmax(offsets @ self.slopes + kernel @ self.dual, axis=-1)


def kernel_logistic(
    offsets: NDArray[np.float64],
    kernel: NDArray[np.float64],
    truth: NDArray[np.float64],
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
) -> KernelLogistic:
    """Fits the posterior mode of slopes and functions; each class's function has a Gaussian process prior.

    The Hessian of the log-likelihood is replaced by its bound (I - 1/K) / 2, so that a single matrix of the size of
    the training rows is inverted once (Böhning, "Multinomial logistic regression algorithm", 1992); steps are
    accelerated by Nesterov's momentum. Between them, the slopes take Newton steps of at most one prior standard
    deviation.

    Args:
        offsets: centred log-probabilities of the training rows by M methods, [n, K, M].
        kernel: covariance of a class's function at the training rows, [n, n], positive semi-definite.
        truth: one-hot classes, [n, K].
        mean: mean of the normal prior of the slopes, [M].
        covariance: covariance of that prior, [M, M].
    """
    number, precision = len(kernel), np.linalg.inv(covariance)
    steps = np.linalg.inv(kernel / 2 + np.eye(number))
    slopes, dual = mean.copy(), np.zeros_like(truth)
    before = dual
    flat = offsets.reshape(-1, len(mean))
    for step in range(MOST_STEPS):
        ahead = dual + step / (step + 3) * (dual - before)
        probabilities = softmax(offsets @ slopes + kernel @ ahead, axis=-1)
        before, dual = dual, ahead + steps @ (truth - probabilities - ahead)
        change = np.abs(dual - before).max(initial=0.0)
        if step % 3 == 0:
            probabilities = softmax(offsets @ slopes + kernel @ dual, axis=-1)
            means = np.einsum("nk,nkm->nm", probabilities, offsets)
            gradient = (truth - probabilities).ravel() @ flat - precision @ (slopes - mean)
            curvature = (probabilities.reshape(-1, 1) * flat).T @ flat - means.T @ means + precision
            leap = np.linalg.solve(curvature, gradient)
            leap /= max(np.sqrt(leap @ precision @ leap), 1.0)  # in prior standard deviations
            slopes = slopes + leap
            change = max(change, np.abs(leap).max())
            if change < STILL:
                break
    return KernelLogistic(slopes, dual)
