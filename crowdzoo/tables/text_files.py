"""Annotations in text files: CSV, TSV and JSON lines, plain or compressed.

Files are read in chunks of whole lines. A chunk that is in order goes through Arrow's C++ parser; only a chunk with
trouble in it (or with line breaks inside quotes, or blank lines) is read again by Python, line by line, which is
slower and knows every line's number. So good data costs no Python object a row, and bad data gets an exact place.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.errors import BadRow, DataError, shorten
from crowdzoo.files.arrow import open_parquet, parse_csv, parse_json_lines
from crowdzoo.files.json import JsonError, parse_row
from crowdzoo.files.regular import open_regular
from crowdzoo.tables.sources import OPTIONAL, Batch, Source

__all__ = ["LONGEST_VALUE", "CsvSource", "JsonlSource", "column_names"]

CHUNK_BYTES = 8 << 20
SLOW_ROWS = 1 << 16
_NUL = "holds a NUL byte. Save the file as UTF-8 text."
LONGEST_LINE = 64 << 20
# letters of a value; the csv module has one limit for the whole process
LONGEST_VALUE = 8 << 20
csv.field_size_limit(max(LONGEST_VALUE, csv.field_size_limit()))


class TextSource(Source):
    """A text file, read in chunks of whole lines. Line 1 is the first line."""

    text = True
    quotes_span_lines = False
    header: list[str]

    def __init__(self, path: str | os.PathLike[str], kind: str):
        super().__init__(kind)
        self.path = Path(path)
        self.name = os.fspath(path)

    def read_header(self) -> list[str]:
        """Names of the columns, from the head of the file alone."""
        with open_regular(self.path) as stream:
            self._read_header(*self._head(iter(lambda: stream.read(1 << 16), b"")))
        return self.header

    def batches(self, may_be_empty: bool = False) -> Iterator[Batch]:
        """Walks through the file from its start."""
        with open_regular(self.path) as stream:
            blocks = iter(lambda: stream.read(CHUNK_BYTES), b"")
            head, line = self._head(blocks)
            start, line = self._read_header(head, line)
            self._choose_columns()
            tail, final, any_rows = head[start:], False, False
            while not final:
                cut = tail.rfind(b"\n") + 1
                if cut:
                    chunk, tail = tail[:cut], tail[cut:]
                    batches, left = self._parse(chunk, line, final=False)
                    for batch in batches:
                        any_rows = any_rows or batch.num_rows > 0 or bool(batch.bad)
                        yield batch
                    left_bytes = left()
                    line += chunk.count(b"\n") - left_bytes.count(b"\n")
                    tail = left_bytes + tail
                if len(tail) > LONGEST_LINE:
                    raise DataError(f"{self.name}, row {line}: the line is longer than {LONGEST_LINE >> 20} MiB.")
                block = next(blocks, b"")
                final = not block
                tail += block
            if tail:
                for batch in self._parse(tail, line, final=True)[0]:
                    any_rows = any_rows or batch.num_rows > 0 or bool(batch.bad)
                    yield batch
            if not any_rows and not may_be_empty:
                raise DataError(f"{self.name} has a header but no rows.")

    def _head(self, blocks: Iterator[bytes]) -> tuple[bytes, int]:
        """The beginning of the file from its first line that is not blank, all of that, and the line's number."""
        head, line = self._check_encoding(next(blocks, b"")), 1
        while True:
            blank = head.rfind(b"\n", 0, len(head) - len(head.lstrip())) + 1
            line, head = line + head.count(b"\n", 0, blank), head[blank:]
            if b"\n" in head or len(head) > LONGEST_LINE or not (block := next(blocks, b"")):
                break
            head += block
        if not head.strip():
            raise DataError(f"{self.name} is empty.")
        return head, line

    def _check_encoding(self, head: bytes) -> bytes:
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError(f"{self.name}: the file is UTF-16; save it as UTF-8.")
        if head.startswith(b"\x1f\x8b"):
            raise DataError(f"{self.name}: the file is compressed with gzip; let its name end in .gz.")
        if head.startswith(b"PAR1"):
            raise DataError(f"{self.name}: the file is Parquet; let its name end in .parquet, or use from_parquet().")
        if head.startswith(b"PK\x03\x04"):
            raise DataError(f"{self.name}: the file is a zip archive or a spreadsheet; export it as CSV.")
        return head[3:] if head.startswith(b"\xef\xbb\xbf") else head

    def _read_header(self, head: bytes, line: int) -> tuple[int, int]:
        """Reads the names of the columns; returns where the rows start, and on which line."""
        raise NotImplementedError

    def _choose_columns(self) -> None:
        """Finds the columns that matter in the header."""
        raise NotImplementedError

    def _fast(self, chunk: bytes, ends: np.ndarray) -> dict[str, pa.Array] | None:
        """Arrow's parser; None where it is not to be trusted with the chunk, whose lines end at `ends`."""
        raise NotImplementedError

    def _slow(self, chunk: bytes, line: int, final: bool, left: list[bytes]) -> Iterator[Batch]:
        """Python's parser; puts an unfinished record at the end into `left`."""
        raise NotImplementedError

    def _parse(self, chunk: bytes, line: int, final: bool) -> tuple[Iterator[Batch], Callable[[], bytes]]:
        """Batches of a chunk, and (once they are used up) the bytes that belong to the next one."""
        if not chunk.strip():
            return iter([]), lambda: b""
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
        # an odd number of quotes: the cut is perhaps inside a quoted value
        cut_inside = self.quotes_span_lines and chunk.count(b'"') % 2 == 1
        columns = None if cut_inside else self._fast(chunk, ends)
        if columns is not None:

            def originals(rows: Sequence[int]) -> list[str]:
                own = chunk.split(b"\n")
                return [_readable(own[row]) for row in rows]

            return iter([Batch(columns, line, originals)]), lambda: b""
        left: list[bytes] = []
        return self._slow(chunk, line, final, left), lambda: b"".join(left)

    def _batch(self, rows: list[list[Any]], lines: list[int], texts: list[bytes], bad: list, names: list[str]) -> Batch:
        columns = {
            name: pa.array([row[place] for row in rows], type=pa.large_string()) for place, name in enumerate(names)
        }
        numbers = np.array(lines, dtype=np.int64)
        return Batch(columns, numbers, lambda wanted: [_readable(texts[row]) for row in wanted], bad)


