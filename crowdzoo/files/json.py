"""Strict JSON: no repeated keys, NaN or unbounded nesting, one type of error; the format version of stored files."""

import json
import os
import re
from typing import Any

from crowdzoo.errors import DataError, short_repr
from crowdzoo.files.regular import open_regular

MAX_DEPTH = 100

_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


class JsonError(ValueError):
    """Text that is not JSON; the message ends a sentence, for example "is nested deeper than 100 levels".

    Attributes:
        line: line of the error, from 1, or None.
    """

    def __init__(self, reason: str, line: int | None = None):
        super().__init__(reason)
        self.line = line


class EncodingError(JsonError):
    """Bytes that are not UTF-8."""


def parse_json(text: str | bytes, *, constants: bool = False) -> Any:
    """Parses one JSON value.

    Args:
        text: the JSON text.
        constants: whether to accept NaN, Infinity and -Infinity, as Python's json module writes them.

    Raises:
        JsonError: not UTF-8, not JSON, a repeated key in an object, NaN or Infinity, nested deeper than MAX_DEPTH, or
            an integer of thousands of digits.
    """
    return _parse(text, _strict_object, float if constants else _refuse_constant)


def parse_row(line: str | bytes, keys: frozenset[str]) -> dict[str, Any]:
    """Parses an object of which only some keys are used; repeated keys and NaN elsewhere in it are ignored.

    Args:
        line: text of the object.
        keys: keys that are used.

    Returns:
        The object.

    Raises:
        JsonError: as `parse_json`, or the value is not an object.
    """
    row = _parse(line, _Object, _Constant)
    if not isinstance(row, dict):
        raise JsonError("is not a JSON object")
    assert isinstance(row, _Object)
    for key in row.twice:
        if key in keys:
            raise JsonError(f"holds the key {key!r} twice")
    for key in keys:
        if isinstance(row.get(key), _Constant):
            raise JsonError(f"is not JSON: {row[key].name} is not a number. Write null where it is unknown")
    return row


def read_json(path: str | os.PathLike[str], *, constants: bool = False) -> Any:
    """Reads a file with one JSON value.

    Args:
        path: path of the file.
        constants: whether to accept NaN, Infinity and -Infinity, as Python's json module writes them.

    Raises:
        DataError: not a regular file, or not JSON; the message names file and line.
    """
    with open_regular(path) as file:
        content = file.read()
    try:
        return parse_json(content.removeprefix(b"\xef\xbb\xbf"), constants=constants)
    except JsonError as error:
        place = os.fspath(path) + (f", row {error.line}" if error.line else "")
        raise DataError(f"{place}: {error}. Copy or write the file again.") from None


def _parse(text: str | bytes, pairs: Any, constant: Any) -> Any:
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
            raise JsonError(f"is nested deeper than {MAX_DEPTH} levels")
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except JsonError:
        raise
    except UnicodeDecodeError:
        raise EncodingError("is not UTF-8. Save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"at character {error.colno}" if "\n" in error.doc else f"at character {error.pos + 1}"
        ends_early = error.msg.startswith("Unterminated") or not error.doc[error.pos :].strip()
        end = "; it may be cut off" * ends_early
        raise JsonError(f"is not JSON: {error.msg.removesuffix(' starting at')} {place}{end}", error.lineno) from None
    except (ValueError, RecursionError) as error:  # an integer of more than 4,300 digits
        raise JsonError(f"is not JSON: {str(error).split(':')[0]}") from None


def _depth(text: str) -> int:
    """Maximum depth of the brackets outside strings."""
    deepest = depth = 0
    for bracket in _NESTING.finditer(text):
        if bracket[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif bracket[0] in "]}":
            depth -= 1
    return deepest


def _strict_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise JsonError(f"holds the key {_repeated(pairs)[0]!r} twice")
    return values


def _refuse_constant(name: str) -> None:
    raise JsonError(f"is not JSON: {name} is not a number. Write null where it is unknown")


class _Object(dict):
    """An object that records which keys are repeated."""

    def __init__(self, pairs: list[tuple[str, Any]]):
        super().__init__(pairs)
        self.twice = _repeated(pairs) if len(self) < len(pairs) else ()


class _Constant:
    """NaN, Infinity or -Infinity."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:  # as in the file, for messages
        return self.name


def _repeated(pairs: list[tuple[str, Any]]) -> list[str]:
    seen: set[str] = set()
    return [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]


# Stored as "format_version" in results, names and cards of models, and data sets in a pipeline. It increases if a
# release of crowdzoo could misread files of the next one.
FORMAT_VERSION = 1


def check_format(version: object, source: str | os.PathLike[str], newest: int = FORMAT_VERSION) -> None:
    """Checks that this release can read a stored file.

    Args:
        version: version in the file; None if the file has none, which is read as version 1.
        source: path of the file, for messages.
        newest: the latest version that this release can read.

    Raises:
        DataError: a later or an invalid version.
    """
    if version is None:
        return
    if type(version) is not int or version < 1:
        raise DataError(f"{os.fspath(source)}: the version of its format is {short_repr(version)}, not 1 or more.")
    if version > newest:
        raise DataError(f"{os.fspath(source)}: written by a later crowdzoo (format {version}). Update crowdzoo.")
