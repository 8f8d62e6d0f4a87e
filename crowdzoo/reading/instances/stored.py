"""Columns and values that stand in files instead of memory, and look like arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.files.arrow import ColumnFile, mapped_columns


class StoredTexts:
    """Strings in a file, read when they are asked for: `[row]` is a string, `[rows]` an array of objects.

    Args:
        column: large_string [N], mapped from the file.
    """

    dtype = np.dtype(object)

    def __init__(self, column: pa.ChunkedArray):
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @property
    def shape(self) -> tuple[int]:
        """(N,)."""
        return (len(self),)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (int, np.integer)):
            return self._column[int(rows)].as_py()
        found = (
            self._column[rows] if isinstance(rows, slice) else self._column.take(pa.array(np.arange(len(self))[rows]))
        )
        return np.array([*found.to_pylist(), None], object)[:-1]


class ValueFile:
    """Values of instances, written part by part and read as one array.

    Args:
        path: path of the file; it does not exist.
    """

    def __init__(self, path: Path):
        self._path = path
        self._texts: ColumnFile | None = None
        self._dtype = np.dtype(object)
        self._shape: tuple[int, ...] = ()
        self._rows = 0

    def add(self, values: np.ndarray) -> None:
        """Writes the next rows.

        Args:
            values: numbers [n, ...], or strings as objects [n]; of one type and shape in all calls.
        """
        self._dtype, self._shape = values.dtype, values.shape[1:]
        self._rows += len(values)
        if values.dtype == object:
            self._texts = self._texts or ColumnFile(self._path)
            self._texts.write({"texts": pa.array(values, pa.large_string())})
        else:
            with open(self._path, "ab") as file:
                file.write(np.ascontiguousarray(values).data)

    def read(self) -> Any:
        """What was written: a read-only `numpy.memmap` [N, ...] of numbers, `StoredTexts` of strings."""
        if self._texts is not None:
            self._texts.close()
            return StoredTexts(mapped_columns(self._path)["texts"])
        return np.memmap(self._path, self._dtype, "r", shape=(self._rows, *self._shape))