class CsvSource(TextSource):
    """Comma- or tab-separated values with a header.

    Values may be quoted with `"` (doubled inside), and quoted values may hold line breaks; white space around a
    value does not count; blank lines are passed over.
    """

    trim = True
    quotes_span_lines = True
    longest_quoted = 1 << 17  # letters of a value that spans lines: more is a quote that nobody meant to open

    def __init__(self, path: str | os.PathLike[str], kind: str, delimiter: str = ","):
        super().__init__(path, kind)
        self.delimiter = delimiter

    def display(self, column: str, value: Any) -> Any:
        """A value as it stands in the file, where nothing is missing but empty."""
        return "" if value is None else value

    def _read_header(self, head: bytes, line: int) -> tuple[int, int]:
        end = head.find(b"\n")
        end = len(head) if end < 0 else end
        if b"\0" in head[:end]:
            raise DataError(f"{self.name}, row {line}: the header {_NUL}")
        try:
            text = head[:end].decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.name}, row {line}: the header is not UTF-8 ({error.reason}); save as UTF-8."
            ) from None
        if "\r" in text.rstrip("\r"):
            raise DataError(f"{self.name}, row {line}: lines end in a carriage return alone; save with \\n line ends.")
        try:
            header = next(csv.reader([text.rstrip("\r")], delimiter=self.delimiter))
        except csv.Error as error:
            raise DataError(f"{self.name}, row {line}: the header cannot be read: {error}.") from None
        self.header = [name.strip() for name in header]
        return min(end + 1, len(head)), line + 1

    def _choose_columns(self) -> None:
        self.found = self.match(self.header)
        self.numeric = self.numeric_columns()
        self.places = [self.header.index(name) for name in self.found.values()]

    def numeric_columns(self) -> set[str]:
        """Those of the columns found that hold numbers as a rule."""
        return {"confidence", "label"} if self.label_is_number else {"confidence"}

    def _fast(self, chunk: bytes, ends: np.ndarray) -> dict[str, pa.Array] | None:
        types = {
            place: pa.float64() if column in self.numeric else pa.large_string()
            for column, place in zip(self.found, self.places, strict=True)
        }
        columns = parse_csv(chunk, ends, self.delimiter, len(self.header), types)
        if columns is None:
            return None
        found = dict(zip(self.found, columns, strict=True))
        for column in self.numeric & set(found):
            numbers = found[column].fill_null(0).to_numpy()
            # a bad row is shown as it is written: 1e999, not inf
            if np.isinf(numbers).any() or (column not in OPTIONAL and np.isnan(numbers).any()):
                return None
        return found

    def _slow(self, chunk: bytes, line: int, final: bool, left: list[bytes]) -> Iterator[Batch]:
        texts = chunk.split(b"\n")
        if not texts[-1]:
            texts.pop()
        names = list(self.found)
        rows: list[list[Any]] = []
        lines: list[int] = []
        originals: list[bytes] = []
        bad: list[tuple[BadRow, str]] = []
        feed = _Feed(texts)
        reader = csv.reader(feed, delimiter=self.delimiter)
        while feed.place < len(texts):
            start = feed.place
            trouble, unclosed = None, False
            try:
                fields = next(reader)
                if feed.place > start + 1 and max(map(len, fields)) > self.longest_quoted:
                    trouble, unclosed = _too_long(self.longest_quoted), True
                elif feed.exhausted:
                    if not final:
                        left.append(b"\n".join(texts[start:]) + b"\n")
                        break
                    trouble, unclosed = "opens a quote that nothing closes.", True
            except csv.Error as error:
                trouble, unclosed = _csv_reason(str(error)), "field limit" in str(error)
                if unclosed and feed.place == start + 1:
                    trouble, unclosed = f"holds a value of more than {LONGEST_VALUE:,} characters.", False
                    reader = csv.reader(feed, delimiter=self.delimiter)
            if unclosed:
                # only the first of the lines that were swallowed is to blame
                feed.place, feed.exhausted = start + 1, False
                reader = csv.reader(feed, delimiter=self.delimiter)
            original = b"\n".join(texts[start : feed.place])
            here = line + start
            if b"\0" in original:
                trouble = _NUL  # Python 3.10 refuses it, later ones do not
            if trouble:
                bad.append((BadRow(self.name, here, None, shorten(_readable(original)), trouble), _readable(original)))
            elif len(fields) <= 1 and not original.strip():
                continue
            elif len(fields) != len(self.header):
                reason = (
                    f"has {len(fields)} value{'s' * (len(fields) != 1)} where the header has {len(self.header)}. "
                    'Put quotes (") around a value that holds the separator.'
                )
                bad.append((BadRow(self.name, here, None, shorten(_readable(original)), reason), _readable(original)))
            else:
                values = [fields[place] for place in self.places]
                wrong = next((name for name, value in zip(names, values, strict=True) if not _is_text(value)), None)
                if wrong is not None:
                    value = _readable(fields[self.places[names.index(wrong)]].encode("utf-8", "surrogateescape"))
                    reason = "is not UTF-8. Save the file as UTF-8."
                    bad.append((BadRow(self.name, here, self.found[wrong], value, reason), _readable(original)))
                else:
                    rows.append(values)
                    lines.append(here)
                    originals.append(original)
            if len(rows) + len(bad) >= SLOW_ROWS:
                yield self._batch(rows, lines, originals, bad, names)
                rows, lines, originals, bad = [], [], [], []
        yield self._batch(rows, lines, originals, bad, names)


