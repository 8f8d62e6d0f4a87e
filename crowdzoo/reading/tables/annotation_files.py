"""Writing of CSV files: annotations, and rejected rows."""

import contextlib
import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import BadRow, DataError
from crowdzoo.files.writing import atomic_file, write_rows

HEADER = ("file", "row", "column", "value", "reason", "original")


def write_annotations(annotations: Annotations, path: str | Path) -> Path:
    """Write the columns task, annotator, label (names; ratings as numbers), seconds and timestamp.

    Comparisons of two tasks have left and right instead of task.

    Args:
        annotations: annotations of any kind except sentences.
        path: path of the file, which is written atomically.

    Returns:
        The path.

    Raises:
        DataError: names that differ only in leading or trailing white space, which readers of CSV ignore.
    """
    labels = annotations.label_names
    for names in (annotations.tasks, annotations.annotators, labels):
        read: dict[str, str] = {}
        for name in () if names is None else map(str, names.tolist()):
            if read.setdefault(name.strip(), name) != name:
                raise DataError(f"{path}: {read[name.strip()]!r} and {name!r} would be read as one name. Rename one.")
    columns = {
        "task": annotations.tasks[annotations.task_ids],
        "annotator": annotations.annotators[annotations.annotator_ids],
        "label": annotations.labels if labels is None else labels[annotations.labels],
    }
    if annotations.right_ids is not None:
        columns = {"left": columns.pop("task"), "right": annotations.tasks[annotations.right_ids], **columns}
    for name, form, values in (("seconds", "g", annotations.seconds), ("timestamp", ".15g", annotations.timestamp)):
        if values is not None:
            columns[name] = np.array(["" if np.isnan(value) else format(value, form) for value in values], object)
    return write_rows(path, columns, zip(*(column.tolist() for column in columns.values()), strict=True))


@contextlib.contextmanager
def rejects_file(path: Path | None) -> Iterator[Callable[[BadRow, str], None]]:
    """Open a CSV file of rejected rows, which is written atomically.

    Args:
        path: path of the file; None writes nothing.

    Yields:
        A function that adds a row: the problem, and the row as in its file.
    """
    if path is None:
        yield lambda problem, original: None
        return
    with atomic_file(path) as file:
        # lone surrogates, which UTF-8 cannot encode, as \\ud800
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        writer = csv.writer(text)
        writer.writerow(HEADER)

        def write(problem: BadRow, original: str) -> None:
            row = [problem.file, problem.row, problem.column, problem.value, problem.reason, original]
            # before Python 3.11, the csv module cannot write NUL
            writer.writerow([cell.replace("\0", "\\x00") if isinstance(cell, str) else cell for cell in row])

        try:
            yield write
        finally:
            text.detach()  # flushes the rest; the opener closes the file
