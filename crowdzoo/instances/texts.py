"""Texts: a column of text, or a file with a text a line."""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crowdzoo.errors import DataError
from crowdzoo.files.regular import open_regular
from crowdzoo.instances.instance_kind import InstanceKind
from crowdzoo.instances.table import NAMED, Table, check_has, read_table, task_names
from crowdzoo.tables.layout import Layout

__all__ = ["TEXTS", "read_text_columns", "read_texts"]


def read_text_columns(path: str | Path, layout: Layout | None = None) -> tuple[list[str], list[str]]:
    """Reads texts.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task` and `text`.
        layout: names of the columns.

    Returns:
        Names of the tasks, and their texts.

    Raises:
        DataError: no such file or columns, or a repeated or empty task.
    """
    table = read_table(path, ("task", "text"), _CHECK, layout)
    return [str(task) for task in task_names(table)], table.names("text", trim=False).tolist()


def read_texts(path: str | Path, layout: Layout | None = None) -> tuple[list[str], list[str]]:
    """Reads texts to predict on.

    Args:
        path: .txt, a text a line; or .csv, .csv.gz, .parquet with the columns task and text.
        layout: names of the columns.

    Returns:
        Names of the tasks (line numbers from 1 for .txt), and their texts.

    Raises:
        DataError: no such file or column, or it is not UTF-8.
    """
    path = Path(path)
    if path.suffix != ".txt":
        return read_text_columns(path, layout)
    with open_regular(path) as file:
        content = file.read()
    try:
        lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8.") from None
    lines = lines if lines[-1] else lines[:-1]
    return [str(number) for number in range(1, len(lines) + 1)], lines


def _looks_like(path: Path, header: Sequence[str], _: Layout | None) -> bool:
    """A .txt file, or a table whose columns beside task, gold and split are `text` alone."""
    return path.suffix == ".txt" or set(header) - {"task", "gold", "split"} == {"text"}


def _texts(table: Table) -> tuple[np.ndarray, None]:
    text = table.names("text", trim=False)
    empty = np.flatnonzero([not each.strip() for each in text])
    table.complain(empty, "text", text, "is empty. Give a text, or leave the task out.")
    return text, None


_CHECK = functools.partial(check_has, needed=("task", "text"))
TEXTS = InstanceKind(
    "texts",
    {"classification": "text-classifier", "regression": "text-regressor"},
    _looks_like,
    wanted=NAMED,
    check_header=_CHECK,
    values=_texts,
)
