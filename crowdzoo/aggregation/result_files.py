"""Folders of results: two tables and a summary, which appear whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdzoo.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_result", "write_result"]


def write_result(
    folder: str | os.PathLike[str], files: Sequence[str], tables: Sequence[pa.Table], summary: dict[str, Any]
) -> Path:
    """Writes tables as Parquet and a summary as JSON.

    Args:
        folder: is made, with its parents. An earlier result there is replaced.
        files: names of the tables' files, and last that of the summary.
        tables: in the order of the files.
        summary: what JSON can hold.

    Returns:
        The folder.

    Raises:
        DataError: the folder holds other files; they are left alone.
    """
    import pyarrow.parquet

    folder = Path(folder)
    if folder.exists():
        others = sorted({path.name for path in folder.iterdir()} - set(files)) if folder.is_dir() else ["a file"]
        if others:
            raise DataError(f"{folder} holds something else ({others[0]}): give an empty or a new folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh, stale = (folder.parent / f".{folder.name}.{kind}-{uuid.uuid4().hex}" for kind in ("new", "old"))
    try:
        fresh.mkdir()
        for name, table in zip(files[:-1], tables, strict=True):
            pyarrow.parquet.write_table(table, fresh / name)
        (fresh / files[-1]).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            folder.rename(stale)
        try:
            fresh.rename(folder)
        except OSError:
            if stale.exists():
                stale.rename(folder)
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(stale, ignore_errors=True)
    return folder


def read_result(
    folder: str | os.PathLike[str], files: Sequence[str], what: str
) -> tuple[list[pa.Table], dict[str, Any]]:
    """Reads what `write_result` wrote.

    Args:
        folder: of the result.
        files: as there.
        what: of whom the folder is, for the message.

    Returns:
        The tables, and the summary.

    Raises:
        DataError: a file is missing.
    """
    from crowdzoo.files.arrow import read_parquet

    folder = Path(folder)
    for name in files:
        if not (folder / name).is_file():
            raise DataError(f"{folder} is not {what}'s folder: it has no {name}.")
    tables = [read_parquet(folder / name) for name in files[:-1]]
    return tables, json.loads((folder / files[-1]).read_text(encoding="utf-8"))