class JsonlSource(TextSource):
    """One JSON object a line; blank lines are passed over. Ids are compared as text: 7 and "7" are one id."""

    sparse = True

    def _read_header(self, head: bytes, line: int) -> tuple[int, int]:
        end = head.find(b"\n")
        try:
            self.first = parse_row(head[: end if end >= 0 else len(head)], frozenset())
        except JsonError:
            self.first = {}
        if head.startswith(b"["):
            raise DataError(f"{self.name}: a JSON list; write one JSON object a line instead.")
        # with a first line that is no object there is no telling which columns exist; the rows will complain
        self.header = list(self.first) or list(self.required)
        return 0, line

    def _choose_columns(self) -> None:
        example = self.first
        self.found = self.match(self.header)
        self.found.update({name: name for name in OPTIONAL})
        self.keys = frozenset(self.found.values())
        self.types = {}
        for column, name in self.found.items():
            number = column in OPTIONAL or (column == "label" and self.label_is_number)
            value = example.get(name)
            if number and not isinstance(value, str):
                self.types[name] = pa.float64()
            else:
                self.types[name] = pa.int64() if type(value) is int else pa.string()

    def _fast(self, chunk: bytes, ends: np.ndarray) -> dict[str, pa.Array] | None:
        columns = parse_json_lines(chunk, ends, self.types)
        if columns is None:
            return None
        return {
            name: column if pa.types.is_floating(column.type) else column.cast(pa.large_string())
            for name, column in zip(self.found, columns, strict=True)
        }

    def _slow(self, chunk: bytes, line: int, final: bool, left: list[bytes]) -> Iterator[Batch]:
        names = list(self.found)
        rows: list[list[Any]] = []
        lines: list[int] = []
        originals: list[bytes] = []
        bad: list[tuple[BadRow, str]] = []
        texts = chunk.split(b"\n")
        for here, text in enumerate(texts, start=line):
            if not text.strip():
                continue
            values: list[Any] = []
            problem = self._object(text, here, values)
            if problem is not None:
                bad.append((problem, _readable(text)))
            else:
                rows.append(values)
                lines.append(here)
                originals.append(text)
            if len(rows) + len(bad) >= SLOW_ROWS:
                yield self._batch(rows, lines, originals, bad, names)
                rows, lines, originals, bad = [], [], [], []
        yield self._batch(rows, lines, originals, bad, names)

    def _object(self, text: bytes, line: int, values: list[Any]) -> BadRow | None:
        """Takes a line apart into `values`, or says what is wrong with it."""
        shown = shorten(_readable(text))
        try:
            row = parse_row(text, self.keys)
        except JsonError as error:
            return BadRow(self.name, line, None, shown, f"{error}.")
        for column, name in self.found.items():
            value = row.get(name)
            types: tuple[type, ...]
            if column in OPTIONAL or (column == "label" and self.label_is_number):
                expected, types = "a number", (int, float, str)
            elif column == "position":
                expected, types = "an integer", (int, str)
            else:
                expected, types = "a string or an integer", (int, str)
            if value is not None and (isinstance(value, bool) or not isinstance(value, types)):
                return BadRow(self.name, line, name, value, f"is not {expected}.")
            if isinstance(value, str) and not _is_text(value):
                reason = _NUL if "\0" in value else "holds half a character."
                return BadRow(self.name, line, name, _readable(value.encode("utf-8", "replace")), reason)
            values.append(None if value is None else str(value))
        return None


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Names of a table's columns, from its head alone: a CSV, TSV, JSON lines (the first one's keys) or Parquet file.

    Raises:
        DataError: not a regular file, empty, damaged, of another encoding.
    """
    name = os.fspath(path)
    if name.endswith(".parquet"):
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    stem = name.removesuffix(".gz")
    if stem.endswith(".jsonl"):
        return JsonlSource(path, "classification").read_header()
    return CsvSource(path, "classification", "\t" if stem.endswith(".tsv") else ",").read_header()


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace").rstrip("\r\n")


def _is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8 and holds no NUL."""
    if value.isascii():
        return "\0" not in value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _too_long(limit: int) -> str:
    return f"opens a quote that does not close within {limit:,} characters."


def _csv_reason(error: str) -> str:
    if "field limit" in error:
        return _too_long(LONGEST_VALUE)
    if "new-line character" in error:
        return "holds a carriage return within the line. Save the file with \\n line ends."
    return f"cannot be taken apart: {error}."


class _Feed:
    """Lines for the csv module; remembers how far it read, and whether it asked for more than there is."""

    def __init__(self, texts: list[bytes]):
        self.texts = texts
        self.place = 0
        self.exhausted = False

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if self.place >= len(self.texts):
            self.exhausted = True
            raise StopIteration
        text = self.texts[self.place].decode("utf-8", "surrogateescape")
        self.place += 1
        # the csv module wants the line end where a quoted value may go on
        return text + "\n"
