"""Columns of the tables: names, and numbers that are not always defined."""

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray


def name_column(names: NDArray[np.generic], codes: NDArray[np.int64] | None = None) -> pa.Array:
    """Names as a column: integers stay integers, anything else is text.

    Args:
        names: code -> name.
        codes: which name each row has, [n]. Default: all names in order.
    """
    if np.issubdtype(names.dtype, np.integer):
        column = pa.array(names)
    else:
        texts = [name if isinstance(name, str) else str(name) for name in names.tolist()]
        column = pa.array(texts, pa.large_string())
    return column if codes is None else column.take(pa.array(codes))


def ratio(above: ArrayLike, below: ArrayLike, otherwise: float = np.nan) -> NDArray[np.float64]:
    """One divided by the other.

    Args:
        above: any shape.
        below: the same shape.
        otherwise: the value where `below` is 0.
    """
    top, bottom = np.asarray(above, np.float64), np.asarray(below, np.float64)
    return np.divide(top, bottom, out=np.full(bottom.shape, otherwise), where=bottom > 0)


def defined(values: NDArray[np.generic], where: NDArray[np.bool_]) -> pa.Array:
    """A column that is null where a measure is not defined.

    Args:
        values: [n].
        where: whether the measure is defined, bool [n].
    """
    return pa.array(values, mask=~where)
