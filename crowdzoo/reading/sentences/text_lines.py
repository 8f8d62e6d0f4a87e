"""What the readers of sentences share: lines with their numbers and bad rows, and names; lines out at once."""

import gzip
import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from crowdzoo.errors import SHOWN, BadRow, DataError, shorten
from crowdzoo.files.regular import open_regular
from crowdzoo.files.text import LONGEST_LINE
from crowdzoo.files.writing import atomic_file


class TextFile:
    """A text file that is read line by line, and the bad rows that are found in it.

    Args:
        path: path of the file; gzip where the name ends in .gz.

    Attributes:
        name: the path, for messages.
        num_bad: number of bad values so far.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.name = os.fspath(path)
        self.num_bad = 0
        self._shown: list[BadRow] = []

    def note(self, row: int, column: str | None, value: object, reason: str, count: int = 1) -> None:
        """Takes note of a bad value, see `BadRow`; of `count` values where it stands for several."""
        self.num_bad += count
        if len(self._shown) < SHOWN:
            self._shown.append(BadRow(self.name, row, column, value, reason))

    def stop_if_bad(self, message: str = "", hint: str = "") -> None:
        """Raises a `DataError` with the values noted, if there are any.

        Args:
            message: one sentence; by default it counts the values.
            hint: what follows the count.
        """
        if self.num_bad:
            count = "1 bad value" if self.num_bad == 1 else f"{self.num_bad:,} bad values"
            rows = sorted(self._shown, key=lambda bad: bad.row or 0)
            raise DataError(message or f"{self.name} has {count}.{hint}", rows, self.num_bad)

    def lines(self) -> Iterator[tuple[int, str | None]]:
        """Lines with their numbers, from 1; None for one that is noted as bad."""
        number, empty = 0, True
        with open_regular(self.name) as stream:
            while raw := stream.readline(LONGEST_LINE):
                number += 1
                if number == 1:
                    raw = _without_mark(self.name, raw)
                if len(raw) >= LONGEST_LINE:
                    raise DataError(f"{self.name}, row {number}: the line is longer than {LONGEST_LINE >> 20} MiB.")
                raw = raw.removesuffix(b"\n").removesuffix(b"\r")
                empty = empty and not raw.strip()
                yield number, self._decoded(number, raw)
        if empty:
            raise DataError(f"{self.name} is empty.")

    def _decoded(self, number: int, raw: bytes) -> str | None:
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            reason = f"is not UTF-8 at byte {error.start + 1} of the line. Save the file as UTF-8."
            self.note(number, None, shorten(raw.decode("utf-8", "backslashreplace")), reason)
            return None
        if "\r" not in line and "\0" not in line:
            return line
        what = "a carriage return" if "\r" in line else "a NUL byte"
        reason = f"holds {what} within the line. Save the file as text with \\n line ends."
        self.note(number, None, shorten(line), reason)
        return None


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
