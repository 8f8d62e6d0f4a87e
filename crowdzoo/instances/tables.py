"""Tables: a column a feature, of numbers or categories, with missing values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.errors import DataError, did_you_mean
from crowdzoo.files.served_name import served_name
from crowdzoo.instances.table import Table, check_has, read_table, shown_names
from crowdzoo.instances.vectors import _is_number
from crowdzoo.tables.numbers import parse_numbers
from crowdzoo.tables.suffixes import column_names

__all__ = ["CATEGORY", "NUMBER", "column_types", "holds_table", "table_columns"]

NUMBER = "number"
CATEGORY = "category"
BESIDE = ("task", "gold", "split")

# A column of text is taken for a free text or an id where it has at least so many values, in so many of its rows
_MANY_VALUES = 20
_MANY_ROWS = 0.5
_WORDS = {"true": "1", "false": "0"}


def holds_table(path: str | Path, categorical: Collection[str] = ()) -> bool:
    """Whether a file of instances is a table: a column is of text, or has missing values, or is declared categorical.

    Args:
        path: .parquet, .csv or .csv.gz with a column `task`.
        categorical: names of columns whose numbers are categories.

    Returns:
        False where all columns are complete numbers (or lists of numbers): these are feature vectors.

    Raises:
        DataError: as `read_table`.
    """
    if {"features", "text"} & set(column_names(path)):
        return False
    if categorical:
        return True
    columns = table_columns(read_table(path, None, _check_header, as_text=True))
    return any(values.dtype == object or np.isnan(values).any() for values in columns.values())


def table_columns(
    table: Table, types: Mapping[str, str] | None = None, categorical: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """The columns of a table that are neither `task`, `gold` nor `split`.

    A column of integers, floats, decimals or truth values is of numbers; so is a column of text with numbers, true
    and false only. Another column of text is of categories. Empty is missing, and so is nan.

    Args:
        table: of `read_table(..., as_text=True)`.
        types: name -> NUMBER or CATEGORY of all columns, such as a trained model's; None finds them out.
        categorical: names of columns of categories, whatever they hold; where `types` is None.

    Returns:
        Name -> float64 [N] with NaN for missing numbers, or objects (strings) [N] with "" for missing categories; in
        the order of the file, or of `types`.

    Raises:
        DataError: a column that is missing, not known, or of a type that is neither (dates, lists); numbers that are
            none or not finite; a column without any value, or with a value of its own in most rows. It names file,
            row, column and value.
    """
    names = _feature_names(table)
    if types is not None:
        _check_names(table.name, names, list(types))
        return {name: _column(table, name, types[name]) for name in types}
    for name in categorical:
        if name not in names:
            raise DataError(f"{table.name}: has no column {name!r} to be categorical.{did_you_mean(name, names)}")
    served: dict[str, str] = {}
    for name in names:
        other = served.setdefault(served_name(name), name)
        if other != name:
            raise DataError(
                f"{table.name}: columns {other!r} and {name!r} would both be served as {served_name(name)!r}. Rename "
                "one of them."
            )
    return {name: _found_column(table, name, CATEGORY if name in categorical else None) for name in names}


def column_types(columns: Mapping[str, np.ndarray]) -> dict[str, str]:
    """NUMBER or CATEGORY of each column of `table_columns`."""
    return {name: NUMBER if values.dtype.kind == "f" else CATEGORY for name, values in columns.items()}


def _check_header(name: str, header: Sequence[str]) -> None:
    check_has(name, header, ("task",))
    if not set(header) - set(BESIDE):
        raise DataError(f"{name}: has no features. Add columns beside {shown_names(header)}.")


def _feature_names(table: Table) -> list[str]:
    return [name for name in table.columns if name not in BESIDE]


def _check_names(file: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuses a file that has not the columns that the model was trained on."""
    missing = [name for name in wanted if name not in names]
    extra = [name for name in names if name not in wanted]
    if missing:
        raise DataError(
            f"{file}: has no column {missing[0]!r}, which the model takes; its columns are {shown_names(names)}."
            f"{did_you_mean(missing[0], extra)}"
        )
    if extra:
        raise DataError(
            f"{file}: the model takes no column {extra[0]!r}, only {shown_names(wanted)}. Leave the column out."
        )


