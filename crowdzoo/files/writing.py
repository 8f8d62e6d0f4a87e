"""Files and folders that appear complete or not at all; killed writers leave nothing behind.

Output is written under a hidden name next to its path, `.NAME.<16 hex digits>.crowdzoo-new`, and renamed when it is
complete and on disk. The writer holds a lock on it (flock), which ends with the process: a hidden name without a lock
was left by a killed process, and the next write to the same path removes it.

This module writes tables in all formats: CSV, Parquet, JSON lines and Excel.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.files.paths import local_path

if TYPE_CHECKING:
    import pyarrow as pa

# separator, decimal mark and encoding of CSV for a spreadsheet; None: CSV for programs
SPREADSHEET: ContextVar[tuple[str, str, str] | None] = ContextVar("SPREADSHEET", default=None)
_NEW, _OLD = "crowdzoo-new", "crowdzoo-old"
_LONGEST_NAME = 120  # bytes of a name that is part of a hidden name, with its suffix twice; file systems accept 255


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a file for writing bytes, which appears at its path at the end of the `with` block.

    Args:
        path: path of the file. Its parents are created; an earlier file is replaced, and its permissions are kept.
            Links are followed.

    Yields:
        The file, open for writing and reading.

    Raises:
        ConfigError: the path is not a local path.
        OSError: the path, in `filename`, cannot be written. Nothing is left behind.
    """
    with _beside(path, folder=False) as (temporary, place, descriptor):
        with open(descriptor, "w+b", closefd=False) as file:
            yield file
        os.fsync(descriptor)
        _replace(temporary, place)


def write_json(path: str | os.PathLike[str], content: Mapping[str, object]) -> None:
    """Writes readable JSON to a file that appears when it is complete."""
    with atomic_file(path) as file:
        file.write(json.dumps(content, indent=2).encode() + b"\n")


def write_rows(path: str | os.PathLike[str], header: Iterable[str], rows: Iterable[Iterable[object]]) -> Path:
    """Writes a table as CSV, see `csv_bytes`, to a file that appears when it is complete; returns its path."""
    with atomic_file(path) as file:
        file.write(csv_bytes(header, rows))
    return Path(path)


def write_numbers(path: str | os.PathLike[str], text: str) -> None:
    """Writes CSV whose last column contains numbers, in the format of `csv_bytes`."""
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    write_rows(path, header, rows if SPREADSHEET.get() is None else [(*row[:-1], float(row[-1])) for row in rows])


def csv_bytes(header: Iterable[str], rows: Iterable[Iterable[object]]) -> bytes:
    """Converts a table to CSV in UTF-8 with commas, or as set by `SPREADSHEET`; NaN is an empty cell.

    In a spreadsheet, text that begins like a formula gets a leading tab to remain text; readers strip it.
    """
    separator, decimal, encoding = SPREADSHEET.get() or (",", ".", "utf-8")
    formulas = ("=", "+", "-", "@") if SPREADSHEET.get() else ()

    def cell(value: object) -> object:
        if isinstance(value, float):
            return "" if value != value else str(value).replace(".", decimal)
        return f"\t{value}" if isinstance(value, str) and value.startswith(formulas) else value

    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(cell, row) for row in rows)
    return text.getvalue().encode(encoding, "backslashreplace")


def write_table(table: pa.Table, file: IO[bytes], file_format: str) -> None:
    """Writes a table as "parquet" or "jsonl", or without its columns of lists as "csv" or "xlsx"."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if file_format == "jsonl":
        for batch in table.to_batches(max_chunksize=1 << 14):
            file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n".encode() for row in batch.to_pylist())
    elif file_format == "csv":
        flat = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
        if SPREADSHEET.get() is None:
            pyarrow.csv.write_csv(table.select(flat), file)
        else:
            file.write(csv_bytes(flat, zip(*(table[name].to_pylist() for name in flat), strict=True)))
    elif file_format == "xlsx":
        from crowdzoo.files.workbooks import write_sheet

        write_sheet(table, file)
    else:
        pyarrow.parquet.write_table(table, file)


def table_of(columns: Mapping[str, NDArray[Any] | None]) -> pa.Table:
    """Converts arrays [n, a, b, ...] to a table; those with several axes become columns of n nested lists.

    Args:
        columns: arrays by name; None is left out.
    """
    import pyarrow as pa

    return pa.table({name: _lists(values) for name, values in columns.items() if values is not None})


def _lists(values: NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    column = pa.array(np.ascontiguousarray(values).ravel())
    for axis in range(values.ndim - 1, 0, -1):
        length, count = values.shape[axis], int(np.prod(values.shape[:axis]))
        column = pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * length, pa.int32()), column)
    return column


def csv_cell(value: object) -> str:
    """Converts a value to a cell of a CSV file, quoted if necessary."""
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(letter in text for letter in ',"\n\r') else text


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """As `atomic_file`, for a library that opens the file itself.

    Args:
        path: path of the file.

    Yields:
        Path of an empty file to write to, with the suffix of `path`.
    """
    with _beside(path, folder=False) as (temporary, place, _):
        yield temporary
        _sync(temporary)
        _replace(temporary, place)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Creates a folder, which appears at its path at the end of the `with` block.

    Args:
        path: path of the folder. Its parents are created; it must not exist, or be empty. Links are followed.
        replace: whether to replace a folder that is not empty, which remains until the new one is complete.

    Yields:
        Path of an empty folder to write to.

    Raises:
        ConfigError: the path is not a local path.
        OSError: the folder cannot be written, or is not empty and `replace` is false. Nothing is left behind.
    """
    with _beside(path, folder=True) as (temporary, place, _):
        yield temporary
        for parent, _, names in os.walk(temporary):
            for name in names:
                _sync(Path(parent, name))
            _sync(Path(parent))
        try:
            os.rename(temporary, place)  # there may be an empty folder
        except OSError as error:
            if not replace or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _exchange(temporary, place)


