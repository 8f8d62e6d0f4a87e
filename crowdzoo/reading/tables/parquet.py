"""Annotations as a Parquet file that stores its vocabularies."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdzoo.data.annotations import VOCABULARIES
from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.data.vocabulary import sort_names
from crowdzoo.errors import BadRow, DataError, Setting, short_repr
from crowdzoo.files.arrow import open_parquet, parquet_batches, parquet_errors
from crowdzoo.files.json import JsonError, check_format, parse_json
from crowdzoo.files.text import is_utf8
from crowdzoo.files.writing import atomic_file
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.plain_array import answer_rows, code_names, json_originals, plain_array
from crowdzoo.reading.tables.sources import BATCH_ROWS, Batch, Source

KEY = b"crowdzoo.annotations"
VERSION = 1  # version of the metadata
ROWS = 1 << 20
Columns = Mapping[str, tuple[np.ndarray, np.ndarray | None]]  # values of each column, and the names behind codes


class ParquetSource(Source):
    """A Parquet file. Rows count from 0.

    Args:
        path: path of the file.
        kind: kind of the labels; None: the kind stored by `write_parquet`, else "classification".
        layout: names of the columns.

    Raises:
        DataError: not a regular file, damaged, or written with another kind.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str | None = None, layout: Layout | None = None):
        own_kind, names, repeats = read_metadata(path)
        if None not in (kind, own_kind) and kind != own_kind:
            raise DataError(f"{os.fspath(path)} was written with {Setting('kind', own_kind)}, got kind '{kind}'")
        super().__init__(kind or own_kind or "classification", layout)
        self.path = Path(path)
        self.name = os.fspath(path)
        # left and right share their names, which are listed if one of the columns lacks some of them
        sides = [names[side] for side in ("left", "right") if side in names]
        self.names = names | (dict.fromkeys(("left", "right"), sides[0]) if sides else {})
        self.repeats = repeats
        self.own = own_kind is not None
        with open_parquet(path) as file:
            schema = file.schema_arrow
        self.code_names = code_names(schema)
        if self.code_names:
            with contextlib.suppress(DataError):  # not a table of annotations; `batches` raises the error
                self.take_names(schema.names)

    def read_header(self) -> list[str]:
        """Names of the columns."""
        with open_parquet(self.name) as file:
            return list(file.schema_arrow.names)

    def batches(self) -> Iterator[Batch]:
        """Iterate over the file from its start."""
        with open_parquet(self.name) as file, parquet_errors(self.name):
            self.found = theirs = self.match(file.schema_arrow.names)
            # check types before reading
            self._plain({ours: pa.array([], file.schema_arrow.field(name).type) for ours, name in theirs.items()})
        start = 0
        for part in parquet_batches(self.name, list(theirs.values()), BATCH_ROWS):
            with parquet_errors(self.name, f" after row {start}"):
                arrays = {ours: part.column(part.schema.get_field_index(name)) for ours, name in theirs.items()}
                columns, rows = self._plain(arrays, start)
            yield self._batch(columns, theirs, start if rows is None else rows)
            start += part.num_rows

    def _plain(self, arrays: dict[str, pa.Array], start: int = 0) -> tuple[dict[str, pa.Array], np.ndarray | None]:
        """Plain columns, and the rows of answers; see `answer_rows`."""
        arrays, rows = answer_rows(arrays, self.found, self.code_names, self.name, start)
        return {ours: plain_array(array, ours, self.found[ours], self.name) for ours, array in arrays.items()}, rows

    def _batch(self, columns: dict[str, pa.Array], theirs: dict[str, str], start: int | np.ndarray) -> Batch:
        """Batch without rows that are not valid UTF-8, which Arrow does not check."""
        bad: dict[int, tuple[BadRow, str]] = {}
        rows = start if isinstance(start, np.ndarray) else range(start, start + len(next(iter(columns.values()))))
        for column, array in columns.items():
            try:
                array.validate(full=True)
            except pa.ArrowInvalid:
                for place, value in enumerate(array.cast(pa.large_binary()).to_pylist()):
                    text = "" if value is None else value.decode("utf-8", "backslashreplace")
                    if value is not None and text.encode() != value and place not in bad:
                        reason = "is not UTF-8. Write the file again."
                        bad[place] = BadRow(self.name, int(rows[place]), theirs[column], text, reason), text
        if not bad:
            return Batch(columns, start, json_originals(columns))
        good = np.ones(len(next(iter(columns.values()))), dtype=bool)
        good[list(bad)] = False
        columns = {column: array.filter(pa.array(good)) for column, array in columns.items()}
        return Batch(columns, np.asarray(rows)[good], json_originals(columns), list(bad.values()))


