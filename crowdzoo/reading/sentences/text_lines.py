"""Shared by readers of sentences: lines with numbers and bad rows, names, and atomic writing of lines."""

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.data.vocabulary import names_array
from crowdzoo.errors import SHOWN, BadRow, DataError, short_repr, shorten
from crowdzoo.files.regular import open_regular
from crowdzoo.files.text import LONGEST_LINE
from crowdzoo.files.writing import atomic_file
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.platforms.record import BadValue, Record


class TextFile:
    """A text file that is read line by line, with its bad rows.

    Args:
        path: path of the file; gzip if the name ends in .gz.

    Attributes:
        name: the path, for messages.
        skips: whether rows with bad values are skipped.
        num_bad: number of bad values so far.
        bad: the first of them, or all if they are skipped.
    """

    skips = False

    def __init__(self, path: str | os.PathLike[str]):
        self.name = os.fspath(path)
        self.num_bad = 0
        self.bad: list[BadRow] = []

    def note(self, row: int, column: str | None, value: object, reason: str, count: int = 1) -> None:
        """Record a bad value, see `BadRow`; it may stand for `count` values."""
        self.note_row(BadRow(self.name, row, column, value, reason), count)

    def note_row(self, bad: BadRow, count: int = 1) -> None:
        """See `note`."""
        self.num_bad += count
        if self.skips or len(self.bad) < SHOWN:
            self.bad.append(bad)

    def stop_if_bad(self, message: str = "", hint: str = "") -> None:
        """Raise a `DataError` with the recorded values, if there are any.

        Args:
            message: one sentence; by default, the number of values.
            hint: text after the count.
        """
        if self.num_bad and not self.skips:
            count = "1 bad value" if self.num_bad == 1 else f"{self.num_bad:,} bad values"
            rows = sorted(self.bad, key=lambda bad: bad.row or 0)
            raise DataError(message or f"{self.name} has {count}.{hint}", rows, self.num_bad)

    def lines(self) -> Iterator[tuple[int, str | None]]:
        """Yield line numbers, from 1, and lines; None for a line recorded as bad."""
        number, empty = 0, True
        with open_regular(self.name) as stream:
            while raw := stream.readline(LONGEST_LINE):
                number += 1
                raw = _without_mark(self.name, raw) if number == 1 else raw.removeprefix(b"\xef\xbb\xbf")
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
    """The first line without a byte order mark; rejects files that are not text."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name}: the file is UTF-16; save it as UTF-8.")
    if raw.startswith(b"\x1f\x8b"):
        raise DataError(f"{name}: the file is compressed with gzip; let its name end in .gz.")
    return raw.removeprefix(b"\xef\xbb\xbf")


def write_lines(path: str | os.PathLike[str], lines: Iterable[str]) -> Path:
    """Write lines to a file atomically; creates its parent folders."""
    path = Path(path)
    with atomic_file(path) as raw:
        # without time stamp and name, equal content gives equal files
        packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else None
        with packed or nullcontext(raw) as stream:
            stream.writelines(line.encode("utf-8") for line in lines)
    return path


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def integers_if_all(names: list[str]) -> list[Any]:
    """Convert names to integers if all are written like Python integers."""
    return [int(name) for name in names] if all(_INTEGER.fullmatch(name) for name in names) else list(names)


def sorted_names(names: set[str]) -> np.ndarray:
    """Annotators' names in order, as integers if all are written like that, [R]."""
    ordered = sorted(integers_if_all(list(names)))
    return names_array(ordered, "annotators") if ordered else np.empty(0, np.int64)


