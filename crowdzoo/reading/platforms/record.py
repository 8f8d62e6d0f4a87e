"""Record: the answers of an export's entry to one task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crowdzoo.data.numbers import parse_number
from crowdzoo.data.regions import MarkedImage
from crowdzoo.files.json import JsonError, parse_json
from crowdzoo.files.text import is_text

_SPAN = ("start", "end", "label")


@dataclass
class Record:
    """An entry of an export, with the answers of one or several annotators.

    Attributes:
        task: name of the task.
        data: what annotators saw, column -> value.
        answers: annotator (None: gold) and labels as text (possibly none), or spans: `{"start": 0, "end": 4, "label":
            "PER"}`, in characters of the text, with `text` and its `place` in the entry if the platform gives the
            marked text, and `fragments` for a span in pieces; or pairs, each `(left, right, label)`.
        bad: problems of answers that were left out.
        left_out: descriptions of contents that are not answers, such as "cancelled annotations", once per occurrence.
        seconds: duration of each answer, if they are labels; NaN if unknown.
        times: time of each answer, in seconds since 1970, likewise.
        empty: descriptions of answers without a label, once per occurrence; such answers count if tasks may have
            several labels.
        images: marked images, if labels are texts of images.
        tokens: words of the text, if the platform gives them.
        row: number of the entry, from 1, counted over all files.
        place: name of its file, and its number in it.
        entry: the entry as in the file.
    """

    task: str
    data: dict[str, Any]
    answers: list[tuple[str | None, list[Any]]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    images: list[MarkedImage] = field(default_factory=list)
    tokens: list[str] | None = None
    bad: list[BadValue] = field(default_factory=list)
    row: int = 0
    place: tuple[str, int] = ("", 0)
    entry: Mapping[str, Any] = field(default_factory=dict)

    def add(self, annotator: str | None, labels: list[Any], empty: str, seconds: Any = None, time: Any = None) -> None:
        """Add an answer.

        Args:
            annotator: name of the annotator; None: gold.
            labels: labels of the answer; may be empty.
            empty: description of the answer if it has no label.
            seconds: duration of the answer.
            time: time of the answer, a date or seconds since 1970; unreadable ones are left out and counted.
        """
        self.answers.append((annotator, labels))
        for times, column, value in ((self.seconds, "seconds", seconds), (self.times, "timestamp", time)):
            number = parse_number(column, str(value).strip()) if value not in (None, "") else math.nan
            is_bad = number is None or math.isinf(number)
            times.append(math.nan if number is None or is_bad else number)
            self.left_out += ["times that are not dates"] * (is_bad and column == "timestamp")
        if not labels:
            self.empty.append(empty)


# An image without answers; its height and width; and annotators ("": that of the file, None: gold), each with its
# regions, see `MarkedImage.of`, duration in seconds, and time
Marked = tuple[Record, Sequence[Any], Iterable[tuple[Any, ...]]]


class BadValue(Exception):  # noqa: N818  becomes a BadRow, which names file and row as well
    """A value that a reader cannot use.

    Args:
        key: its key in the entry, such as "annotations[0].completed_by".
        value: the value; None if the key is missing.
        reason: problem and fix, as the end of a sentence.
    """

    def __init__(self, key: str | None, value: object, reason: str):
        super().__init__(key, value, reason)
        self.key, self.value, self.reason = key, value, reason


def id_text(key: str, value: Any, missing: str) -> str:
    """Convert an id, a string or an integer, to text.

    Args:
        key: its key, for messages.
        value: the id.
        missing: fix for a missing id, as the end of a sentence.

    Raises:
        BadValue: not an id.
    """
    if value is None or value == "":
        raise BadValue(key, None, missing)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise BadValue(key, value, "is not an id: a string or an integer.")
    text = str(value)
    if not text.strip() or not is_text(text):
        raise BadValue(key, value, "is empty, or holds a NUL or half a character.")
    return text


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, a value as a list of one, and None as an empty list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def json_cell(key: str, text: str, fix: str = "") -> Any:
    """Parse the JSON value in a cell of a table.

    Args:
        key: its key, for messages.
        text: text of the cell.
        fix: fix for invalid JSON, with a leading blank.

    Raises:
        BadValue: not JSON.
    """
    try:
        return parse_json(text, constants=True)
    except JsonError as error:
        raise BadValue(key, text, f"{error}.{fix}") from None


def span_of(key: str, value: Any, names: Sequence[str] = _SPAN, order: Sequence[str] = ()) -> dict[str, Any]:
    """Convert a span to the form of `Record.answers`, without other data of the export.

    Args:
        key: its key, for messages.
        value: an object, or a list.
        names: keys of its start, end and label.
        order: order of these keys in a list; empty: lists are not allowed.

    Raises:
        BadValue: not a span.
    """
    entry = dict(zip(order, value, strict=False)) if isinstance(value, list) else value
    if not isinstance(entry, dict) or not {*names} <= entry.keys():
        raise BadValue(key, value, f"is not a span with {names[0]}, {names[1]} and {names[2]}.")
    return {own: entry[name] for own, name in zip(_SPAN, names, strict=True)}


def label_texts(key: str, values: Any) -> list[str]:
    """Convert labels to text, without missing ones; `values` is a list or a single label. See `label_text`."""
    return [text for value in as_list(values) if (text := label_text(key, value)) is not None]


def label_text(key: str, value: Any) -> str | None:
    """Convert a label to text: 4 and 4.0 are "4", true is "true"; None if missing (null, NaN, "").

    Raises:
        BadValue: a list or an object, an infinite number, or text with a NUL or a lone surrogate.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isinf(value):
            raise BadValue(key, value, "is not a finite number.")
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise BadValue(key, value, "is not a label: a string or a number.")
    if not is_text(value):
        raise BadValue(key, value, "holds a NUL or half a character.")
    return value if value.strip() else None
