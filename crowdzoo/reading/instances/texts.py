"""Texts: a column of text, or a file with one text per line."""

import functools
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crowdzoo.data.instance_kinds import TEXTS
from crowdzoo.errors import SHOWN, DataError, DataWarning
from crowdzoo.files.regular import open_regular
from crowdzoo.reading.instances.table import BESIDE, NAMED, InstanceReader, Table, check_has, read_table, task_names
from crowdzoo.reading.tables.layout import Layout


def read_texts(path: str | Path, layout: Layout | None = None) -> tuple[list[str], list[str]]:
    """Read texts for prediction.

    Args:
        path: .txt with one text per line; or .csv, .csv.gz or .parquet with the columns task and text.
        layout: names of the columns.

    Returns:
        Names of the tasks (for .txt, line numbers from 1), and their texts.

    Raises:
        DataError: no such file or column, a repeated or empty task, or a .txt that is not UTF-8.

    Warns:
        DataWarning: empty texts; names their lines.
    """
    path = Path(path)
    if path.suffix != ".txt":
        table = read_table(path, ("task", "text"), layout=layout)
        texts = table.names("text", trim=False).tolist()
        assert table.rows is not None
        _warn_of_empty(path, "row", table.rows.tolist(), texts)
        return [str(task) for task in task_names(table)], texts
    with open_regular(path) as file:
        content = file.read()
    try:
        lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8.") from None
    lines = lines if lines[-1] else lines[:-1]
    numbers = range(1, len(lines) + 1)
    _warn_of_empty(path, "line", numbers, lines)
    return [str(number) for number in numbers], lines


def _warn_of_empty(path: str | Path, noun: str, numbers: Sequence[int], texts: Sequence[str]) -> None:
    """Warn of rows with empty texts, to which a model gives an answer as to any other."""
    if empty := [number for number, text in zip(numbers, texts, strict=True) if not text.strip()]:
        examples = ", ".join(map(str, empty[:SHOWN])) + (", …" if len(empty) > SHOWN else "")
        are = "s are" if len(empty) > 1 else " is"
        text = f"{path}: {len(empty):,} text{are} empty, in {noun} {examples}. "
        warnings.warn(text + "The model gives every empty text the same answer.", DataWarning, stacklevel=4)


def _looks_like(path: Path, header: Sequence[str], _: Layout | None) -> bool:
    """A .txt file, or a table with only `text` besides task, gold and split."""
    return path.suffix == ".txt" or set(header) - set(BESIDE) == {"text"}


def _texts(table: Table) -> np.ndarray:
    text = table.names("text", trim=False)
    empty = [not line.strip() for line in text]
    table.refuse("text", empty, "is empty. Give a text, or leave the task out.", text)
    return text


READER = InstanceReader(
    **vars(TEXTS),
    looks_like=_looks_like,
    wanted=NAMED,
    check_header=functools.partial(check_has, needed=("task", "text")),
    values=lambda table: (table.values(_texts), None),
)
