"""Record: what one entry of an export says of one task."""

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
    """One entry of an export. An entry may hold the answers of several annotators, or one of them.

    Attributes:
        task: name of the task.
        data: what annotators saw, column -> value.
        answers: annotator (None: the answer is gold) and the labels given, as text (perhaps none), or the spans:
            `{"start": 0, "end": 4, "label": "PER"}`, in characters of the text, with `text` where the platform says
            what was marked, `place` of it in the entry, and `fragments` where a span is in pieces; or the pairs, each
            `(left, right, label)`.
        bad: what is wrong with answers that were left out.
        left_out: what the entry holds that is not an answer, such as "cancelled annotations", once for each.
        seconds: that each answer took, where they are labels; NaN where the platform does not say so.
        times: when each answer was given, in seconds since 1970, likewise.
        empty: what answers without a label are called, once for each; they count where several labels may hold.
        images: what was marked, where the labels given are the texts of images.
        tokens: words of the text where the platform says how it was cut.
        row: number of the entry, from 1; over several files numbers go on.
        place: name of its file, and its number there.
        entry: as it is in the file.
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
        """Adds an answer.

        Args:
            annotator: who gave it; None: it is gold.
            labels: perhaps none.
            empty: what it is called where it has no label.
            seconds: that it took.
            time: when it was given, a date or seconds since 1970; one that cannot be read is left out and counted.
        """
        self.answers.append((annotator, labels))
        for times, column, value in ((self.seconds, "seconds", seconds), (self.times, "timestamp", time)):
            number = parse_number(column, str(value).strip()) if value not in (None, "") else math.nan
            is_bad = number is None or math.isinf(number)
            times.append(math.nan if number is None or is_bad else number)
            self.left_out += ["times that are not dates"] * (is_bad and column == "timestamp")
        if not labels:
            self.empty.append(empty)


# An image without answers; its height and width; and annotators ("": that of the file, None: gold), each with what was
# marked, see `MarkedImage.of`, the seconds that it took, and when
Marked = tuple[Record, Sequence[Any], Iterable[tuple[Any, ...]]]


class BadValue(Exception):  # noqa: N818  becomes a BadRow, which names file and row as well
    """A value that a reader cannot take.

    Args:
        key: where it is in its entry, such as "annotations[0].completed_by".
        value: the value; None where the key is missing.
        reason: what is wrong and what to do, as the end of a sentence.
    """

    def __init__(self, key: str | None, value: object, reason: str):
        super().__init__(key, value, reason)
        self.key, self.value, self.reason = key, value, reason


def id_text(key: str, value: Any, missing: str) -> str:
    """An id, a string or an integer, as text.

    Args:
        key: where it is, for messages.
        value: the id.
        missing: what to do where it is missing, as the end of a sentence.

    Raises:
        BadValue: no id.
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
    """A list as it is, one value in a list, and nothing as an empty one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def json_cell(key: str, text: str, fix: str = "") -> Any:
    """The JSON value that a cell of a table holds.

    Args:
        key: where it is, for messages.
        text: of the cell.
        fix: what to do where it is not JSON, with a blank before it.

    Raises:
        BadValue: it is not JSON.
    """
    try:
        return parse_json(text, constants=True)
    except JsonError as error:
        raise BadValue(key, text, f"{error}.{fix}") from None


def span_of(key: str, value: Any, names: Sequence[str] = _SPAN, order: Sequence[str] = ()) -> dict[str, Any]:
    """A span as `Record.answers` has it, without what else the export says of it.

    Args:
        key: where it is, for messages.
        value: an object, or a list.
        names: keys of its start, its end and its label.
        order: that of these in a list; empty: there are no lists.

    Raises:
        BadValue: it is not a span.
    """
    entry = dict(zip(order, value, strict=False)) if isinstance(value, list) else value
    if not isinstance(entry, dict) or not {*names} <= entry.keys():
        raise BadValue(key, value, f"is not a span with {names[0]}, {names[1]} and {names[2]}.")
    return {own: entry[name] for own, name in zip(_SPAN, names, strict=True)}


def label_texts(key: str, values: Any) -> list[str]:
    """Labels as text, without those that are missing; `values` is a list, or one of them. See `label_text`."""
    return [text for value in as_list(values) if (text := label_text(key, value)) is not None]


def label_text(key: str, value: Any) -> str | None:
    """A label as text: 4 and 4.0 are "4", true is "true"; None if missing (null, NaN, "").

    Raises:
        BadValue: a list or an object, an infinite number, text with a NUL or half a character.
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