def _found_column(table: Table, name: str, kind: str | None) -> np.ndarray:
    """A column of a training table, whose type is found out if it is not given."""
    column = _decoded(table.columns[name])
    if kind is None:
        kind = NUMBER if _is_number(column.type) else CATEGORY if _is_text(column.type) else None
        if kind is None:
            raise DataError(_other_type(table.name, name, column.type))
        if kind == CATEGORY and _are_numbers(table, name):
            kind = NUMBER
        elif kind == CATEGORY:
            _check_categories(table, name)
    values = _column(table, name, kind)
    missing = np.isnan(values) if kind == NUMBER else values == ""
    if missing.all():
        raise DataError(f"{table.name}: column {name!r} is empty in every row. Leave the column out.")
    return values


def _column(table: Table, name: str, kind: str) -> np.ndarray:
    if kind == CATEGORY:
        return _categories(table, name)
    column = _decoded(table.columns[name])
    if _is_text(column.type):
        numbers, unreadable = _parsed(table, name)
        reason = (
            "is not a number, but most values of this column are. Correct it, leave it empty where it is missing, or "
            "declare the column categorical."
        )
        table.complain(np.flatnonzero(unreadable), name, table.names(name), reason)
    elif _is_number(column.type):
        numbers = _floats(column)
    elif pa.types.is_null(column.type):
        numbers = np.full(len(column), np.nan)
    else:
        raise DataError(_other_type(table.name, name, column.type))
    with np.errstate(over="ignore"):
        infinite = np.isinf(numbers.astype(np.float32))
    reason = "is not a finite number of 32 bits. Leave it empty where it is missing."
    table.complain(np.flatnonzero(infinite), name, numbers, reason)
    return numbers


def _categories(table: Table, name: str) -> np.ndarray:
    """Names of categories, objects [N]; equal ones are one object, so that a row takes eight bytes."""
    if pa.types.is_null(table.columns[name].type):
        return np.full(len(table.columns[name]), "", object)
    encoded = pa.array(table.names(name), pa.large_string()).dictionary_encode()
    return np.array([*encoded.dictionary.to_pylist(), None], object)[encoded.indices.to_numpy()]


def _check_categories(table: Table, name: str) -> None:
    """Refuses a column of dates, of free text, or of ids."""
    values = _categories(table, name)
    known = values[values != ""]
    different = set(known.tolist())
    if different and all(_is_date(value) for value in different):
        raise DataError(_no_dates(table.name, name, "dates"))
    if len(different) >= _MANY_VALUES and len(different) > _MANY_ROWS * len(known):
        raise DataError(
            f"{table.name}: column {name!r} has {len(different):,} different values in {len(known):,} rows: leave it "
            "out, or use it as a text. Where they are categories all the same, declare the column categorical."
        )


def _are_numbers(table: Table, name: str) -> bool:
    """Whether a column of text holds numbers: most of its different values are."""
    _, unreadable = _parsed(table, name)
    values = table.names(name)
    different = set(values.tolist()) - {""}
    return 2 * len(set(values[unreadable].tolist())) < len(different) or not different


def _parsed(table: Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers written as text, float64 [N], NaN where missing, and where the text is none, bool [N]."""
    texts = pa.array(table.names(name), pa.large_string())
    empty = pc.equal(texts, "").to_numpy(zero_copy_only=False)
    lower = pc.utf8_lower(texts)
    for word, number in _WORDS.items():
        texts = pc.if_else(pc.equal(lower, word), pa.scalar(number, pa.large_string()), texts)
    numbers, unreadable = parse_numbers("feature", texts, empty)
    return np.where(empty | unreadable, np.nan, numbers), unreadable


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _no_dates(file: str, name: str, what: str) -> str:
    return (
        f"{file}: column {name!r} holds {what}, which are neither numbers nor categories. Give a number, such as the "
        "year or the days since a day, or leave the column out."
    )


def _other_type(file: str, name: str, kind: pa.DataType) -> str:
    if pa.types.is_temporal(kind):
        return _no_dates(file, name, str(kind))
    if pa.types.is_null(kind):
        return f"{file}: column {name!r} is empty in every row. Leave the column out."
    return f"{file}: column {name!r} holds {kind}; a column of a table holds numbers, truth values or text."


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _floats(column: pa.Array) -> np.ndarray:
    """Numbers of Arrow's own types, float64 [N], NaN where missing."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False).astype(np.float64)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
