"""rejects_file: rows that were left out, as a CSV file."""

import contextlib
import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path

from crowdzoo.errors import BadRow
from crowdzoo.files.writing import atomic_file

HEADER = ("file", "row", "column", "value", "reason", "original")


@contextlib.contextmanager
def rejects_file(path: Path | None) -> Iterator[Callable[[BadRow, str], None]]:
    """Makes a CSV file of rejected rows, which appears when it is complete.

    Args:
        path: path of the file, or None to write nothing.

    Yields:
        A function that adds a row: what is wrong, and the row as it stands in its file.
    """
    if path is None:
        yield lambda problem, original: None
        return
    with atomic_file(path) as file:
        # half a character, which UTF-8 has not, as \\ud800
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        writer = csv.writer(text)
        writer.writerow(HEADER)

        def write(problem: BadRow, original: str) -> None:
            row = [problem.file, problem.row, problem.column, problem.value, problem.reason, original]
            # before Python 3.11 the csv module writes no NUL
            writer.writerow([cell.replace("\0", "\\x00") if isinstance(cell, str) else cell for cell in row])

        try:
            yield write
        finally:
            text.detach()  # writes the rest; the file is closed by who opened it
