"""Annotations in text files: CSV, TSV and JSON lines, plain or compressed.

Files are read in chunks of whole lines. A chunk that is in order goes through Arrow's C++ parser; only a chunk with
trouble in it (or with line breaks inside quotes, or blank lines) is read again by Python, line by line, which is
slower and knows every line's number. So good data costs no Python object a row, and bad data gets an exact place.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from crowdzoo._sources import OPTIONAL, Batch, Source, one_array
from crowdzoo.errors import BadRow, DataError
from crowdzoo.files.regular import open_regular

__all__ = ["CsvSource", "JsonlSource"]

CHUNK_BYTES = 8 << 20
SLOW_ROWS = 1 << 16
_NUL = "holds a NUL byte. Save the file as UTF-8 text."
JSON_BLOCK = 1 << 20
# the csv module's own limit on a field; a line can be longer
LONGEST_LINE = 64 << 20


class TextSource(Source):
    """A text file, read in chunks of whole lines. Line 1 is the first line."""

    text = True
    quotes_span_lines = False

    def __init__(self, path: str | os.PathLike[str], kind: str):
        super().__init__(kind)
        self.path = Path(path)
        self.name = os.fspath(path)

    def batches(self) -> Iterator[Batch]:
        """Walks through the file from its start."""
        with open_regular(self.path) as stream:
            blocks = iter(lambda: stream.read(CHUNK_BYTES), b"")
            head, start, line, any_rows = self._check_encoding(next(blocks, b"")), 0, 1, False
            while True:
                end = head.find(b"\n", start)
                if end < 0 and len(head) <= LONGEST_LINE and (block := next(blocks, b"")):
                    head += block
                elif end >= 0 and not head[start:end].strip():
                    start, line = end + 1, line + 1  # a blank line at the top counts, but holds nothing
                else:
                    break
            if not head[start:].strip():
                raise DataError(f"{self.name} is empty.")
            start, line = self._begin(head, start, line)
            tail = head[start:]
            final = False
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
            if not any_rows:
                raise DataError(f"{self.name} has a header but no rows.")

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

    def _begin(self, head: bytes, start: int, line: int) -> tuple[int, int]:
        """Reads the header; returns where the rows start, and on which line."""
        raise NotImplementedError

    def _fast(self, chunk: bytes) -> pa.Table:
        """Arrow's parser; ArrowInvalid where anything is wrong with the chunk."""
        raise NotImplementedError

    def _slow(self, chunk: bytes, line: int, final: bool, left: list[bytes]) -> Iterator[Batch]:
        """Python's parser; puts an unfinished record at the end into `left`."""
        raise NotImplementedError

    def _parse(self, chunk: bytes, line: int, final: bool) -> tuple[Iterator[Batch], Callable[[], bytes]]:
        """Batches of a chunk, and (once they are used up) the bytes that belong to the next one."""
        lines = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
        # an odd number of quotes: the cut is perhaps inside a quoted value
        cut_inside = self.quotes_span_lines and chunk.count(b'"') % 2 == 1
        if not cut_inside and b"\0" not in chunk:
            try:
                table = self._fast(chunk)
            except (pa.ArrowInvalid, UnicodeDecodeError):
                table = None
            if table is not None and table.num_rows == lines:

                def originals(rows: Sequence[int]) -> list[str]:
                    own = chunk.split(b"\n")
                    return [_readable(own[row]) for row in rows]

                columns = {name: one_array(table.column(name)) for name in table.column_names}
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

    def __init__(self, path: str | os.PathLike[str], kind: str, delimiter: str = ","):
        super().__init__(path, kind)
        self.delimiter = delimiter

    def _begin(self, head: bytes, start: int, line: int) -> tuple[int, int]:
        end = head.find(b"\n", start)
        end = len(head) if end < 0 else end
        try:
            text = head[start:end].decode("utf-8")
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
        self.found = self.match(self.header)
        self.places = [self.header.index(name) for name in self.found.values()]
        return min(end + 1, len(head)), line + 1

    def _fast(self, chunk: bytes) -> pa.Table:
        # columns are called by number, since names that do not matter may be there twice
        types = {str(place): pa.large_string() for place in self.places}
        for column, place in zip(self.found, self.places, strict=True):
            if column == "confidence" or (column == "label" and self.label_is_number):
                types[str(place)] = pa.float64()
        table = pyarrow.csv.read_csv(
            pa.BufferReader(chunk),
            read_options=pyarrow.csv.ReadOptions(
                column_names=[str(place) for place in range(len(self.header))], block_size=len(chunk) + 1
            ),
            parse_options=pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=list(types), column_types=types, null_values=[""], strings_can_be_null=False
            ),
        )
        return table.rename_columns(list(self.found))

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
                if feed.exhausted:
                    if not final:
                        left.append(b"\n".join(texts[start:]) + b"\n")
                        break
                    trouble, unclosed = "opens a quote that nothing closes.", True
            except csv.Error as error:
                trouble, unclosed = _csv_reason(str(error)), "field limit" in str(error)
            if unclosed:
                # only the first of the lines that were swallowed is to blame
                feed.place, feed.exhausted = start + 1, False
                reader = csv.reader(feed, delimiter=self.delimiter)
            original = b"\n".join(texts[start : feed.place])
            here = line + start
            if trouble:
                bad.append((BadRow(self.name, here, None, _shorten(_readable(original)), trouble), _readable(original)))
            elif len(fields) <= 1 and not original.strip():
                continue
            elif len(fields) != len(self.header):
                reason = (
                    f"has {len(fields)} value{'s' * (len(fields) != 1)} where the header has {len(self.header)}. "
                    'Put quotes (") around a value that holds the separator.'
                )
                bad.append((BadRow(self.name, here, None, _shorten(_readable(original)), reason), _readable(original)))
            else:
                values = [fields[place] for place in self.places]
                wrong = next((name for name, value in zip(names, values, strict=True) if not _is_text(value)), None)
                if wrong is not None:
                    value = _readable(fields[self.places[names.index(wrong)]].encode("utf-8", "surrogateescape"))
                    reason = _NUL if "\0" in value else "is not UTF-8. Save the file as UTF-8."
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

    def _begin(self, head: bytes, start: int, line: int) -> tuple[int, int]:
        end = head.find(b"\n", start)
        try:
            first = json.loads(head[start : end if end >= 0 else len(head)].decode("utf-8"))
        except ValueError:
            first = None
        if head[start : start + 1] == b"[":
            raise DataError(f"{self.name}: a JSON list; write one JSON object a line instead.")
        # with a first line that is no object there is no telling which columns exist; the rows will complain
        header = list(first) if isinstance(first, dict) else list(self.required)
        self.found = self.match(header)
        self.found.update({name: name for name in OPTIONAL})
        example = first if isinstance(first, dict) else {}
        self.types = {}
        for column, name in self.found.items():
            number = column in OPTIONAL or (column == "label" and self.label_is_number)
            value = example.get(name)
            if number and not isinstance(value, str):
                self.types[name] = pa.float64()
            else:
                self.types[name] = pa.int64() if type(value) is int else pa.string()
        return start, line

    def _fast(self, chunk: bytes) -> pa.Table:
        chunk.decode("utf-8")  # Arrow's JSON parser does not look
        # Arrow takes at most 100,000 rows a block, which a MiB of rows with three keys does not reach
        table = pyarrow.json.read_json(
            pa.BufferReader(chunk),
            read_options=pyarrow.json.ReadOptions(block_size=JSON_BLOCK),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=pa.schema(list(self.types.items())), unexpected_field_behavior="ignore"
            ),
        )
        columns = [table.column(name) for name in self.found.values()]
        columns = [
            column if pa.types.is_floating(column.type) else column.cast(pa.large_string()) for column in columns
        ]
        return pa.table(columns, names=list(self.found))

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
        shown = _shorten(_readable(text))
        try:
            row = json.loads(text.decode("utf-8"))
        except UnicodeDecodeError:
            return BadRow(self.name, line, None, shown, "is not UTF-8. Save the file as UTF-8.")
        except (ValueError, RecursionError) as error:
            problem = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
            return BadRow(self.name, line, None, shown, f"is not JSON: {problem}.")
        if not isinstance(row, dict):
            return BadRow(self.name, line, None, shown, "is not a JSON object.")
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


def _shorten(text: str) -> str:
    """Text for an error message, 80 characters at most."""
    return text if len(text) <= 80 else text[:77] + "..."


def _csv_reason(error: str) -> str:
    if "field limit" in error:
        return "opens a quote that does not close within 131,072 characters."
    if "new-line character" in error:
        return "holds a carriage return within the line. Save the file with \\n line ends."
    if "NUL" in error:
        return _NUL
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
