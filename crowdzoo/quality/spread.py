"""Redundancy: how annotations are distributed over tasks and annotators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, eq=False)
class Spread:
    """Distribution of annotations over owners, that is, tasks or annotators.

    Attributes:
        values: numbers of annotations that occur, ascending, int64 [D].
        owners: number of owners with each of these, int64 [D].
        mean: mean number of annotations per owner; None without owners.
        quantiles: quantiles of annotations per owner, at `QUANTILES` (minimum, quartiles, 95 %, maximum); None without
            owners.
        gini: Gini coefficient, 0 if all owners have the same number, near 1 if one has almost all; None if undefined.
    """

    values: NDArray[np.int64]
    owners: NDArray[np.int64]
    mean: float | None
    quantiles: tuple[float, ...] | None
    gini: float | None

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> Spread:
        """Distribution of counts [owners]."""
        values, owners = np.unique(counts, return_counts=True)
        if not len(counts):
            return cls(values, owners, None, None, None)
        quantiles = tuple(np.quantile(counts, QUANTILES).tolist())
        return cls(values, owners, float(counts.mean()), quantiles, gini(counts) if counts.any() else None)


@dataclass(frozen=True, eq=False)
class Redundancy:
    """Annotations per task and per annotator, including those without annotations.

    Attributes:
        tasks: distribution over the N tasks.
        annotators: distribution over the R annotators.
    """

    tasks: Spread
    annotators: Spread


def redundancy(annotations: Annotations) -> Redundancy:
    """Computes the distributions of annotations over tasks and over annotators.

    Args:
        annotations: any kind; for sequences an annotator counts once per task, whatever the number of tokens.
    """
    annotators = annotations.annotator_ids
    if annotations.positions is not None:
        annotators = annotators[annotations.positions == 0]
    counts = np.bincount(annotators, minlength=annotations.num_annotators)
    return Redundancy(Spread.of(annotations.redundancy), Spread.of(counts))


def gini(counts: ArrayLike) -> float:
    """Gini coefficient of counts: mean absolute difference of two owners over twice the mean.

    Args:
        counts: numbers [n], not negative.

    Returns:
        0 (all equal) to 1 - 1/n (one owner has all).

    Raises:
        DataError: no counts, a negative one, or all are 0.
    """
    ascending = np.sort(np.asarray(counts, np.float64))
    if ascending.ndim != 1 or not ascending.size or not ascending[0] >= 0 or not 0 < ascending[-1] < np.inf:
        raise DataError("A Gini coefficient takes finite counts of 0 or more, at least one of them above 0.")
    number = len(ascending)
    return float(((2 * np.arange(1, number + 1) - number - 1) @ ascending) / (number * ascending.sum()))
