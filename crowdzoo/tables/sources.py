"""Where annotations come from, as a stream of batches: the base of all sources, Parquet files and Arrow tables."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.errors import BadRow, DataError
from crowdzoo.files.arrow import one_array, open_parquet, parquet_batches, parquet_errors
from crowdzoo.files.regular import check_regular

__all__ = [
    "KINDS",
    "OPTIONAL",
    "Batch",
    "ParquetSource",
    "Source",
    "TableSource",
    "did_you_mean",
    "plain_array",
]

BATCH_ROWS = 1 << 17
KINDS = ("classification", "regression", "sequence")
REQUIRED = ("task", "annotator", "label")
OPTIONAL = ("confidence", "timestamp")


@dataclass
class Batch:
    """Some rows of a source.

    Attributes:
        columns: name -> Arrow array [n]; text, integers or floats.
        lines: the first row's line number where the rows stand on consecutive lines, else int64 [n].
        originals: gives the rows' own text for row numbers of this batch.
        bad: rows that could not even be taken apart, each with its text.
    """

    columns: dict[str, pa.Array]
    lines: int | np.ndarray
    originals: Callable[[Sequence[int]], list[str]]
    bad: list[tuple[BadRow, str]] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        """Rows in `columns`."""
        return len(next(iter(self.columns.values())))

    def line_numbers(self) -> np.ndarray:
        """The line number of every row, int64 [n]."""
        if isinstance(self.lines, np.ndarray):
            return self.lines
        return np.arange(self.lines, self.lines + self.num_rows, dtype=np.int64)


class Source:
    """A stream of batches that can be walked through more than once.

    Attributes:
        name: name of the source in error messages.
        text: ids are text, so that ids that are all integers become integers.
        trim: white space around a value does not count.
        sparse: a column may be absent from some rows; a column that no row has does not exist.
    """

    name: str
    text = False
    trim = False
    sparse = False

    def __init__(self, kind: str):
        self.required = (*REQUIRED, "position") if kind == "sequence" else REQUIRED
        self.label_is_number = kind == "regression"

    def batches(self) -> Iterator[Batch]:
        """Walks through the source from its start."""
        raise NotImplementedError

    def display(self, column: str, value: Any) -> Any:
        """A value as the user knows it."""
        return value

    def match(self, header: Sequence[str]) -> dict[str, str]:
        """Finds the columns that matter.

        Args:
            header: the source's column names.

        Returns:
            Our name -> the source's name; `worker` counts as `annotator` where there is no `annotator`.

        Raises:
            DataError: for a missing column, or one that is there twice.
        """
        found = {}
        for column in (*self.required, *OPTIONAL):
            name = "worker" if column == "annotator" and column not in header and "worker" in header else column
            if list(header).count(name) > 1:
                raise DataError(f"{self.name}: column '{name}' is there {list(header).count(name)} times. Keep one.")
            if name in header:
                found[column] = name
        missing = [column for column in self.required if column not in found]
        if missing:
            raise DataError(self._missing(missing[0], header, set(found.values())))
        return found

    def _missing(self, column: str, header: Sequence[str], taken: set[str]) -> str:
        message = f"{self.name}: column '{column}' is missing."
        if column == "annotator":
            message = f"{self.name}: column 'annotator' (or 'worker') is missing."
        free = {name.casefold(): name for name in header if name not in taken}
        close = difflib.get_close_matches(column, list(free), n=1)
        if close:
            return f"{message} Did you mean '{free[close[0]]}'? Rename that column to '{column}'."
        if len(header) == 1 and any(mark in header[0] for mark in ",;\t|"):
            mark = next(mark for mark in ",;\t|" if mark in header[0])
            return (
                f"{message} The whole header is one column, {header[0]!r}, so the values seem to be separated by "
                f"{mark!r}: .csv files are separated by commas, .tsv files by tabs."
            )
        shown = ", ".join(f"'{name}'" for name in header[:20]) + (", ..." if len(header) > 20 else "")
        if column == "position":
            message += " A sequence needs one row a token, with the token's position from 0."
        return f"{message} The columns are {shown}."


class TableSource(Source):
    """Arrow columns of equal length. Rows count from 0."""

    def __init__(
        self, columns: dict[str, pa.Array], kind: str, name: str, objects: dict[str, np.ndarray] | None = None
    ):
        super().__init__(kind)
        self.columns = columns
        self.name = name
        # columns that hold places in one of these arrays instead of names
        self.objects = objects or {}

    def display(self, column: str, value: Any) -> Any:
        """A value as the user knows it."""
        return self.objects[column][value] if column in self.objects and value is not None else value

    def batches(self) -> Iterator[Batch]:
        """Walks through the table."""
        total = len(next(iter(self.columns.values())))
        for start in range(0, total, 8 * BATCH_ROWS):
            part = {name: column.slice(start, 8 * BATCH_ROWS) for name, column in self.columns.items()}
            yield Batch(part, start, _json_originals(part))


class ParquetSource(Source):
    """A Parquet file. Rows count from 0."""

    def __init__(self, path: str | os.PathLike[str], kind: str):
        super().__init__(kind)
        self.path = Path(path)
        self.name = os.fspath(path)
        check_regular(path)

    def batches(self) -> Iterator[Batch]:
        """Walks through the file from its start."""
        with open_parquet(self.path) as file, parquet_errors(self.path):
            found = self.match(file.schema_arrow.names)
            for column, name in found.items():  # a type that is refused is not read
                plain_array(pa.array([], file.schema_arrow.field(name).type), column, name, self.name)
        start = 0
        for part in parquet_batches(self.path, list(found.values()), BATCH_ROWS):
            with parquet_errors(self.path, f" after row {start}"):
                columns = {
                    column: plain_array(part.column(part.schema.get_field_index(name)), column, name, self.name)
                    for column, name in found.items()
                }
            yield self._batch(columns, found, start)
            start += part.num_rows

    def _batch(self, columns: dict[str, pa.Array], found: dict[str, str], start: int) -> Batch:
        """The rows, but for those with bytes that are not UTF-8, which Arrow reads without a look."""
        bad: dict[int, tuple[BadRow, str]] = {}
        for column, array in columns.items():
            try:
                array.validate(full=True)
            except pa.ArrowInvalid:
                for place, value in enumerate(array.cast(pa.large_binary()).to_pylist()):
                    text = "" if value is None else value.decode("utf-8", "backslashreplace")
                    if value is not None and text.encode() != value and place not in bad:
                        reason = "is not UTF-8. Write the file again."
                        bad[place] = BadRow(self.name, start + place, found[column], text, reason), text
        if not bad:
            return Batch(columns, start, _json_originals(columns))
        good = np.ones(len(next(iter(columns.values()))), dtype=bool)
        good[list(bad)] = False
        columns = {column: array.filter(pa.array(good)) for column, array in columns.items()}
        return Batch(columns, start + np.flatnonzero(good), _json_originals(columns), list(bad.values()))


def plain_array(array: pa.Array | pa.ChunkedArray, column: str, name: str, source: str) -> pa.Array:
    """A typed column as int64, float64, large_string or timestamp, without dictionaries.

    Args:
        array: the column.
        column: our name of it.
        name: the source's name of it.
        source: name of the source in error messages.

    Raises:
        DataError: for a type that cannot be an id or a number.
    """
    array = one_array(array) if isinstance(array, pa.ChunkedArray) else array
    kind = array.type
    try:
        plain = _plain(array.dictionary_decode() if pa.types.is_dictionary(kind) else array, column)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{source}: column '{name}' of type {kind} holds what cannot be read: {reason}") from None
    if plain is None:
        raise DataError(
            f"{source}: column '{name}' has the type {kind}. Ids are strings or integers, labels too or numbers."
        )
    return plain


def _plain(array: pa.Array, column: str) -> pa.Array | None:
    """As `plain_array`; None for a type that cannot be an id or a number."""
    kind = array.type
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and column not in OPTIONAL):
        try:
            return array.cast(pa.int64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # beyond int64, or with decimal places
            if pa.types.is_integer(kind):
                return array.cast(pa.large_string())
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else float(value) for value in array.to_pylist()], pa.float64())
    if pa.types.is_float16(kind):
        values = array.to_numpy(zero_copy_only=False).astype(np.float64)
        return pa.array(values, mask=array.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_floating(kind):
        return array.cast(pa.float64())
    if (
        pa.types.is_null(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_boolean(kind)
    ):
        return array.cast(pa.large_string())
    if column == "timestamp" and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        # a unit finer than microseconds is cut, a time beyond what microseconds can count is refused
        finer = pa.types.is_timestamp(kind) and kind.unit == "ns"
        return array.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=not finer)
    return None


def did_you_mean(value: object, names: Sequence[Any]) -> str:
    """A hint for a name that is not there, "" where nothing is near."""
    if len(names) > 2000:
        return ""
    texts = {str(name): name for name in names}
    folded = {text.casefold(): text for text in texts}
    close = difflib.get_close_matches(str(value).casefold(), list(folded), n=1)
    return f" Did you mean {texts[folded[close[0]]]!r}?" if close else ""


def _json_originals(columns: dict[str, pa.Array]) -> Callable[[Sequence[int]], list[str]]:
    def originals(rows: Sequence[int]) -> list[str]:
        wanted = pa.array(rows, type=pa.int64())
        taken = {name: column.take(wanted).to_pylist() for name, column in columns.items()}
        return [
            json.dumps(dict(zip(taken, values, strict=True)), default=str)
            for values in zip(*taken.values(), strict=True)
        ]

    return originals
