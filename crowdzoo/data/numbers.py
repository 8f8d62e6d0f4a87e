"""Columns of numbers: ratings, positions, confidence, timestamps."""

import functools
import re
from collections.abc import Callable
from datetime import datetime, timezone
from email.utils import mktime_tz, parsedate_tz
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.errors import Setting

# 01.03.2026 10:00: the day comes first in dates with points
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?$")
_ZONE = re.compile(r"^[A-Z][a-z]{2}\b.* ([ECMP][SD]T|UTC|GMT|[+-]\d{4})\b")
_FRACTION = re.compile(r"(?<=:\d\d)\.\d+")  # fractions of a second
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+\s*$")

# numbers of bad rows, and the reason or a function that makes it from the value
Problem = tuple[np.ndarray, "str | Callable[[Any], str]"]


def numbers_of(column: str, values: pa.Array, decimal: str = ".") -> tuple[np.ndarray, list[Problem]]:
    """Reads the numbers of a column, and finds the rows without one.

    Args:
        column: name of the column.
        values: text, numbers or times [n].
        decimal: decimal mark of numbers in text.

    Returns:
        float64 [n] (int64 [n] for positions), and pairs of row numbers and the reason why they are bad.
    """
    missing = values.is_null().to_numpy(zero_copy_only=False)
    unreadable = np.zeros(len(values), dtype=bool)
    if pa.types.is_timestamp(values.type):
        numbers = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) / 1e6
    elif pa.types.is_large_string(values.type):
        trimmed = pc.utf8_trim_whitespace(values)
        missing |= pc.equal(trimmed, "").fill_null(True).to_numpy(zero_copy_only=False)
        numbers, unreadable = parse_numbers(column, trimmed, missing, decimal)
    else:
        numbers = values.cast(pa.float64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False)
        numbers = in_seconds(numbers) if column == "timestamp" else numbers
    problems: list[Problem] = []
    required = column in ("label", "position")
    if required and missing.any():
        problems.append((np.flatnonzero(missing), "is empty. Fill it in, or remove the row."))
    if unreadable.any():
        noun = {
            "position": "an integer",
            "timestamp": "a number of seconds or an ISO 8601 date such as 2026-03-01 10:00",
        }.get(column, "a number")
        why = _no_rating if column == "label" else functools.partial(no_number, noun)
        problems.append((np.flatnonzero(unreadable & ~missing), why))
    readable = ~(missing | unreadable)
    if column == "position":
        whole = (np.floor(numbers) == numbers) & (numbers >= 0) & (numbers < 2**31)
        if not whole[readable].all():
            problems.append((np.flatnonzero(readable & ~whole), "is not a position: positions are integers from 0."))
        return np.where(whole & readable, numbers, 0).astype(np.int64), problems
    finite = np.isfinite(numbers)
    if column == "label" and not finite[readable].all():
        problems.append((np.flatnonzero(readable & ~finite), _not_finite))
    elif column == "label" and (large := readable & (np.abs(numbers) > 1e100)).any():
        problems.append((np.flatnonzero(large), "is beyond 1e100: squares of ratings must fit. Use another unit."))
    elif not required:
        infinite = np.isinf(numbers) & readable
        if infinite.any():
            problems.append((np.flatnonzero(infinite), "is not a finite number. Leave it empty where it is unknown."))
        numbers = np.where(missing, np.nan, numbers)
    return numbers, problems


def _not_finite(value: Any) -> str:
    """Why a text is not a rating, with a fix if it may mean that the label is missing."""
    if not isinstance(value, str) or value.lower() != "nan":
        return "is not a finite number."
    return f"is not a finite number. {_no_label(value)}"


def _no_label(text: str) -> str:
    return f"If it means that there is no label, leave the rows out: {Setting('missing', [text])}."


def no_number(noun: str, value: Any) -> str:
    """Why a text is not a number, with a fix if only the decimal mark is wrong."""
    comma = f" For numbers with a decimal comma give {Setting('decimal', ',')}."
    way_out = comma if _DECIMAL_COMMA.match(str(value)) else ""
    return f"is not {noun}.{way_out}"


