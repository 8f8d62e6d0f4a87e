"""Entries of an export in JSON: a list, one object per line, or a single object."""

import json
from collections.abc import Iterator
from typing import IO, Any

from crowdzoo.errors import BadRow, DataError, shorten
from crowdzoo.files.json import EncodingError, JsonError, parse_json
from crowdzoo.files.text import LONGEST_LINE, not_utf8, readable
from crowdzoo.reading.platforms.export_file import ExportFile

MOST_BYTES = 1 << 30  # of a file with one JSON value; JSON lines have no such limit


def json_records(file: ExportFile) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Yield objects of a JSON file with their numbers from 1, or of JSON lines with line numbers.

    Raises:
        DataError: the file is empty, not JSON, or a single JSON value of more than MOST_BYTES.
    """
    with file.text() as stream:
        number, line = 1, stream.readline(LONGEST_LINE)
        while not line.strip():
            number += 1
            if not (line := stream.readline(LONGEST_LINE)):
                raise DataError(f"{file.name} is empty.")
        is_whole = line.lstrip().startswith(b"[") or len(line) >= LONGEST_LINE
        try:
            first = None if is_whole else parse_json(line, constants=True)
        except JsonError as error:
            first = None
            if line.rstrip().endswith(b"}"):  # a bad line
                first = _bad_line(file, number, line, error)
        if first is None:  # a list, or an object over several lines
            yield from _whole(file, line + stream.read(MOST_BYTES), number - 1)
            return
        yield number, _object(file, number, first)
        while line := _line(file, stream, number := number + 1):
            if line.strip():
                yield number, _parsed(file, number, line)


def _line(file: ExportFile, stream: IO[bytes], number: int) -> bytes:
    line = stream.readline(LONGEST_LINE)
    if len(line) >= LONGEST_LINE:
        raise DataError(f"{file.name}, row {number}: the line is longer than {LONGEST_LINE >> 20} MiB.")
    return line


def _whole(file: ExportFile, content: bytes, skipped: int) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Entries of a file with one JSON value."""
    if len(content) >= MOST_BYTES:
        raise DataError(f"{file.name}: more than {MOST_BYTES >> 30} GiB of JSON. Export it in parts, into one folder.")
    try:
        value = parse_json(content, constants=True)
    except JsonError as error:
        place = f", row {skipped + error.line}" if error.line else ""
        raise DataError(f"{file.name}{place}: {error}. Export it again.") from None
    for number, entry in enumerate(value if isinstance(value, list) else [value], start=1):
        yield number, _object(file, number, entry)


def _parsed(file: ExportFile, number: int, line: bytes) -> dict[str, Any] | BadRow:
    try:
        return _object(file, number, parse_json(line, constants=True))
    except JsonError as error:
        return _bad_line(file, number, line, error)


def _bad_line(file: ExportFile, number: int, line: bytes, error: JsonError) -> BadRow:
    reason = not_utf8(line) if isinstance(error, EncodingError) else f"{error}. Export it again, or remove the line."
    return BadRow(file.name, number, None, shorten(readable(line)), reason)


def _object(file: ExportFile, number: int, value: Any) -> dict[str, Any] | BadRow:
    if isinstance(value, (dict, BadRow)):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return BadRow(file.name, number, None, shorten(text), "is not a JSON object.")
