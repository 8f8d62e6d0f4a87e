"""text_lines: lines in with their numbers, lines out all at once; what the readers of tagged sentences share."""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import BadRow, DataError, shorten
from crowdzoo.files.regular import open_regular
from crowdzoo.files.text import LONGEST_LINE
from crowdzoo.files.writing import atomic_file

__all__ = ["integers_if_all", "name_array", "read_lines", "write_lines"]


def read_lines(name: str, note: Callable[[BadRow], None]) -> Iterator[tuple[int, str | None]]:
    """Lines of a text file with their numbers, from 1; None for one that is noted as bad."""
    empty = True
    with open_regular(name) as stream:
        number = 0
        while raw := stream.readline(LONGEST_LINE):
            number += 1
            if number == 1:
                raw = _without_mark(name, raw)
            if len(raw) >= LONGEST_LINE:
                raise DataError(f"{name}, row {number}: the line is longer than {LONGEST_LINE >> 20} MiB.")
            raw = raw.removesuffix(b"\n").removesuffix(b"\r")
            empty = empty and not raw.strip()
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                reason = f"is not UTF-8 at byte {error.start + 1} of the line. Save the file as UTF-8."
                note(BadRow(name, number, None, shorten(raw.decode("utf-8", "backslashreplace")), reason))
                yield number, None
                continue
            if "\r" in line or "\0" in line:
                what = "a carriage return" if "\r" in line else "a NUL byte"
                reason = f"holds {what} within the line. Save the file as text with \\n line ends."
                note(BadRow(name, number, None, shorten(line), reason))
                yield number, None
                continue
            yield number, line
    if empty:
        raise DataError(f"{name} is empty.")


def _without_mark(name: str, raw: bytes) -> bytes:
    """The first line without a byte order mark; refuses what is no text."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name}: the file is UTF-16; save it as UTF-8.")
    if raw.startswith(b"\x1f\x8b"):
        raise DataError(f"{name}: the file is compressed with gzip; let its name end in .gz.")
    return raw.removeprefix(b"\xef\xbb\xbf")


def write_lines(path: str | os.PathLike[str], lines: Iterable[str]) -> Path:
    """Writes lines to a file, which appears when it is complete; its parents are made."""
    path = Path(path)
    with atomic_file(path) as raw, _compressed(raw, path) as stream:
        for line in lines:
            stream.write(line.encode("utf-8"))
    return path


@contextmanager
def _compressed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.suffix == ".gz":
        # no time stamp and no name, so that equal content gives equal files
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream, io.BufferedWriter(stream) as buffer:
            yield buffer
    else:
        yield raw


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def integers_if_all(names: list[str]) -> list[Any]:
    """Names as integers where each is written as Python writes one."""
    return [int(name) for name in names] if all(_INTEGER.fullmatch(name) for name in names) else list(names)


def name_array(names: Sequence[str]) -> NDArray[Any]:
    """Names as objects [n]."""
    array = np.empty(len(names), object)
    array[:] = names
    return array
