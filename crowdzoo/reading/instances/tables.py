"""Tables: named columns of numbers, categories, texts, vectors and images, with missing values."""

import dataclasses
import functools
import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.data.instance_kinds import CATEGORY, IMAGE, NUMBER, TABLES, TEXT, VECTOR
from crowdzoo.errors import DataError, DataWarning, Setting, did_you_mean
from crowdzoo.files.served_model import served_name
from crowdzoo.reading.instances.images import NO_PATH, checked_images
from crowdzoo.reading.instances.table import (
    BESIDE,
    InstanceReader,
    Table,
    check_features,
    decoded,
    parse_features,
    read_table,
    shown_names,
)
from crowdzoo.reading.instances.vectors import is_list, is_number, is_text, numbers_in, vector_reader
from crowdzoo.reading.tables.layout import Layout

# A text column is taken as free text or ids if it has at least this many values, in this share of its rows
_MANY_VALUES = 20
_MANY_ROWS = 0.5
# Number of rows used to recognize a file, since reading all of it twice would be slow
_FIRST_ROWS = 1000
_MANY_AT_ONCE = 100_000


def tables(inputs: Mapping[str, str] | None = None) -> InstanceReader:
    """Reader of instances that are rows of a table.

    Args:
        inputs: column -> one of INPUT_TYPES, for columns whose type should not be inferred.
    """
    return dataclasses.replace(READER, values=lambda table: (table_columns(table, inputs), None))


def served_tables(inputs: Mapping[str, tuple[str, int]], declared: Mapping[str, str]) -> InstanceReader | None:
    """Reader of instances for a served model, if they are rows of a table.

    Args:
        inputs: names of the model's inputs -> their NumPy type names and ranks (1: one value per instance).
        declared: columns -> types that do not follow from the model's inputs, such as IMAGE.

    Returns:
        A reader of `typed_columns`; None for a model with the input `instances`.
    """
    if "instances" in inputs:
        return None
    types = {served_name(name): kind for name, kind in declared.items()}
    for name, (dtype, rank) in inputs.items():
        types.setdefault(name, VECTOR if rank > 1 else NUMBER if dtype.startswith("float") else CATEGORY)
    return typed_tables({name: types[name] for name in inputs})


def typed_tables(types: Mapping[str, str]) -> InstanceReader:
    """Reader of instances with `typed_columns`."""
    return dataclasses.replace(READER, values=lambda table: (typed_columns(table, types), None))


def table_columns(table: Table, inputs: Mapping[str, str] | None = None) -> dict[str, np.ndarray]:
    """Training columns of a table: all except `task`, `gold` and `split`.

    Columns of integers, floats, decimals or booleans are numbers, and so are text columns most of whose values are
    numbers, true or false. A column called `text` contains texts, other text columns contain categories. Empty values
    are missing, and so is nan in numbers. Columns of lists of numbers are vectors, which are never missing. Columns of
    image paths must be declared in `inputs`; the images are opened and checked, and none may be missing.

    Args:
        table: result of `read_table(..., as_text=True)`.
        inputs: column -> one of INPUT_TYPES, for columns whose type should not be inferred.

    Returns:
        Name -> float64 [N] with NaN for missing numbers, float32 [N, D] for vectors, objects (`Path`) [N] for images,
        or objects (strings) [N] with "" for missing values; in the order of the file.

    Raises:
        DataError: an unknown column in `inputs`; a column of an unsupported type (such as dates); values that are not
            finite numbers; a column without values; categories that differ in most rows; two columns with the same
            served name. Names file, row, column and value.
    """
    inputs = inputs or {}
    names = _feature_names(table)
    for name in inputs:
        if name not in names:
            raise DataError(f"{table.name}: has no column {name!r}, which inputs names.{did_you_mean(name, names)}")
    served: dict[str, str] = {}
    for name in names:
        other = served.setdefault(served_name(name), name)
        if other != name:
            both = f"columns {other!r} and {name!r} would both be served as {served_name(name)!r}"
            raise DataError(f"{table.name}: {both}. Rename one of them.")
    types: dict[str, tuple[str, str]] = {}
    for name in names:
        try:
            types[name] = name, inputs.get(name) or _found_type(table, name)
        except DataError:
            _typed(table, types)  # report errors of earlier columns first
            raise
    columns = _typed(table, types)
    for name, values in columns.items():
        if _is_empty(values):
            raise DataError(f"{table.name}: column {name!r} is empty in every row. Leave the column out.")
    return columns


