"""Opening regular files: what is refused before a byte is read, and what goes wrong while bytes are read."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from crowdzoo.errors import DataError, did_you_mean

__all__ = ["check_regular", "open_regular"]

_KINDS = {
    stat.S_IFDIR: "a folder. Name a file in it",
    stat.S_IFIFO: "a pipe. Give the path of a file",
    stat.S_IFSOCK: "a socket. Give the path of a file",
    stat.S_IFCHR: "a device. Give the path of a file",
    stat.S_IFBLK: "a device. Give the path of a file",
}


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuses what is not a regular file, or a link to one.

    Pipes and devices are refused because files are read more than once, and may be read without end.

    Raises:
        DataError: no such file (with the nearest name in its folder), a folder, a pipe, a device, no permission.
    """
    name = os.fspath(path)
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        parent = Path(path).parent
        try:
            siblings = [entry.name for entry in parent.iterdir()] if parent.is_dir() else []
        except OSError:
            siblings = []
        raise DataError(f"{name} does not exist.{did_you_mean(Path(path).name, siblings)}") from None
    except (OSError, ValueError) as error:  # no permission, a name that is too long, a NUL in it
        raise DataError(f"{name!r} cannot be read: {_reason(error)}.") from None
    if not stat.S_ISREG(mode):
        raise DataError(f"{name} is {_KINDS.get(stat.S_IFMT(mode), 'not a regular file. Give the path of one')}.")


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a regular file for reading bytes, through gzip where the name ends in .gz.

    Raises:
        DataError: as `check_regular`; or, while the file is read: a gzip file that is cut off or damaged, an error
            of the disk.
    """
    check_regular(path)
    name = os.fspath(path)
    try:
        with gzip.open(path, "rb") if name.endswith(".gz") else open(path, "rb") as stream:
            yield stream  # type: ignore[misc]
    except EOFError:
        raise DataError(f"{name}: the gzip file is cut off; copy or download it again.") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: not a sound gzip file ({error}). Copy it again, or correct its name.") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
