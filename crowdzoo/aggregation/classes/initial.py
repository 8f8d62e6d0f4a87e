"""Where an algorithm that iterates begins, if the caller says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["checked_initial", "initial_posteriors"]


def initial_posteriors(initial: ArrayLike | Aggregation | None, annotations: Annotations) -> NDArray[np.float64] | None:
    """Posteriors [N, K] to begin from; None stays None.

    Args:
        initial: posteriors [N, K], or an earlier `Aggregation` of the same tasks and classes, whose posteriors count.
        annotations: N tasks, K classes.

    Raises:
        DataError: another shape, rows that are not probabilities, or an `Aggregation` of other tasks or classes.
    """
    if initial is None:
        return None
    if isinstance(initial, Aggregation):
        for name in ("tasks", "classes"):
            if not np.array_equal(getattr(initial, name), getattr(annotations, name)):
                raise DataError(f"initial: that Aggregation has other {name} than the annotations.")
        return initial.posteriors
    return checked_initial(initial, (annotations.num_tasks, annotations.num_classes))


def checked_initial(initial: ArrayLike, *shapes: tuple[int, ...]) -> NDArray[np.float64]:
    """`initial` as float64 of one of `shapes`, with rows (last axis) that are probabilities.

    Raises:
        DataError: another shape, or rows that are not probabilities.
    """
    start = np.asarray(initial, np.float64)
    if start.shape not in shapes:
        kinds = {2: "posteriors [N, K]", 3: "confusions [R, K, K]"}
        wanted = " or ".join(f"{kinds[len(shape)]} = {list(shape)}" for shape in shapes)
        raise DataError(f"initial holds {wanted}, got shape {list(start.shape)}.")
    if not (start >= 0).all() or not np.allclose(start.sum(axis=-1), 1, atol=1e-6):
        raise DataError("initial holds probabilities: each row is non-negative and sums to one.")
    return start