def _no_rating(value: Any) -> str:
    """Why a text is not a rating, with a fix for words of a scale and for words that mean a missing rating."""
    text = str(value).strip()
    if text.casefold() in ("na", "n/a", "none", "null", "#n/a"):
        return f"is not a number. {_no_label(text)}"
    is_word = len(text) < 40 and any(map(str.isalpha, text)) and not {*",=\n\r'\""} & {*text}
    rename = Setting("rename", {text: "NUMBER"})
    way_out = f" If it is a word of a scale, give each word its number: {rename}." if is_word else ""
    return no_number("a number", value) + way_out


def parse_numbers(
    column: str, texts: pa.Array, missing: np.ndarray, decimal: str = "."
) -> tuple[np.ndarray, np.ndarray]:
    """Parses numbers written as text, and marks other texts. Python parses only what Arrow cannot.

    Args:
        column: name of the column; "timestamp" may contain dates.
        texts: large_string [n], without surrounding white space.
        missing: bool [n], True where nothing is to be read.
        decimal: decimal mark; if it is a comma, numbers must not contain points.

    Returns:
        float64 [n], 0 where nothing was read, and bool [n], True where the text is not a number.
    """
    if decimal == "," and column not in ("position", "timestamp"):
        texts = pc.replace_substring(pc.replace_substring(texts, ".", "point"), ",", ".")
    filled = texts if not missing.any() else pc.if_else(pa.array(missing), pa.scalar("0", pa.large_string()), texts)
    try:
        numbers = filled.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return in_seconds(numbers) if column == "timestamp" else numbers, np.zeros(len(texts), dtype=bool)
    except pa.ArrowInvalid:
        encoded = filled.dictionary_encode()
        parsed = [parse_number(column, text) for text in encoded.dictionary.to_pylist()]
        unreadable = np.array([number is None for number in parsed], dtype=bool)
        numbers = np.array([0.0 if number is None else number for number in parsed])
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return numbers[codes], unreadable[codes]


def parse_number(column: str, text: str) -> float | None:
    """Parses a number, or for the column "timestamp" also a date; None if the text is neither."""
    try:
        # Python would accept 1_000, which no other reader does
        number = None if "_" in text else float(text)
        return float(in_seconds(number)) if number is not None and column == "timestamp" else number
    except ValueError:
        if column != "timestamp":
            return None
    try:
        if dotted := _DOTTED.match(text):
            day, month, year, hour, minute, second = (int(part or 0) for part in dotted.groups())
            return datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp()
        if _ZONE.search(text) and (parts := parsedate_tz(text)):  # Sat Mar 02 10:11:12 PST 2024
            return float(mktime_tz(parts))
        text = _FRACTION.sub(lambda digits: f"{digits[0]:0<7}"[:7], text)  # Python 3.10 reads only three or six digits
        moment = datetime.fromisoformat(re.sub(r" ?(Z|UTC|GMT|[+-]00:?00)$", "+00:00", text, flags=re.IGNORECASE))
    except (ValueError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def in_seconds(times: Any) -> Any:
    """Converts times since 1970 to seconds; their size tells seconds from milli-, micro- and nanoseconds."""
    size = np.abs(times)
    return times / np.select([size >= 1e17, size >= 1e14, size >= 1e11], [1e9, 1e6, 1e3], 1.0)


def outside_scale(ratings: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Marks ratings outside a scale.

    Args:
        ratings: float of any shape.
        low: lowest rating of the scale, or None.
        high: highest rating of the scale, or None.

    Returns:
        bool of the ratings' shape; NaN and infinities are outside.
    """
    # not < and >: NaN would pass those
    inside = np.isfinite(ratings)
    if low is not None:
        inside &= ratings >= low
    if high is not None:
        inside &= ratings <= high
    return ~inside


def scale_reason(low: float | None, high: float | None) -> str:
    """Why a rating outside the scale is refused, and the fix."""
    if low is None and high is None:
        return "is not a finite number. Fix the rating or remove it."
    scale = f"(at least {low:g})" if high is None else f"(at most {high:g})" if low is None else f"{low:g} to {high:g}"
    ends = " and ".join(str(Setting(name)) for name, end in (("low", low), ("high", high)) if end is not None)
    return f"is outside the scale {scale}. Fix the rating or remove it, or change {ends}."
