"""Comma- and tab-separated values."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.errors import BadRow, DataError, Setting, shorten
from crowdzoo.files.arrow import parse_csv
from crowdzoo.files.text import is_utf8, not_utf8, readable
from crowdzoo.reading.tables.layout import OPTIONAL, Layout
from crowdzoo.reading.tables.naming import usual_columns
from crowdzoo.reading.tables.sources import NUL, Batch, TextSource

# characters; the csv module has one limit for the whole process
LONGEST_VALUE = 8 << 20
csv.field_size_limit(max(LONGEST_VALUE, csv.field_size_limit()))


_FIX_MANY = 'Put quotes (") around a value that holds the separator.'
_FIX_FEW = "Add the missing values, or remove the row; if it is the last one, the file may be cut off: copy it again."
_FIX_QUOTE = 'Close it, or remove it; quotes (") inside of a value are written twice.'


class CsvSource(TextSource):
    """Delimiter-separated values, with a header unless the layout says otherwise.

    By default, the separator is the one of `,`, `;`, tab and `|` that gives a header with most of the expected columns;
    in a tie, the usual one of the suffix.

    Values may be quoted with `"` (doubled inside), and quoted values may contain line breaks. White space around values
    and blank lines are ignored.
    """

    trim = True
    quotes_span_lines = True
    top = b""  # header line
    longest_quoted = 1 << 17  # characters of a value that spans lines; a longer one has a stray quote

    def __init__(self, path: str | os.PathLike[str], kind: str, delimiter: str = ",", layout: Layout | None = None):
        super().__init__(path, kind, layout)
        self.usual_delimiter = delimiter
        self.delimiter = self.layout.separator or delimiter

    def display(self, column: str, value: Any) -> Any:
        """A value as in the file, where missing values are empty."""
        return "" if value is None else value

    def _read_header(self, head: bytes, line: int) -> tuple[int, int]:
        if head[:4].lower() == b"sep=" and head[5:7].lstrip(b"\r")[:1] == b"\n":  # Excel's line above the header
            self.usual_delimiter = head[4:5].decode("latin-1")
            start = head.index(b"\n", 5) + 1
            end, line = self._read_header(head[start:], line + 1)
            return start + end, line
        end = head.find(b"\n")
        end = len(head) if end < 0 else end
        if b"\0" in head[:end]:
            raise DataError(f"{self.name}, row {line}: the header {NUL}")
        try:
            text = head[:end].decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"byte 0x{head[error.start]:02X} at {error.start:,}"
            raise DataError(
                f"{self.name}, row {line}: the header is not UTF-8 ({byte}); save as UTF-8, or give the encoding, such "
                f"as {Setting('encoding', 'latin-1')}."
            ) from None
        if "\r" in text.rstrip("\r"):
            raise DataError(f"{self.name}, row {line}: lines end in a carriage return alone; save with \\n line ends.")
        marks = [self.layout.separator] if self.layout.separator else [self.usual_delimiter, *",;\t|"]
        marks.sort(key=lambda mark: mark == self.layout.decimal)  # the decimal mark is tried last
        headers = {}
        for mark in dict.fromkeys(marks):
            try:
                headers[mark] = [name.strip() for name in next(csv.reader([text.rstrip("\r")], delimiter=mark))]
            except csv.Error as error:
                if mark == marks[0]:
                    raise DataError(f"{self.name}, row {line}: the header cannot be read: {error}.") from None
        if not self.layout.header:
            self._number_columns(headers)
            return 0, line
        # in a tie, the first one is the usual one
        self.delimiter = max(headers, key=lambda mark: (self._num_wanted(headers[mark]), len(headers[mark]) > 1))
        self.header = headers[self.delimiter]
        self.top = head[:end].rstrip(b"\r")
        return min(end + 1, len(head)), line + 1

    def _num_wanted(self, header: Sequence[str]) -> int:
        """Number of expected columns in a header."""
        return sum(name in header for name in self._wanted) + len(usual_columns(header, self._wanted))

    @property
    def _wanted(self) -> set[str]:
        """Names of expected columns, as named in the layout if given."""
        named = (self.layout.columns.get(name, name) for name in (*self.required, *self.layout.columns))
        return {part.strip() for name in named for part in (name, *name.split(","))}

    def _number_columns(self, headers: dict[str, list[str]]) -> None:
        """Name the columns of a file without a header by their numbers from 1."""
        try:
            numbers = ",".join(self.layout.columns.values()).replace("*", "").split(",")
            highest = max(int(number or 0) for number in numbers)
        except ValueError:
            example = Setting(self.layout.option, {"task": "1", "annotator": "2", "label": "3"})
            raise DataError(f"{self.name}: columns of a file without a header are numbers, as in {example}.") from None
        wide = [mark for mark, values in headers.items() if len(values) >= max(highest, 2)]
        self.delimiter = wide[0] if wide else self.delimiter
        self.header = [str(number) for number in range(1, len(headers[self.delimiter]) + 1)]

    def _choose_columns(self) -> None:
        self.found = self.match(self.header)
        self.numeric = self.numeric_columns()
        places = {name: place for place, name in reversed([*enumerate(self.header)])}
        self.places = [places[name] for name in self.found.values()]

    def numeric_columns(self) -> set[str]:
        """Columns that usually contain numbers; none if Arrow cannot parse their decimal mark."""
        return {"confidence", *self.label_kind.number_columns} if self.layout.decimal == "." else set()

    def _fast(self, chunk: bytes, ends: np.ndarray) -> dict[str, pa.Array] | None:
        column_types = (pa.float64() if column in self.numeric else pa.large_string() for column in self.found)
        types = dict(zip(self.places, column_types, strict=True))
        if self.top and (chunk.startswith(self.top) or b"\n" + self.top in chunk):
            return None  # may be a repeated header
        columns = parse_csv(chunk, ends, self.delimiter, len(self.header), types)
        if columns is None or not self._separated(chunk) or not self._closes([chunk[chunk.rfind(b"\n", 0, -1) + 1 :]]):
            return None  # Arrow lets the end of the chunk close a quote
        arrays = dict(zip(self.found, columns, strict=True))
        for column in self.numeric & set(arrays):
            numbers = arrays[column].fill_null(0).to_numpy()
            # bad rows are shown as written: 1e999, not inf
            if np.isinf(numbers).any() or (column not in OPTIONAL and np.isnan(numbers).any()):
                return None
        return arrays

    def _separated(self, chunk: bytes) -> bool:
        """Whether each second quote is followed by a separator, a line end or another quote, like a closing quote."""
        if b'"' not in chunk:
            return True
        letters = np.frombuffer(chunk, np.uint8)
        closing = np.flatnonzero(letters == ord('"'))[1::2]
        fits = np.zeros(256, bool)
        fits[[*b'"\r\n', self.delimiter.encode()[0]]] = True
        return bool(fits.take(letters.take(closing + 1, mode="clip")).all())

    def _closes(self, lines: list[bytes]) -> bool:
        """Whether lines close their quotes, each followed by a separator or the line end."""
        text = re.sub(rf'" +(?={re.escape(self.delimiter)}|\r?\n|$)', '"', b"\n".join(lines).decode(errors="replace"))
        try:
            return '"' not in text or bool(list(csv.reader([text], delimiter=self.delimiter, strict=True)))
        except csv.Error:
            return False

    def _slow(self, chunk: bytes, line: int, final: bool, left: list[bytes]) -> Iterator[Batch]:
        return self._batches(self._rows(chunk, line, final, left))

    def _rows(
        self, chunk: bytes, line: int, final: bool, left: list[bytes]
    ) -> Iterator[tuple[int, bytes, list[Any] | BadRow | None]]:
        texts = chunk.split(b"\n")
        if not texts[-1]:
            texts.pop()
        feed = _Feed(texts)
        reader = csv.reader(feed, delimiter=self.delimiter)
        while feed.place < len(texts):
            start = feed.place
            trouble, unclosed = None, False
            fields: list[str] = []
            try:
                fields = next(reader)
                if feed.place > start + 1 and max(map(len, fields)) > self.longest_quoted:
                    trouble, unclosed = _too_long(self.longest_quoted), True
                elif feed.exhausted and not final:
                    left.append(b"\n".join(texts[start:]) + b"\n")
                    break
                elif feed.exhausted or (feed.place > start + 1 and not self._closes(texts[start : feed.place])):
                    trouble, unclosed = f"opens a quote that nothing closes. {_FIX_QUOTE}", True
                elif feed.place == start + 1 and b'"' in texts[start] and not self._closes(texts[start : feed.place]):
                    advice = 'Write quotes (") inside of a value twice, or none around it.'
                    trouble = f"closes a quote within a value. {advice}"
            except csv.Error as error:
                trouble, unclosed = _csv_reason(str(error)), "field limit" in str(error)
                if unclosed and feed.place == start + 1:
                    trouble, unclosed = f"holds a value of more than {LONGEST_VALUE:,} characters.", False
                    reader = csv.reader(feed, delimiter=self.delimiter)
            if unclosed:
                # only the first of the swallowed lines is bad
                feed.place, feed.exhausted = start + 1, False
                reader = csv.reader(feed, delimiter=self.delimiter)
            original = b"\n".join(texts[start : feed.place])
            yield line + start, original, self._values(line + start, original, fields, trouble)

    def _values(self, line: int, original: bytes, fields: list[str], trouble: str | None) -> list[str] | BadRow | None:
        """The required values of a row, its problem, or None for a blank line."""
        if b"\0" in original:
            trouble = NUL  # Python 3.10 rejects it, later versions do not
        elif not trouble and len(fields) <= 1 and not original.strip():
            return None
        elif not trouble and len(fields) != len(self.header):
            first = "header" if self.layout.header else "first row"
            values = f"{len(fields)} value{'s' * (len(fields) != 1)} where the {first} has {len(self.header)}"
            trouble = f"has {values}. {_FIX_FEW if len(fields) < len(self.header) else _FIX_MANY}"
        elif not trouble and self.top and [field.strip() for field in fields] == self.header:
            trouble = "repeats the names of the columns. Remove the line."
        if trouble:
            return BadRow(self.name, line, None, shorten(readable(original)), trouble)
        for place in self.places:
            if not is_utf8(fields[place]):
                content = fields[place].encode("utf-8", "surrogateescape")
                return BadRow(self.name, line, self.header[place], readable(content), not_utf8(content))
        return [fields[place] for place in self.places]


def _too_long(limit: int) -> str:
    return f"opens a quote that does not close within {limit:,} characters. {_FIX_QUOTE}"


def _csv_reason(error: str) -> str:
    if "field limit" in error:
        return _too_long(LONGEST_VALUE)
    if "new-line character" in error:
        return "holds a carriage return within the line. Save the file with \\n line ends."
    return f"cannot be parsed: {error}."


class _Feed:
    """Iterator of lines for the csv module; records its position, and whether it ran out of lines."""

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
        # the csv module needs the line end, as a quoted value may continue
        return text + "\n"