def write_parquet(
    path: str | os.PathLike[str], kind: str, columns: Columns, repeats: bool = False, classes_sorted: bool = False
) -> Path:
    """Write names as columns, and what columns cannot express as metadata of the file.

    The metadata contain the kind, and each vocabulary that differs from the sorted names of its column.

    Args:
        path: path of the file, which is written atomically.
        kind: kind of the labels.
        columns: name -> values [A] and None, or codes [A] and the names behind them; in the order of the file.
        repeats: whether an annotator may have several rows for a task.
        classes_sorted: whether the order of the classes has no meaning; it is then not stored if sorted.

    Returns:
        The path.

    Raises:
        DataError: names that are neither strings nor integers.
    """
    vocabularies = {column: names for column, (_, names) in columns.items() if names is not None}
    named = {column: _arrow_names(names, VOCABULARIES[column]) for column, names in vocabularies.items()}
    # without it, readers assume the default answers, or that the order has no meaning
    always = ["label"] if LABEL_KINDS[kind].answers or not classes_sorted else []
    listed = {
        column: _listed(columns[column][0], names, column in always and not pa.types.is_integer(names.type))
        for column, names in named.items()
    }
    about = {"version": VERSION, "kind": kind, "names": listed, "repeats": repeats}
    types = {column: pa.from_numpy_dtype(values.dtype) for column, (values, _) in columns.items()}
    types |= {column: names.type for column, names in named.items()}
    schema = pa.schema(types, metadata={KEY: json.dumps(about).encode()})
    total = len(columns["annotator"][0])
    with atomic_file(path) as file, pq.ParquetWriter(file, schema) as writer:
        for start in range(0, max(total, 1), ROWS):
            parts = {column: pa.array(values[start : start + ROWS]) for column, (values, _) in columns.items()}
            arrays = [named[column].take(part) if column in named else part for column, part in parts.items()]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return Path(path)


def read_metadata(path: str | os.PathLike[str]) -> tuple[str | None, dict[str, np.ndarray], bool]:
    """Read the metadata written by `write_parquet`.

    Returns:
        The kind, or None for a file of other origin; column -> names in code order, for columns whose names are not
        just sorted; and whether an annotator may have several rows for a task.
    """
    name = os.fspath(path)
    with open_parquet(path) as file:
        metadata = file.schema_arrow.metadata or {}
    if KEY not in metadata:
        return None, {}, False
    try:
        about = parse_json(metadata[KEY])
        check_format(about["version"], name, newest=VERSION)
        kind, listed = LABEL_KINDS[about["kind"]], about["names"]
        if not listed.keys() <= VOCABULARIES.keys() - {*kind.number_columns}:
            raise ValueError(f"holds names of {short_repr(list(listed))}")
        names = {column: _names_array(entry) for column, entry in listed.items() if entry is not None}
        return kind.name, names, about.get("repeats") is True
    except DataError:
        raise
    except (JsonError, LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        reason = error if isinstance(error, ValueError) else f"holds {short_repr(metadata[KEY])}"
        raise DataError(f"{name}: the footer is damaged: {KEY.decode()} {reason}. Write the file again.") from None


def _names_array(entry: Any) -> np.ndarray:
    """Names of a stored vocabulary."""
    kind, names = {"integer": int, "string": str}[entry["type"]], entry["names"]
    if not isinstance(names, list) or any(type(name) is not kind for name in names) or len(set(names)) < len(names):
        raise ValueError(f"holds no list of names, but {short_repr(entry)}")
    array = np.empty(len(names), dtype=np.int64 if kind is int else object)
    array[:] = names
    return array


def _arrow_names(names: np.ndarray, what: str) -> pa.Array:
    if names.dtype.kind == "i":
        return pa.array(names)
    for name in names.tolist():
        if not isinstance(name, str):
            kind = type(name).__name__
            raise DataError(f"{what} holds {name!r}, of type {kind}; a file holds names that are strings or integers.")
        if not is_utf8(name):
            raise DataError(f"{what} holds {name!r}, which is half a character; a file holds UTF-8.")
    return pa.array(names, type=pa.large_string())


def _listed(codes: np.ndarray, names: pa.Array, always: bool = False) -> dict[str, Any] | None:
    """The vocabulary to store, or None if reading the column gives the same one and it is not `always` needed."""
    if not always and len(names) and np.bincount(codes, minlength=len(names)).all():
        order, _ = sort_names(names)
        if (order == np.arange(len(order))).all():
            return None
    return {"type": "integer" if pa.types.is_integer(names.type) else "string", "names": names.to_pylist()}
