"""Excel workbooks: a sheet as lines of CSV, and a table as a sheet."""

import csv
import errno
import io
import os
import tempfile
from contextlib import closing
from datetime import datetime, time
from typing import IO, Any

import pyarrow as pa

from crowdzoo.errors import ConfigError, CrowdzooError, DataError, shorten, unknown
from crowdzoo.files.regular import check_regular, zip_archive

WORKBOOK = ".xlsx"
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14  # of a sheet, as Excel has it
MOST_CELLS = 1 << 26  # of the table in a sheet, with the empty ones that fill its rows
MOST_CHARACTERS = 32_767  # of a cell
_MOST_GROWTH, _SMALL = 100, 8 << 20  # real workbooks grow by 5 to 20 times
_CELL_PARTS = 16  # XML elements in a cell on average, in a row of MOST_COLUMNS


def is_workbook(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of an Excel workbook."""
    return os.fspath(path).endswith(WORKBOOK)


def sheet_csv(path: str | os.PathLike[str], sheet: str | None = None, decimal: str = ".") -> IO[bytes]:
    """A sheet as CSV in UTF-8, with commas: a line a row; a line break in a cell counts, too.

    A formula is its value, a date is in ISO 8601; empty cells at the ends of rows do not count.

    Args:
        path: of the workbook.
        sheet: name of the sheet; None: the first one.
        decimal: mark that numbers get.

    Raises:
        ConfigError: openpyxl is missing; the workbook has no such sheet.
        DataError: as `check_regular`; not a sound workbook, one that grows as a zip bomb does, or more rows, columns or
            cells than a sheet has.
    """
    name = os.fspath(path)
    check_regular(path)
    with zip_archive(path, name) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > max(_SMALL, _MOST_GROWTH * os.path.getsize(path)):
        raise DataError(f"{name}: would become {size:,} bytes, as a zip bomb does. If that is right, save it as .csv.")
    openpyxl = _openpyxl(name)
    try:
        with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
            sheets = {each.title: each for each in book.worksheets}
            if sheet is not None and sheet not in sheets:
                raise ConfigError(f"{name}: {unknown('sheet', sheet, sheets)}")
            return _sheet_csv(name, sheets[sheet] if sheet is not None else book.worksheets[0], decimal)
    except CrowdzooError:
        raise
    except Exception as error:  # a dozen kinds, of zipfile, of XML and its own
        reason = shorten(str(error)) or type(error).__name__
        raise DataError(f"{name}: not a sound workbook ({reason}). Save it again as .xlsx.") from None


def _sheet_csv(name: str, sheet: Any, decimal: str) -> IO[bytes]:
    """A row at a time: openpyxl's own are as long as their last column's number, and fill gaps between numbers."""
    from openpyxl.worksheet._reader import DATA_TAG, ROW_TAG, WorkSheetParser
    from openpyxl.xml.functions import iterparse

    text, book = io.StringIO(), sheet.parent
    writer = csv.writer(text, lineterminator="\n")
    last = width = total = parts = 0
    limits = f"a sheet has at most {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns. Save it again, or as .csv."
    formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
    with sheet._get_source() as source:
        parser = WorkSheetParser(source, sheet._shared_strings, data_only=True, epoch=book.epoch, **formats)
        for event, element in iterparse(source, ("start", "end")):
            parts += event == "start"
            if parts > MOST_COLUMNS * _CELL_PARTS:
                raise DataError(f"{name}, after row {last}: {limits}")
            if event == "end" and element.tag == DATA_TAG:
                break
            if event == "start" or element.tag != ROW_TAG:
                continue
            number, cells = parser.parse_row(element)
            element.clear()
            length = max((cell["column"] for cell in cells), default=0)
            if number > MOST_ROWS or length > MOST_COLUMNS:
                raise DataError(f"{name}, after row {last}: {limits}")
            if number <= last:
                raise DataError(f"{name}: row {number} comes after row {last}. Save the workbook again as .xlsx.")
            texts = {cell["column"]: filled for cell in cells if (filled := _text(cell["value"], decimal))}
            length = max(texts, default=0)
            width = width or length
            total += max(width, length)
            if total > MOST_CELLS:
                raise DataError(f"{name}: the sheet has more than {MOST_CELLS:,} cells. Save it as .csv.")
            text.write("\n" * (number - last - 1))
            writer.writerow(map(texts.get, range(1, max(width, length) + 1)) if texts else ())  # None: an empty cell
            last, parts = number, 0
    return io.BytesIO(text.getvalue().encode("utf-8", "replace"))


def _text(value: Any, decimal: str) -> str:
    """A cell's value as Excel writes it into a CSV file, but for dates."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value).replace(".", decimal)
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    return "" if value is None else str(value)


def write_sheet(table: pa.Table, file: IO[bytes]) -> None:
    """Writes a table as a workbook of one sheet, whose first row stays in sight.

    Columns of lists are left out. Text is text, also where it begins as a formula does. Fractions show three decimals.

    Args:
        table: the table.
        file: is written to.

    Raises:
        ConfigError: openpyxl is missing.
        DataError: more rows than a sheet has, or a longer text than a cell.
    """
    openpyxl = _openpyxl("the workbook")
    if table.num_rows >= MOST_ROWS:
        raise DataError(f"a sheet has at most {MOST_ROWS - 1:,} rows under its header. Write .csv or .parquet.")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.freeze_panes = "A2"

    def cell(value: object) -> object:
        if isinstance(value, float) and value == value:
            written = openpyxl.cell.WriteOnlyCell(sheet, value)
            written.number_format = "0.0##"
            return written
        if not isinstance(value, str):
            return None if value != value else value  # NaN
        if len(value) > MOST_CHARACTERS:
            raise DataError(f"a cell of a sheet holds at most {MOST_CHARACTERS:,} characters. Write .csv or .parquet.")
        written = openpyxl.cell.WriteOnlyCell(sheet, openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("\ufffd", value))
        written.data_type = "s"  # not "f", for a formula, or "e", for an error
        return written

    table = table.select([field.name for field in table.schema if not pa.types.is_nested(field.type)])
    content = io.BytesIO()  # an archive on a full disk prints a traceback, as a sheet does that is left open
    try:
        with closing(sheet):
            sheet.append([cell(name) for name in table.column_names])
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                sheet.append([cell(value) for value in row])
    except Exception as error:
        number = getattr(errno, str(error).removeprefix("IO_"), None)  # lxml's name, of the file that holds the sheet
        if number is None:
            raise
        raise OSError(number, os.strerror(number), tempfile.gettempdir()) from None
    book.save(content)
    file.write(content.getbuffer())


def _openpyxl(name: str) -> Any:
    try:
        import openpyxl
    except ImportError:
        raise ConfigError(f"{name}: workbooks need openpyxl: pip install 'crowdzoo[excel]'. CSV does not.") from None
    return openpyxl
