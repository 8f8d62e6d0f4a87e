"""Mean and standard deviation of ratings, which networks learn in."""

from typing import Any

import numpy as np

from crowdzoo.annotations import Annotations
from crowdzoo.errors import DataError

__all__ = ["rating_unit"]


def rating_unit(ratings: Any) -> tuple[float, float]:
    """Center and unit of ratings for models and crowd layers: of the ratings themselves, never of gold.

    Args:
        ratings: `Annotations` of kind regression, or numbers of any shape (NaN is left out).

    Returns:
        Mean and standard deviation, in the ratings' unit. Where all ratings are equal the latter is 1: there is
        nothing to measure by.

    Raises:
        DataError: another kind, or no rating at all, or one that is infinite.
    """
    if isinstance(ratings, Annotations):
        if ratings.kind != "regression":
            raise DataError(f"only ratings have a unit. Received: annotations of kind {ratings.kind!r}.")
        ratings = ratings.labels
    values = np.asarray(ratings, dtype="float64")
    values = values[~np.isnan(values)]
    if values.size == 0:
        raise DataError("there is no rating to learn from")
    with np.errstate(over="ignore", invalid="ignore"):
        center, unit = float(values.mean()), float(values.std())
    if not (np.isfinite(center) and np.isfinite(unit)):
        raise DataError(f"ratings must be finite numbers below 1e150 in size, the largest is {np.abs(values).max()}")
    # the deviation of equal numbers may be a rounding error
    return center, unit if unit > 1e-12 * max(abs(center), 1e-300) else 1.0
