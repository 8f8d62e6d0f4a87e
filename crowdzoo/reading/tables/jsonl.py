"""JSON lines, with one object per line; and JSON files, converted to such lines."""

import io
import json
import math
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa

from crowdzoo.errors import BadRow, DataError, shorten
from crowdzoo.files.arrow import parse_json_lines
from crowdzoo.files.json import EncodingError, JsonError, parse_json, parse_row
from crowdzoo.files.regular import open_regular
from crowdzoo.files.text import is_text, not_utf8, readable
from crowdzoo.reading.platforms.json_records import MOST_BYTES
from crowdzoo.reading.platforms.record import label_text
from crowdzoo.reading.tables.layout import OPTIONAL
from crowdzoo.reading.tables.naming import VOID, usual_columns
from crowdzoo.reading.tables.plain_array import LISTS
from crowdzoo.reading.tables.sources import IN_LISTS, NUL, REQUIRED, Batch, TextSource


class JsonlSource(TextSource):
    """One JSON object per line; blank lines are ignored. Ids are compared as text: 7 and "7" are the same id."""

    sparse = True

    def _read_header(self, head: bytes, line: int) -> tuple[int, int]:
        end = head.find(b"\n")
        try:
            self.first = parse_row(head[: end if end >= 0 else len(head)], frozenset())
        except JsonError:
            self.first = {}
        if head.startswith(b"["):
            raise DataError(f"{self.name}: a JSON list, not one object a line; let its name end in .json.")
        # if the first line is not an object, columns are unknown; the rows will raise an error
        self.header = list(self.first) or [self.layout.columns.get(name, name) for name in self.required]
        return 0, line

    def _choose_columns(self) -> None:
        example = self.first
        # optional columns may be missing from the first line
        optional = {name: theirs for name in OPTIONAL if (theirs := self.layout.columns.get(name, name))}
        renamed = [name for ours, name in optional.items() if ours in self.layout.columns]
        self.found = self.match(list(dict.fromkeys([*self.header, *renamed]))) | optional
        self.keys = frozenset(self.found.values())
        self.types = {}
        self.expected: dict[str, tuple[str, tuple[type, ...]]] = {}
        for column, name in self.found.items():
            value = example.get(name)
            whole = pa.int64() if type(value) is int else pa.bool_() if isinstance(value, bool) else pa.string()
            if column.startswith(VOID):
                self.expected[column], self.types[name] = ("true, false or a word", (bool, int, str)), whole
            elif column in (*OPTIONAL, *self.label_kind.number_columns):
                self.expected[column] = "a number", (int, float, str)
                self.types[name] = whole if isinstance(value, str) else pa.float64()
            else:
                self.expected[column] = "an integer" if column == "position" else "a string or an integer", (int, str)
                if isinstance(value, list) and column in (*LISTS, "ranking"):  # as text, to be split or rejected
                    self.expected[column] = "a list, as in the first line", (int, str, list)
                self.types[name] = whole

    def _fast(self, chunk: bytes, ends: np.ndarray) -> dict[str, pa.Array] | None:
        columns = parse_json_lines(chunk, ends, self.types)
        if columns is None:
            return None
        return {
            name: column if pa.types.is_floating(column.type) else column.cast(pa.large_string())
            for name, column in zip(self.found, columns, strict=True)
        }

    def _slow(self, chunk: bytes, line: int, final: bool, left: list[bytes]) -> Iterator[Batch]:
        return self._batches(
            (here, text, self._values(text, here))
            for here, text in enumerate(chunk.split(b"\n"), start=line)
            if text.strip()
        )

    def _values(self, text: bytes, line: int) -> list[str | None] | BadRow:
        """The required values of a line, or its problem."""
        values: list[str | None] = []
        line_text = shorten(readable(text))
        try:
            row = parse_row(text, self.keys)
        except EncodingError:
            return BadRow(self.name, line, None, line_text, not_utf8(text))
        except JsonError as error:
            return BadRow(self.name, line, None, line_text, f"{error}.")
        for column, name in self.found.items():
            value = row.get(name)
            expected, types = self.expected[column]
            if value is not None and ((isinstance(value, bool) and bool not in types) or not isinstance(value, types)):
                advice = " Write it in quotes." * isinstance(value, (bool, float))
                return BadRow(self.name, line, name, value, f"is not {expected}.{advice}")
            if isinstance(value, str) and not is_text(value):
                reason = NUL if "\0" in value else "holds half a character."
                return BadRow(self.name, line, name, readable(value.encode("utf-8", "replace")), reason)
            values.append(None if value is None else str(value))
        return values


class JsonSource(JsonlSource):
    """A JSON file read as JSON lines, counted from 1: a list of objects, or an object of tasks, each an object.

    The object of a task is a row without its task, or maps annotators to labels. Booleans become "true" and "false",
    1.0 becomes 1. A file of JSON lines is read unchanged.
    """

    def open(self) -> IO[bytes]:
        """The rows, one object per line."""
        with open_regular(self.name) as stream:
            content = stream.read(MOST_BYTES)
        try:
            value = parse_json(content, constants=True)
        except JsonError as error:
            line, _, rest = content.lstrip().partition(b"\n")
            if line.startswith(b"{") and (line.rstrip().endswith(b"}") or not rest.strip()):  # JSON lines
                return io.BytesIO(content)
            place = f", row {error.line}" if error.line else ""
            raise DataError(f"{self.name}{place}: {error}.") from None
        if isinstance(value, dict) and all(isinstance(cells, dict) for cells in value.values()):
            keys = [*map(list, value.values())]
            if len(usual_columns([*value], REQUIRED)) > 1 and keys[1:] == keys[:-1]:  # columns, as of DataFrame.to_json
                value = [{name: cells[key] for name, cells in value.items()} for key in keys[0]]
            else:
                value = self._rows(value)
        rows = value if isinstance(value, (list, Iterator)) else [value]
        return io.BytesIO(b"\n".join(json.dumps(_plain(row)).encode() for row in rows))

    def _rows(self, tasks: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for task, answers in tasks.items():
            names = {*usual_columns([*answers], LISTS, IN_LISTS), *self.layout.columns.values()}
            if names & answers.keys():
                yield {"task": task, **answers} if self.layout.columns.get("task") else {**answers, "task": task}
            else:
                yield from ({"task": task, "annotator": who, "label": label} for who, label in answers.items())


def _plain(row: Any) -> Any:
    """Convert booleans and finite numbers of a row to labels."""
    values = row.items() if isinstance(row, dict) else ()
    of_labels = [name for name, value in values if isinstance(value, (bool, float)) and abs(value) != math.inf]
    return row | {name: label_text(name, row[name]) for name in of_labels} if of_labels else row
