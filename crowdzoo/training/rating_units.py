"""Training targets for ratings, and their mean and standard deviation."""

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import InstanceSettings


def rating_unit(ratings: ArrayLike | Annotations) -> tuple[float, float]:
    """Center and unit of ratings for models and crowd layers, computed from the ratings and never from gold.

    Args:
        ratings: `Annotations` of kind regression, or numbers of any shape (NaN is ignored).

    Returns:
        Mean and standard deviation, in the ratings' unit. If all ratings are equal, the latter is 1.

    Raises:
        DataError: annotations of another kind, no ratings, or an infinite rating.

    Example:
        >>> from crowdzoo.models import rating_unit
        >>> rating_unit([2.0, 4.0, float("nan")])  # mean and standard deviation
        (3.0, 1.0)
    """
    if isinstance(ratings, Annotations):
        if not ratings.label_kind.has_numbers:
            raise DataError(f"only ratings have a unit, got annotations of kind {ratings.kind!r}.")
        ratings = ratings.labels
    values = np.asarray(ratings, dtype="float64")
    values = values[~np.isnan(values)]
    if values.size == 0:
        raise DataError("there are no ratings to learn from")
    with np.errstate(over="ignore", invalid="ignore"):
        center, unit = float(values.mean()), float(values.std())
    if not (np.isfinite(center) and np.isfinite(unit)):
        raise DataError(f"ratings must be finite numbers below 1e150 in size, the largest is {np.abs(values).max()}")
    # the deviation of equal numbers may be a rounding error
    return center, unit if unit > 1e-12 * max(abs(center), 1e-300) else 1.0


def rating_targets(
    settings: InstanceSettings, annotations: Annotations, ratings: np.ndarray | None
) -> Annotations | np.ndarray:
    """Checks and returns the training targets of a regression.

    Args:
        settings: with `method`, `low` and `high`.
        annotations: needed by every method but "aggregated".
        ratings: `[N]`, one number per task, NaN where missing; for method "aggregated".

    Returns:
        The annotations, or float32 `[N, 1]`.

    Raises:
        DataError: the ratings are missing, have the wrong shape, are infinite or outside the scale.
    """
    if settings.method == AGGREGATED:
        if ratings is None:
            raise DataError("method aggregated of kind regression needs ratings [N]")
        targets = np.asarray(ratings, dtype="float64")
        if targets.ndim != 1:
            raise DataError(f"ratings must have shape [tasks], got {targets.shape}")
        infinite = np.flatnonzero(np.isinf(targets))
        if len(infinite):
            raise DataError(f"ratings must be finite or NaN: that of task code {infinite[0]} is {targets[infinite[0]]}")
        return targets[:, None].astype("float32")
    annotations.check_scale(settings.low, settings.high)
    return annotations
