"""Gradients of functions that are written out in NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np


def finite_differences(function: Callable[[np.ndarray], Any], array: Any, step: float = 1e-5) -> np.ndarray:
    """The gradient of a function written out in NumPy, to hold `gradients` against.

    Args:
        function: from an array to a number.
        array: where; any shape.
        step: to either side, in the array's unit.

    Returns:
        float64, the array's shape: central differences.
    """
    array = np.asarray(array, dtype="float64").copy()
    result = np.zeros_like(array)
    for cell in np.ndindex(array.shape):
        value = array[cell]
        array[cell] = value + step
        above = function(array)
        array[cell] = value - step
        result[cell] = (above - function(array)) / (2 * step)
        array[cell] = value
    return result
