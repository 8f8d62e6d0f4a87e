"""Folders of results: two tables and a summary, written in a single step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.checks.constraints import TABLE_FORMATS
from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import DataError, short_repr
from crowdzoo.files.json import FORMAT_VERSION, check_format
from crowdzoo.files.writing import atomic_folder, write_table

if TYPE_CHECKING:
    import pyarrow as pa

# of all kinds of results: one may replace another
RESULT_FILES = frozenset(
    {f"{table}.{ending}" for table in ("tasks", "pairs", "tokens", "spans", "annotators") for ending in TABLE_FORMATS}
    | {"summary.json", "tags.txt", "regions.json"}
)
# kind of labels -> what was aggregated, and the class that reads it
_HELD = {kind.name: (kind.title, kind.result) for kind in LABEL_KINDS.values()}
_HELD["multi-label"] = ("several labels per task", "MultiLabelAggregation")


def write_result(
    folder: str | os.PathLike[str],
    files: Sequence[str],
    tables: Sequence[pa.Table],
    summary: dict[str, Any],
    more: Mapping[str, Callable[[Path], object] | None] | None = None,
) -> Path:
    """Writes tables and a summary as JSON.

    Args:
        folder: folder to create, with its parents. An earlier result there is replaced.
        files: file names of the tables, whose suffixes are their formats, and last that of the summary.
        tables: tables in the order of the files.
        summary: summary that JSON can represent.
        more: names of further files of the result, and a function that writes each of them; None writes nothing.

    Returns:
        The folder.

    Raises:
        DataError: the folder contains other files; they are left unchanged.
    """
    folder = Path(folder)
    check_result_folder(folder)
    with atomic_folder(folder, replace=True) as fresh:
        for name, table in zip(files[:-1], tables, strict=True):
            with open(fresh / name, "wb") as file:  # Arrow might interpret a path as a URL
                write_table(table, file, Path(name).suffix[1:])
        text = json.dumps({**summary, "format_version": FORMAT_VERSION}, indent=2)
        (fresh / files[-1]).write_text(text + "\n", encoding="utf-8")
        for name, write in (more or {}).items():
            if write is not None:
                write(fresh / name)
    return folder


def check_result_folder(folder: Path) -> None:
    """Raises an error for a folder with files that do not belong to a result.

    Raises:
        DataError: there is such a file.
    """
    if folder.exists():
        other_files = sorted({path.name for path in folder.iterdir()} - RESULT_FILES) if folder.is_dir() else ["a file"]
        if other_files:
            raise DataError(f"{folder} contains something else ({other_files[0]}): use an empty or a new folder.")


def _names(values: Sequence[Any]) -> NDArray[Any]:
    """Converts names as in `Annotations`: int64 if every name is an integer, else objects."""
    return np.asarray(values, np.int64 if all(type(value) is int for value in values) else object)


class ReadResult:
    """Reads a result of `write_result`; each part is checked when it is read.

    Args:
        folder: folder of the result.
        files: names as in `write_result`.
        kind: kind of labels, or "multi-label".

    Raises:
        DataError: a file is missing or damaged, or the result is for another kind of labels; later, a requested part is
            missing, or of another type or size.
    """

    def __init__(self, folder: str | os.PathLike[str], files: Sequence[str], kind: str):
        from crowdzoo.files.arrow import read_parquet
        from crowdzoo.files.json import read_json

        self.folder = Path(folder)
        self.file = files[-1]
        missing = [name for name in files if not (self.folder / name).is_file()]
        if self.file in missing:
            raise self._missing(missing[0], kind)
        self.summary = read_json(self.folder / self.file, constants=True)
        if not isinstance(self.summary, dict):
            raise self._error(self.file, f"does not contain an object, but {short_repr(self.summary)}")
        check_format(self.summary.get("format_version"), self.folder / self.file)
        own = self.summary.get("kind", "sequence" if "scheme" in self.summary else "classification")
        if not isinstance(own, str) or own not in _HELD:
            raise self._error(self.file, f"has the kind {short_repr(own)}, which is not one of {', '.join(_HELD)}")
        if own != kind:
            title, reader = _HELD[own]
            wanted = _HELD[kind][0]
            raise DataError(
                f"{self.folder} holds an aggregation of {title}, not of {wanted} ({reader}.from_parquet reads it)."
            )
        if missing:
            raise self._missing(missing[0], kind)
        self.tables = {name: read_parquet(self.folder / name) for name in files[:-1]}

    def _missing(self, name: str, kind: str) -> DataError:
        return DataError(f"{self.folder} is not the folder of an aggregation of {_HELD[kind][0]}: it has no {name}.")

    def has(self, file: str, column: str) -> bool:
        """Whether a table has a column with this name."""
        return column in self.tables[file].column_names

    def names(self, file: str, column: str) -> NDArray[Any]:
        """Reads a column of names: int64 [n] or objects [n]."""
        import pyarrow as pa

        array = self._column(file, column)
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type) or _is_number(array.type)):
            raise self._error(file, f"column '{column}' holds {array.type}, not names")
        return array.to_numpy(zero_copy_only=False)

    def numbers(self, file: str, column: str, *shape: int, whole: bool = False) -> NDArray[Any]:
        """Reads a column of numbers [n], or of lists of numbers [n, *shape].

        Args:
            file: name of the table's file.
            column: name of the column.
            shape: lengths of the lists, and of nested lists.
            whole: whether the numbers are integers.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        array = self._column(file, column)
        length = len(array)
        for size in shape:
            is_list = pa.types.is_list(array.type)
            if not is_list or array.null_count or pc.list_value_length(array).unique().to_pylist() not in ([size], []):
                raise self._error(file, f"column '{column}' does not have lists of {size} numbers")
            array = array.flatten()
        if not (pa.types.is_integer(array.type) if whole else _is_number(array.type)) or array.null_count:
            raise self._error(file, f"column '{column}' holds {array.type} or gaps, not numbers")
        return array.to_numpy(zero_copy_only=False).reshape(length, *shape)

    def names_and_counts(self, tasks: str, annotators: str) -> dict[str, Any]:
        """Reads names of tasks, and numbers of annotations, from two tables as attributes of a result."""
        return {
            "tasks": self.names(tasks, "task"),
            "annotations_per_task": self.numbers(tasks, "annotations", whole=True),
            "annotations_per_annotator": self.numbers(annotators, "annotations", whole=True),
        }

    def flags(self, file: str, column: str) -> NDArray[np.bool_]:
        """Reads a column of booleans."""
        array = self._column(file, column)
        if str(array.type) != "bool" or array.null_count:
            raise self._error(file, f"column '{column}' holds {array.type} or gaps, not true and false")
        return array.to_numpy(zero_copy_only=False)

    def codes(self, file: str, column: str, number: int) -> NDArray[Any]:
        """Reads a column of codes from 0 to number - 1."""
        numbers = self.numbers(file, column, whole=True)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < number:
            raise self._error(file, f"column '{column}' has a code outside 0 to {number - 1}")
        return numbers

    def value(self, key: str, *kinds: type | None) -> Any:
        """Reads a value of the summary with one of some types; None represents null."""
        value = self._listed(key)
        if type(value) not in kinds and not (value is None and None in kinds):
            raise self._error(self.file, f"{key!r} is {short_repr(value)}")
        return value

    def optional(self, file: str, column: str, *shape: int) -> NDArray[Any] | None:
        """Reads as `numbers`; None if the column is missing."""
        return self.numbers(file, column, *shape) if self.has(file, column) else None

    def list_of_names(self, key: str) -> NDArray[Any]:
        """Reads a list of strings and integers from the summary, as an array."""
        value = self._listed(key)
        if not isinstance(value, list) or any(type(name) not in (str, int, float, bool) for name in value):
            raise self._error(self.file, f"{key!r} must be a list of names, got {short_repr(value)}")
        return _names(value)

    def optional_list(self, key: str, *shape: int) -> NDArray[Any] | None:
        """Reads as `list_of_numbers`; None if it is null."""
        return None if self.value(key, list, None) is None else self.list_of_numbers(key, *shape)

    def list_of_numbers(self, key: str, *shape: int | None, whole: bool = False) -> NDArray[Any]:
        """Reads a list of numbers from the summary, [*shape]; None in `shape` is any length."""
        value = self._listed(key)
        try:
            array = np.asarray(value if isinstance(value, list) else None)
        except ValueError:  # lists of different lengths
            array = np.asarray(None)
        if array.size == 0 and np.issubdtype(array.dtype, np.floating):
            array = array.reshape([size or 0 for size in shape]) if 0 in [size or 0 for size in shape] else array
        fits = array.ndim == len(shape) and all(
            size in (None, have) for size, have in zip(shape, array.shape, strict=True)
        )
        numbers = np.signedinteger if whole and array.size else (np.signedinteger, np.floating)
        if not issubclass(array.dtype.type, numbers) or not fits:
            raise self._error(self.file, f"{key!r} does not have the expected numbers: {short_repr(value)}")
        return array.astype(np.int64 if whole else np.float64)

    def _column(self, file: str, column: str) -> pa.Array:
        from crowdzoo.files.arrow import one_array

        if self.tables[file].column_names.count(column) != 1:
            raise self._error(file, f"has no column '{column}', or two")
        return one_array(self.tables[file].column(column))

    def _listed(self, key: str) -> Any:
        if key not in self.summary:
            raise self._error(self.file, f"has no {key!r}")
        return self.summary[key]

    def _error(self, file: str, reason: str) -> DataError:
        return DataError(f"{self.folder / file} {reason}. Aggregate again, or copy the folder again.")


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