class ExportLines(TextFile):
    """One line per annotator of a sentence, with the number of its entry in the export.

    Args:
        export: the export.
        text: name of the text column of the export; None: `text`, or the only column with strings.
    """

    def __init__(self, export: Export, text: str | None = None):
        super().__init__(export.name)
        self.export, self.text, self.place = export, text, ("", 0)

    def lines(self) -> Iterator[tuple[int, str | None]]:
        """Yield numbers of entries, and lines; gold comes last."""
        gold: dict[str, tuple[Record, str]] = {}
        for record in self.export.records():
            if isinstance(record, BadRow):
                self.note_row(record)
                continue
            self.place = record.place
            text = self._text(record)
            if text is None:
                continue
            if not any(who is not None for who, _ in record.answers):
                yield record.row, _line(record, text, {})
            for who, spans in record.answers:
                try:
                    tidy = _tidy(text, spans)
                except BadValue as bad:
                    self.note(record.row, bad.key, bad.value, bad.reason)
                    continue
                if who is None:
                    gold[record.task] = record, _line(record, text, {"gold": True, "spans": tidy})
                else:
                    yield record.row, _line(record, text, {"annotator": who, "spans": tidy})
        for record, line in gold.values():
            self.place = record.place
            yield record.row, line

    def note(self, row: int, column: str | None, value: object, reason: str, count: int = 1) -> None:
        """See `TextFile.note`; uses the file of the last entry, and its number there."""
        name, number = self.place
        self.note_row(BadRow(name or self.name, number or row, column, value, reason), count)

    def _text(self, record: Record) -> str | None:
        """The text that annotators saw; None if it is missing, which is recorded."""
        texts = {name: value for name, value in record.data.items() if isinstance(value, str)}
        name = self.text or "text"
        if self.text is None and len(texts) == 1:
            name = next(iter(texts))
        if name not in texts:
            listed = ", ".join(f"'{text_name}'" for text_name in texts) or "none"
            reason = f"is missing. Texts of the entry: {listed}. `crowdzoo convert --text NAME` names it."
            self.note(record.row, name, None, reason)
        return texts.get(name)


def _line(record: Record, text: str, more: dict[str, Any]) -> str:
    tokens = {} if record.tokens is None else {"tokens": record.tokens}
    return json.dumps({"task": record.task, "text": text, **tokens, **more})


def _tidy(text: str, spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Strip white space from spans and drop duplicates, which selecting with a mouse easily creates.

    Raises:
        BadValue: the text at a span differs from the marked text.
    """
    tidied: list[dict[str, Any]] = []
    for span in spans:
        marked = span.get("text")
        pieces = [_trimmed(text, *piece) for piece in span.get("fragments", ())]
        start, end = (pieces[0][0], pieces[-1][1]) if pieces else _trimmed(text, span["start"], span["end"], marked)
        _check_marked(text, span, pieces or [[start, end]])
        tidy = {"start": start, "end": end, "label": span["label"], **({"fragments": pieces} if pieces else {})}
        if tidy not in tidied:
            tidied.append(tidy)
    return tidied


def _check_marked(text: str, span: dict[str, Any], pieces: list[list[Any]]) -> None:
    """Compare only letters, since platforms change white space, and put a space between pieces."""
    marked = span.get("text")
    if isinstance(marked, str) and all(type(end) is int for piece in pieces for end in piece):
        covered = "".join(text[slice(*piece)] for piece in pieces)
        if "".join(covered.split()) != "".join(marked.split()):
            fragments = span.get("fragments", [[span["start"], span["end"]]])
            there = short_repr(" ".join(text[slice(*piece)] for piece in fragments))
            listed = ", ".join("{} to {}".format(*piece) for piece in fragments)
            reason = f"is what was marked, and the text has {there} there (characters {listed}). Export both again."
            raise BadValue(span.get("place"), marked, reason)


def _trimmed(text: str, start: Any, end: Any, marked: Any = None) -> list[Any]:
    if type(start) is int and type(end) is int and 0 <= start < end:
        if isinstance(marked, str) and text[start:end] != marked:
            start, end = _code_points(text, start, end, marked)
        inside = text[start:end]
        if inside.strip() and end <= len(text):
            start, end = end - len(inside.lstrip()), start + len(inside.rstrip())
    return [start, end]


def _code_points(text: str, start: int, end: int, marked: str) -> tuple[int, int]:
    """Convert offsets in UTF-16, where an emoji counts two; offsets that do not match either way are unchanged."""
    units = text.encode("utf-16-le", "surrogatepass")
    before, inside = (units[2 * a : 2 * b].decode("utf-16-le", "replace") for a, b in ((0, start), (start, end)))
    return (len(before), len(before) + len(inside)) if inside == marked else (start, end)