def given_columns(x: Any, inputs: Mapping[str, str] | None = None) -> dict[str, np.ndarray]:
    """`table_columns` for a table in memory.

    Args:
        x: a pandas frame, or a mapping: name of a column -> N values, where None, NaN and pandas' NA are missing.
        inputs: as for `table_columns`.

    Raises:
        DataError: see `table_columns`; or columns of different lengths, or a column of several types.
    """
    columns = {}
    for name in x:
        try:
            values = list(x[name]) if np.ndim(x[name]) > 1 else x[name]
            if (inputs or {}).get(str(name)) == IMAGE:
                values = [None if value is None else os.fspath(value) for value in values]
            columns[str(name)] = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError(f"instances: column {name!r} is not a column of one type: {error}") from None
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"instances: columns have different lengths: {lengths}")
    rows = np.arange(next(iter(lengths.values()), 0))
    return table_columns(Table("instances", columns, rows, outside_images=True), inputs)


def typed_columns(table: Table, types: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Convert columns of a table to the types of a trained model, regardless of the file's types.

    Args:
        table: result of `read_table(..., as_text=True)`.
        types: `served_name` of each column -> one of INPUT_TYPES.

    Returns:
        Served name -> array as for `table_columns`, in the order of `types`. Columns may be empty.

    Raises:
        DataError: a missing column, one that the model does not have, or values that are not numbers.
    """
    columns = {served_name(name): name for name in _feature_names(table)}
    missing = [name for name in types if name not in columns]
    extra = [columns[name] for name in columns if name not in types]
    if missing:
        listed = f"{shown_names(columns.values())}.{did_you_mean(missing[0], extra)}"
        raise DataError(f"{table.name}: has no column {missing[0]!r}, which the model takes; its columns are {listed}")
    if extra:
        raise DataError(f"{table.name}: the model takes {shown_names(types)}, not {extra[0]!r}. Leave the column out.")
    return _typed(table, {name: (columns[name], kind) for name, kind in types.items()})


def input_type(name: str, values: np.ndarray, inputs: Mapping[str, str]) -> str:
    """Type of a column of `table_columns`, one of INPUT_TYPES.

    Args:
        name: name of the column, original or served.
        values: some of its values, numbers or strings.
        inputs: as for `table_columns`.
    """
    values = np.asarray(values)
    if values.dtype.kind in "biuf":
        return NUMBER if values.ndim == 1 else VECTOR
    declared = {served_name(column): kind for column, kind in inputs.items()}
    return declared.get(served_name(name), TEXT if name == TEXT else CATEGORY)


def _looks_like(path: Path, header: Sequence[str], layout: Layout | None) -> bool:
    """In the first rows, a column is text or has missing values; except for only texts, and lists of features."""
    names = set(header) - set(BESIDE)
    if "task" not in header or not names or "features" in names:
        return False
    if TEXT in names:
        return len(names) > 1
    with warnings.catch_warnings():  # guessed columns are reported when the table is read
        warnings.simplefilter("ignore", DataWarning)
        first = read_table(path, None, check_features, layout, as_text=True, most_rows=_FIRST_ROWS)
    if first.rows is None or not len(first.rows):
        return False  # all rows are bad; the reader will raise the error
    try:
        columns = table_columns(first)
    except DataError:  # the reader raises it for all rows; the reader of feature vectors would complain about words
        return True
    return any(values.dtype == object or values.ndim > 1 or np.isnan(values).any() for values in columns.values())


def _feature_names(table: Table) -> list[str]:
    return [name for name in table.columns if name not in BESIDE]


def _found_type(table: Table, name: str) -> str:
    """Infer the type of a column of a training table."""
    kind = decoded(table.columns[name]).type
    if is_number(kind):
        return NUMBER
    if is_list(kind):
        return VECTOR
    if not is_text(kind):
        raise DataError(_other_type(table.name, name, kind))
    if name == TEXT:
        return TEXT
    if _are_numbers(table, name):
        return NUMBER
    _check_decimal(table, name)
    _check_categories(table, name)
    return CATEGORY


def _typed(table: Table, columns: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Values by name, given the table's column and type for each; for images, paths, which stay in memory."""
    images = {name: _images(table.in_memory(own), own) for name, (own, kind) in columns.items() if kind == IMAGE}
    readers = {
        name: vector_reader(table, own) if kind == VECTOR else functools.partial(_column, name=own, kind=kind)
        for name, (own, kind) in columns.items()
        if kind != IMAGE
    }
    others = table.values(lambda part: {name: read(part) for name, read in readers.items()}) if readers else {}
    return {name: images[name] if name in images else others[name] for name in columns}


def _is_empty(values: Any) -> bool:
    """Whether all values are missing; vectors never are."""
    starts = range(0, len(values), _MANY_AT_ONCE)
    parts = (values[start : start + _MANY_AT_ONCE] for start in starts)
    if values.dtype.kind == "f":
        return values.ndim == 1 and all(np.isnan(part).all() for part in parts)
    return all((part == "").all() for part in parts)


def _images(table: Table, name: str) -> np.ndarray:
    columns = {"image": pa.array(_categories(table, name), pa.large_string())}
    paths = dataclasses.replace(table, columns=columns, theirs={"image": table.theirs.get(name, name)})
    paths.refuse("image", paths.names("image") == "", NO_PATH)
    return checked_images(paths)


def _column(table: Table, name: str, kind: str) -> np.ndarray:
    column = decoded(table.columns[name])
    if kind == TEXT and is_text(column.type):
        return table.names(name, trim=False)
    if kind != NUMBER:
        return _categories(table, name)
    if is_text(column.type):
        numbers, unreadable = _parsed(table, name)
        reason = (
            "is not a number, but most values of this column are. Correct it, leave it empty where it is missing, or "
            f"declare the column as categories: {Setting('inputs', {name: CATEGORY})}."
        )
        table.refuse(name, unreadable, reason)
    elif is_number(column.type):
        numbers = numbers_in(column).astype(np.float64)
    elif pa.types.is_null(column.type):
        numbers = np.full(len(column), np.nan)
    else:
        raise DataError(_other_type(table.name, name, column.type))
    with np.errstate(over="ignore"):
        infinite = np.isinf(numbers.astype(np.float32))
    written = None if is_text(column.type) else numbers
    table.refuse(name, infinite, "is not a finite number of 32 bits. Leave it empty where it is missing.", written)
    return numbers


def _categories(table: Table, name: str) -> np.ndarray:
    """Names of categories, objects [N]; equal names share an object, so that rows take eight bytes."""
    if pa.types.is_null(table.columns[name].type):
        return np.full(len(table.columns[name]), "", object)
    encoded = pa.array(table.names(name), pa.large_string()).dictionary_encode()
    return np.array([*encoded.dictionary.to_pylist(), None], object)[encoded.indices.to_numpy()]


def _check_categories(table: Table, name: str) -> None:
    """Reject a column of dates, free text or ids."""
    different: set[str] = set()
    known = 0
    for part in table.parts():
        values = _categories(part, name)
        values = values[values != ""]
        known += len(values)
        different.update(values.tolist())
    if different and all(_is_date(value) for value in different):
        raise DataError(_no_dates(table.name, name, "dates"))
    if len(different) >= _MANY_VALUES and len(different) > _MANY_ROWS * known:
        raise DataError(
            f"{table.name}: column {name!r} has {len(different):,} different values in {known:,} rows: leave it "
            f"out, or use it as a text, {Setting('inputs', {name: TEXT})}. For categories, say {CATEGORY} there."
        )


def _are_numbers(table: Table, name: str) -> bool:
    """Whether most values of a text column are numbers."""
    unreadable = there = 0
    for part in table.parts():
        unreadable += int(_parsed(part, name)[1].sum())
        there += int((part.names(name) != "").sum())
    return 2 * unreadable < there or not there


def _check_decimal(table: Table, name: str) -> None:
    """Reject numbers with a decimal comma, which would be read as categories."""
    if table.decimal == "." and _are_numbers(dataclasses.replace(table, decimal=","), name):
        reason = f"is not a number. For numbers with a decimal comma give {Setting('decimal', ',')}."
        for _ in table.each(lambda part: part.refuse(name, _parsed(part, name)[1], reason)):
            pass


def _parsed(table: Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Parse numbers from text, float64 [N], NaN where missing; and which texts are not numbers, bool [N]."""
    numbers, unreadable, empty = parse_features(pa.array(table.names(name), pa.large_string()), table.decimal)
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
    return f"{file}: column {name!r} holds {kind}; a column of a table holds numbers, truth values, text or vectors."


READER = InstanceReader(
    **vars(TABLES),
    looks_like=_looks_like,
    check_header=check_features,
    values=lambda table: (table_columns(table), None),
    as_text=True,
)
