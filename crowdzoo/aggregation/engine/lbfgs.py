"""maximize: the top of a smooth function of many variables."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MEMORY = 12  # steps that the curvature is taken from
RISE = 1e-4  # share of the rise that the slope promises, which a step must bring
HALVINGS = 40
ROUNDING = 1e-12  # of the value: a smaller difference says nothing, and the slope decides
FLATTER = 0.9

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Maximum:
    """What `maximize` found.

    Attributes:
        point: [D].
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
        """What a result keeps of it."""
        return {"history": self.history, "converged": self.converged, "num_iterations": len(self.history) - 1}


def maximize(
    function: Callable[[Vector], tuple[float, Vector]], start: Vector, scale: Vector, *, max_iter: int, tol: float
) -> Maximum:
    """Climbs by L-BFGS (Nocedal and Wright, "Numerical Optimization", 2006, algorithms 7.4 and 3.1).

    SciPy's L-BFGS-B decides by values alone. With 100,000 comparisons it ends in their rounding, before the gradient is
    below `tol`, after 121 evaluations where this takes 21 (`BradleyTerry`, SciPy 1.12).

    Args:
        function: value and gradient [D] at a point [D]; finite everywhere.
        start: first point [D].
        scale: rough inverse of the curvature along each axis, positive, [D].
        max_iter: most iterations.
        tol: it has converged when no element of the gradient is larger than this.
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
        value = max(value, trial_value)  # but for rounding it rises
        history.append(value)
    largest = float(np.abs(gradient).max(initial=0))
    return Maximum(point, tuple(history), largest, largest <= tol)


def _direction(gradient: Vector, steps: deque[tuple[Vector, Vector, float]], scale: Vector) -> Vector:
    """The gradient times the inverse of the curvature that the last steps show: the two loops of L-BFGS."""
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
