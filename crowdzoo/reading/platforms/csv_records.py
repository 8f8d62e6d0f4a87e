"""Entries of an export in CSV or TSV."""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import IO

from crowdzoo.errors import BadRow, DataError, shorten
from crowdzoo.files.text import LONGEST_LINE, is_text, not_utf8, readable
from crowdzoo.reading.platforms.export_file import ExportFile

_SEPARATORS = ",\t;"


def csv_records(file: ExportFile) -> Iterator[tuple[int, dict[str, str] | BadRow]]:
    """Yield the first line of each row, and column -> stripped value; blank rows are ignored.

    The separator is that of the file, or the most frequent of comma, tab and semicolon in the header.

    Raises:
        DataError: an empty file, a duplicate column, a quote that is never closed, or a line that is too long.
    """
    with file.text() as stream:
        lines = _lines(file, stream)
        head = next(lines, "")
        if not head.strip():
            raise DataError(f"{file.name}: the first line, which names the columns, is empty.")
        separator = file.separator or max(_SEPARATORS, key=head.count)
        header: list[str] = []
        rows = csv.reader(chain([head], lines), delimiter=separator, strict=True)
        while True:
            line = rows.line_num + 1
            try:
                row = next(rows, None)
            except csv.Error as error:
                raise DataError(f"{file.name}, row {line}: cannot be parsed: {error}. Export it again.") from None
            if row is None:
                break
            if not header:
                header = _header(file, row)
            elif any(cell.strip() for cell in row):
                yield line, _row(file, line, header, row)


def _lines(file: ExportFile, stream: IO[bytes]) -> Iterator[str]:
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) >= LONGEST_LINE:
            raise DataError(f"{file.name}, row {number}: the line is longer than {LONGEST_LINE >> 20} MiB.")
        # invalid UTF-8 and NUL are found later, in their row; before Python 3.11, the csv module rejects NUL
        yield line.decode("utf-8", "surrogateescape").replace("\0", "\udc00")


def _header(file: ExportFile, row: list[str]) -> list[str]:
    header = [name.strip() for name in row]
    if not is_text("".join(header)):
        raise DataError(f"{file.name}, row 1: the header {not_utf8()}")
    twice, times = Counter(header).most_common(1)[0]
    if times > 1:
        raise DataError(f"{file.name}: column '{twice}' is there {times} times. Keep one.")
    return header


def _row(file: ExportFile, line: int, header: list[str], row: list[str]) -> dict[str, str] | BadRow:
    row_text = shorten(readable("|".join(row)))
    if len(row) != len(header):
        reason = f"has {len(row)} value{'s' * (len(row) != 1)} where the header has {len(header)}."
        return BadRow(file.name, line, None, row_text, reason)
    if not is_text("".join(row)):
        return BadRow(file.name, line, None, row_text, not_utf8())
    cells = [value.strip() for value in row]
    if cells == header:  # from concatenated files
        return BadRow(file.name, line, None, row_text, "repeats the names of the columns. Remove the line.")
    return dict(zip(header, cells, strict=True))
