"""Helpers for tables: columns of names, numbers that may be undefined, and intervals."""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

NORMAL_95 = 1.644854  # quantile of the normal distribution, for intervals of 90 %
NORMAL_975 = 1.959964  # quantile of the normal distribution, for intervals of 95 %
Value = TypeVar("Value")


def name_column(names: NDArray[np.generic], codes: NDArray[np.int64] | None = None) -> pa.Array:
    """Converts names to a column: integers stay integers, everything else becomes text.

    Args:
        names: code -> name.
        codes: code of each row's name, [n]. Default: all names in order.
    """
    if np.issubdtype(names.dtype, np.integer):
        column = pa.array(names)
    else:
        texts = [name if isinstance(name, str) else str(name) for name in names.tolist()]
        column = pa.array(texts, pa.large_string())
    return column if codes is None else column.take(pa.array(codes))


def ratio(above: ArrayLike, below: ArrayLike, otherwise: float = np.nan) -> NDArray[np.float64]:
    """Divides element by element.

    Args:
        above: numerators, any shape.
        below: denominators, the same shape.
        otherwise: value where `below` is 0.
    """
    top, bottom = np.asarray(above, np.float64), np.asarray(below, np.float64)
    return np.divide(top, bottom, out=np.full(bottom.shape, otherwise), where=bottom > 0)


def means(groups: NDArray[np.int64], values: ArrayLike, number: int, otherwise: float = np.nan) -> NDArray[np.float64]:
    """Mean of the values of each group.

    Args:
        groups: group of each value, [n].
        values: [n].
        number: of groups, G.
        otherwise: the mean of a group without values.
    """
    weights: Any = values
    return ratio(np.bincount(groups, weights, number), np.bincount(groups, minlength=number), otherwise)


def interval(name: str, *ends: Value) -> dict[str, Value]:
    """A value and the ends of its interval under their names: `ends` are value, low and high."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def defined(values: NDArray[np.generic], where: NDArray[np.bool_]) -> pa.Array:
    """Creates a column that is null where a measure is undefined.

    Args:
        values: values of the measure, [n].
        where: whether the measure is defined, bool [n].
    """
    return pa.array(values, mask=~where)


class Estimate(NamedTuple):
    """A value and its interval.

    Attributes:
        value: the estimate.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def wilson(
    shares: ArrayLike, numbers: ArrayLike, deviations: float = NORMAL_975
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval for shares: lower and upper ends.

    Args:
        shares: [n], 0 to 1; NaN if undefined.
        numbers: sample size of each share, [n].
        deviations: half width in standard errors. Default: 95 % interval.

    Returns:
        Two arrays [n]; NaN for undefined shares.

    Source:
        E. B. Wilson: Probable Inference, the Law of Succession, and Statistical Inference. JASA 22, 1927.
    """
    share, number = np.asarray(shares, np.float64), np.maximum(np.asarray(numbers, np.float64), 1)
    square = deviations**2
    centre = (share + square / (2 * number)) / (1 + square / number)
    width = deviations / (1 + square / number) * np.sqrt(share * (1 - share) / number + square / (4 * number**2))
    return np.maximum(centre - width, 0.0), np.minimum(centre + width, 1.0)
