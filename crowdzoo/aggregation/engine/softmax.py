"""softmax: probabilities from logarithms that need not sum to one."""

import numpy as np
from numpy.typing import NDArray


def softmax(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows (last axis) as probabilities, and the logarithm of each row's sum, [..., 1]."""
    peak = logs.max(axis=-1, keepdims=True)
    shares = np.exp(logs - peak)
    total = shares.sum(axis=-1, keepdims=True)
    shares /= total
    return shares, peak + np.log(total)