@contextlib.contextmanager
def hidden_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Creates a hidden folder next to a path for the caller to rename; otherwise it is removed at the end.

    Leftovers of killed writers are removed first, see `remove_leftovers`.
    """
    with _beside(path, folder=True) as (temporary, _, _):
        yield temporary
        shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Removes leftovers of killed writers next to this path; output of running writers is kept.

    If a writer was killed between the two renames that replace a folder, the earlier folder gets its name back.

    Args:
        path: path of a file or folder, as passed to the functions above.
    """
    place = Path(os.path.realpath(local_path(path)))
    stem, suffix = map(re.escape, _ends(place))
    pattern = re.compile(rf"{stem}\.[0-9a-f]{{16}}\.({_NEW}|{_OLD}){suffix}")
    try:
        names = [entry.name for entry in os.scandir(place.parent) if pattern.fullmatch(entry.name)]
    except OSError:
        return
    for name in names:
        leftover = place.parent / name
        with contextlib.suppress(OSError):
            descriptor = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while its writer is running
                if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    leftover.unlink()
                elif f".{_OLD}" in name and not os.path.lexists(place):
                    leftover.rename(place)
                else:
                    shutil.rmtree(leftover, ignore_errors=True)
            finally:
                os.close(descriptor)


@contextlib.contextmanager
def _beside(path: str | os.PathLike[str], folder: bool) -> Iterator[tuple[Path, Path, int]]:
    """A locked new file or folder next to the path, the path with links resolved, and the lock's file descriptor."""
    place = Path(os.path.realpath(local_path(path)))
    folders: list[Path] = []
    temporary, descriptor = None, None
    complete = False
    try:
        folders = _make_parents(place.parent)
        remove_leftovers(place)
        while descriptor is None:
            temporary = _hidden(place, _NEW)
            if folder:
                temporary.mkdir()
            else:
                os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            descriptor = _lock(temporary, folder)
        assert temporary is not None
        yield temporary, place, descriptor
        complete = True
        with contextlib.suppress(OSError):  # a folder that may not be listed
            _sync(place.parent)
    except OSError as error:
        # errors of a full disk have no file name, and users do not know the hidden one
        if error.errno is not None and (error.filename is None or str(error.filename) == str(temporary)):
            error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        if temporary is not None and not complete:
            shutil.rmtree(temporary, ignore_errors=True) if folder else temporary.unlink(missing_ok=True)
        if descriptor is not None:
            os.close(descriptor)
        if not complete:
            for parent in reversed(folders):
                with contextlib.suppress(OSError):
                    parent.rmdir()


def _replace(temporary: Path, place: Path) -> None:
    """Moves a file to its path, with the permissions of the one it replaces."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.chmod(temporary, stat.S_IMODE(os.stat(place).st_mode))
    os.replace(temporary, place)


def _make_parents(parent: Path) -> list[Path]:
    """Creates a folder and its parents; returns those that were missing, outermost first."""
    missing = [folder for folder in (parent, *parent.parents) if not folder.exists()][::-1]
    parent.mkdir(parents=True, exist_ok=True)
    return missing


def _hidden(place: Path, kind: str) -> Path:
    stem, suffix = _ends(place)
    return place.parent / f"{stem}.{secrets.token_hex(8)}.{kind}{suffix}"


def _ends(place: Path) -> tuple[str, str]:
    """Prefix and suffix of a hidden name."""
    name = os.fsencode(place.name)
    if len(name) <= _LONGEST_NAME:
        return f".{place.name}", place.suffix
    return f".{hashlib.sha256(name).hexdigest()[:32]}", place.suffix if len(os.fsencode(place.suffix)) <= 20 else ""


def _lock(temporary: Path, folder: bool) -> int | None:
    """Locks a new file or folder; None if another process took it for a leftover meanwhile."""
    try:
        descriptor = os.open(temporary, os.O_RDONLY if folder else os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(temporary), os.fstat(descriptor)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:  # on a file system without locks, nothing is taken for a leftover
        return descriptor
    os.close(descriptor)
    return None


def _exchange(temporary: Path, place: Path) -> None:
    """Replaces an old folder by the new one."""
    old = _hidden(place, _OLD)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # so that it is not taken for a leftover
        os.rename(place, old)
        try:
            os.rename(temporary, place)
        except BaseException:
            os.rename(old, place)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    """Syncs a file, or the names in a folder, to disk; does nothing if the file system does not support it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)
