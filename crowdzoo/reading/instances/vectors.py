"""Feature vectors: a column of lists, or one column per feature."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.data.instance_kinds import VECTORS
from crowdzoo.data.numbers import parse_numbers
from crowdzoo.errors import SHOWN, BadRow, DataError, Setting
from crowdzoo.reading.instances.table import BESIDE, InstanceReader, Table, check_features, decoded


def _features(table: Table) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Vectors float32 [N, D], and the names of their columns; None for a list column."""
    names = [name for name in table.columns if name not in BESIDE]
    listed = table.columns.get("features")
    if listed is not None and not (pa.types.is_integer(listed.type) or pa.types.is_floating(listed.type)):
        return table.values(vector_reader(table, "features")), None

    def matrix(part: Table) -> np.ndarray:
        features = np.stack([_numeric(part, name) for name in names], axis=1)
        _check_finite(part, features, names)
        return np.ascontiguousarray(features)

    return table.values(matrix), tuple(names)


def vector_reader(table: Table, name: str) -> Callable[[Table], np.ndarray]:
    """Return a function that reads a column of lists of part of a table as float32 [n, D]; D is the most common length.

    Raises:
        DataError: the column is not one of lists of numbers, or most are empty.
    """
    kind = table.columns[name].type
    if not is_list(kind) or not is_number(kind.value_type):
        raise DataError(f"{table.name}: column {name!r} holds {kind}; lists of numbers are wanted there.")
    counts: Counter[int] = Counter()
    for part in table.parts():
        lengths, times = np.unique(_lengths(part.columns[name].drop_null()), return_counts=True)
        counts.update(dict(zip(lengths.tolist(), times.tolist(), strict=True)))
    # in a tie, the shorter length
    common = min(counts, key=lambda length: (-counts[length], length), default=0)

    def vectors(part: Table) -> np.ndarray:
        vectors = _matrix_of_lists(part, name, common)
        _check_finite(part, vectors, [f"{name}[{index}]" for index in range(common)])
        return np.ascontiguousarray(vectors)

    return vectors


def _lengths(column: pa.Array) -> np.ndarray:
    """Lengths of lists, int64 [N]."""
    if pa.types.is_fixed_size_list(column.type):
        return np.full(len(column), column.type.list_size)
    return pc.list_value_length(column).to_numpy(zero_copy_only=False)


def _check_finite(table: Table, matrix: np.ndarray, names: Sequence[str]) -> None:
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        rows = []
        assert table.rows is not None
        for row, column in bad[:SHOWN].tolist():
            value = float(matrix[row, column])
            reason = "is not a finite number of 32 bits. Give a number, or leave the task out."
            if np.isnan(value):
                number = Setting("inputs", {names[column]: "number"})
                reason += f" To learn from missing values, declare the column: {number}."
            rows.append(BadRow(table.name, int(table.rows[row]), names[column], value, reason))
        raise DataError("Some features cannot be used.", rows, len(bad))


def _matrix_of_lists(table: Table, name: str, common: int) -> np.ndarray:
    """Lists of equal length as float32 [N, D]."""
    column = table.columns[name]
    missing = column.is_null().to_numpy(zero_copy_only=False)
    table.refuse(name, missing, "is empty. Give a list of numbers.", [None] * len(column))
    lengths = _lengths(column)
    reason = f"numbers in this list, where most rows have {common}. Give every task the same number of features."
    table.refuse(name, lengths != common, reason, lengths)
    if not common:
        raise DataError(f"{table.name}: column {name!r} holds empty lists. Give every task its features.")
    return _floats(column.flatten()).reshape(len(column), common)


def _numeric(table: Table, name: str) -> np.ndarray:
    """A feature column, float32 [N]; NaN where empty."""
    column = decoded(table.columns[name])
    if is_number(column.type):
        return _floats(column)
    if is_text(column.type):
        texts = table.names(name)
        _, unreadable = parse_numbers("feature", pa.array(texts, pa.large_string()), np.zeros(len(texts), bool))
        reason = "is not a number. Columns other than task, gold and split are features; drop or correct it."
        table.refuse(name, unreadable, reason)
    raise DataError(f"{table.name}: column '{name}' holds {column.type}; numbers are wanted there.")


def is_number(kind: pa.DataType) -> bool:
    """Whether a type is numeric or boolean."""
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is a string."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def numbers_in(column: pa.Array) -> np.ndarray:
    """Numbers of a numeric Arrow column, [N], NaN where missing."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False)


def _floats(column: pa.Array) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return numbers_in(column).astype(np.float32)


READER = InstanceReader(**vars(VECTORS), check_header=check_features, values=_features)
