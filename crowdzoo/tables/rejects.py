"""The second output of reading: rows that were left out, and why."""

from __future__ import annotations

import contextlib
import csv
import io
from pathlib import Path
from types import TracebackType

from crowdzoo.errors import BadRow
from crowdzoo.files.writing import atomic_file

__all__ = ["HEADER", "Rejects"]

HEADER = ("file", "row", "column", "value", "reason", "original")


class Rejects:
    """A CSV file of rejected rows, which appears when it is complete.

    Args:
        path: path of the file, or None to write nothing.
    """

    def __init__(self, path: Path | None):
        self.path = path

    def __enter__(self) -> Rejects:
        self._stack = contextlib.ExitStack()
        if self.path is not None:
            file = self._stack.enter_context(atomic_file(self.path))
            # half a character, which UTF-8 has not, as \\ud800
            text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
            self._stack.callback(text.detach)  # writes the rest; the file is closed by who opened it
            self._writer = csv.writer(text)
            self._writer.writerow(HEADER)
        return self

    def write(self, problem: BadRow, original: str) -> None:
        """Adds a row; does nothing where no file is wanted."""
        if self.path is not None:
            row = [problem.file, problem.row, problem.column, problem.value, problem.reason, original]
            # before Python 3.11 the csv module writes no NUL
            self._writer.writerow([cell.replace("\0", "\\x00") if isinstance(cell, str) else cell for cell in row])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
