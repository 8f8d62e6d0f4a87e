"""Covariates of comparisons: their checks, and standard errors of their effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.errors import DataError, Setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

STEP = 1e-4  # of a parameter, in rough standard errors, for finite differences of the gradient


def differences_of(annotations: Annotations, covariates: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    """Differences of covariates between the left and the right side, [A, C].

    Args:
        annotations: A preferences.
        covariates: name -> values for the left and right side, [A, 2].

    Raises:
        DataError: values of the wrong shape, or not finite; a covariate that never differs between the sides, or that
            is the same in all comparisons of each task, so that it is part of the tasks' scores.
    """
    assert annotations.right_ids is not None
    tasks = np.stack([annotations.task_ids, annotations.right_ids], axis=1)
    columns = []
    for name, numbers in covariates.items():
        where = f"{Setting('covariates')}: {name!r}"
        try:
            values = np.asarray(numbers, np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{where} is not made of numbers, two for each comparison.") from None
        if values.shape != tasks.shape or not np.isfinite(values).all():
            raise DataError(
                f"{where} must have two finite numbers, for the left and right side, for each of the {len(tasks):,} "
                f"comparisons, got shape {values.shape}{'' if values.shape != tasks.shape else ' with a gap'}."
            )
        if (values[:, 0] == values[:, 1]).all():
            raise DataError(f"{where} is the same on both sides of every comparison, so it has no effect to measure.")
        lowest, highest = np.full((2, annotations.num_tasks), np.nan)
        np.fmin.at(lowest, tasks, values)
        np.fmax.at(highest, tasks, values)
        if not (highest > lowest).any():
            raise DataError(
                f"{where} is a constant of each task, so its effect cannot be told from the scores of the tasks. It "
                "must differ between the comparisons of a task, as the length of a model's answers does."
            )
        columns.append(values[:, 0] - values[:, 1])
    return np.stack(columns, axis=1) if columns else np.zeros((len(tasks), 0))


def standard_errors(
    gradient: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    point: NDArray[np.float64],
    scale: NDArray[np.float64],
    number: int,
) -> NDArray[np.float64]:
    """Standard errors of the last parameters, [number], from the curvature in all parameters; NaN at a saddle.

    The Hessian is not formed: products with it are finite differences of gradients, and conjugate gradients solve for
    columns of its inverse.

    Args:
        gradient: gradient of a log density, from [D] to [D].
        point: its maximum, [D].
        scale: rough variances, [D].
        number: number of parameters at the end.
    """
    if not number:
        return np.zeros(0)
    from scipy.sparse.linalg import LinearOperator, cg

    def curved(direction: NDArray[np.float64]) -> NDArray[np.float64]:
        size = STEP / max(float(np.abs(direction / np.sqrt(scale)).max()), 1e-300)
        ahead, behind = gradient(point + size * direction), gradient(point - size * direction)
        return (behind - ahead) / (2 * size)

    shape = (len(point), len(point))
    curvature = LinearOperator(shape, matvec=curved, dtype=np.float64)
    rough = LinearOperator(shape, matvec=lambda direction: scale * direction, dtype=np.float64)
    variances = np.full(number, np.nan)
    for place in range(number):
        unit = np.zeros(len(point))
        unit[place - number] = 1.0
        solution, failed = cg(curvature, unit, M=rough)
        if not failed and solution[place - number] > 0:
            variances[place] = solution[place - number]
    return np.sqrt(variances)
