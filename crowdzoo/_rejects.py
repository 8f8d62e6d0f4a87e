"""The second output of reading: rows that were left out, and why."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from types import TracebackType

from crowdzoo.errors import BadRow, DataError

__all__ = ["Rejects"]


class Rejects:
    """A CSV file of rejected rows, written under another name and renamed when complete.

    Args:
        path: of the file, or None to write nothing.
    """

    def __init__(self, path: Path | None):
        self.path = path

    def __enter__(self) -> Rejects:
        if self.path is not None:
            if not self.path.parent.is_dir():
                raise DataError(f"rejects: the folder {self.path.parent} does not exist. Make it first.")
            self._temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
            self._file = open(self._temporary, "w", encoding="utf-8", newline="")
            self._writer = csv.writer(self._file)
            self._writer.writerow(["file", "row", "column", "value", "reason", "original"])
        return self

    def write(self, problem: BadRow, original: str) -> None:
        """Adds a row; does nothing where no file is wanted."""
        if self.path is not None:
            self._writer.writerow([problem.file, problem.row, problem.column, problem.value, problem.reason, original])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path is None:
            return
        self._file.close()
        if kind is None:
            os.replace(self._temporary, self.path)
        else:
            self._temporary.unlink()
