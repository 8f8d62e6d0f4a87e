"""JSON lines: one object a line; and JSON files, as such lines."""

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
    """One JSON object a line; blank lines are passed over. Ids are compared as text: 7 and "7" are one id."""

    sparse = True

    def _read_header(self, head: bytes, line: int) -> tuple[int, int]:
        end = head.find(b"\n")
        try:
            self.first = parse_row(head[: end if end >= 0 else len(head)], frozenset())
        except JsonError:
            self.first = {}
        if head.startswith(b"["):
            raise DataError(f"{self.name}: a JSON list, not one object a line; let its name end in .json.")
        # with a first line that is not an object there is no telling which columns exist; the rows will complain
        self.header = list(self.first) or [self.layout.columns.get(name, name) for name in self.required]
        return 0, line

    def _choose_columns(self) -> None:
        example = self.first
        # what is optional may be missing from the first line
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
                if isinstance(value, list) and column in (*LISTS, "ranking"):  # as text, to be split or refused
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
        """The values of a line that count, or what is wrong with it."""
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
    """A JSON file as JSON lines, counted from 1: a list of objects; or an object of tasks, each an object.

    What is under a task is a row without its task, or maps annotators to labels. Truth values are "true" and
    "false", 1.0 is 1. A file of JSON lines is read as it is.
    """

    def open(self) -> IO[bytes]:
        """The rows, an object a line."""
        with open_regular(self.name) as stream:
            content = stream.read(MOST_BYTES)
        try:
            value = parse_json(content, constants=True)
        except JsonError as error:
            line, _, rest = content.lstrip().partition(b"\n")
            if line.startswith(b"{") and (line.rstrip().endswith(b"}") or not rest.strip()):  # as lines of objects are
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
    """A row whose truth values and finite numbers are labels."""
    values = row.items() if isinstance(row, dict) else ()
    of_labels = [name for name, value in values if isinstance(value, (bool, float)) and abs(value) != math.inf]
    return row | {name: label_text(name, row[name]) for name in of_labels} if of_labels else row
