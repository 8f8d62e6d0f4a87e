"""Excel workbooks: converts a sheet to CSV, and a table to a sheet."""

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
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14  # of a sheet, as in Excel
MOST_CELLS = 1 << 26  # of the table in a sheet, including empty ones
MOST_CHARACTERS = 32_767  # of a cell
_MOST_GROWTH, _SMALL = 100, 8 << 20  # real workbooks expand by 5 to 20 times
_CELL_PARTS = 16  # XML elements in a cell on average, in a row of MOST_COLUMNS


def is_workbook(path: str | os.PathLike[str]) -> bool:
    """Whether a name has the suffix of an Excel workbook."""
    return os.fspath(path).endswith(WORKBOOK)


def sheet_csv(path: str | os.PathLike[str], sheet: str | None = None, decimal: str = ".") -> IO[bytes]:
    """Converts a sheet to CSV in UTF-8, with commas, one line per row and per line break in a cell.

    Formulas are replaced by their values, dates are in ISO 8601; empty cells at the ends of rows are dropped.

    Args:
        path: path of the workbook.
        sheet: name of the sheet; None: the first one.
        decimal: decimal mark of numbers in the CSV.

    Raises:
        ConfigError: openpyxl is missing; the workbook has no such sheet.
        DataError: as `check_regular`; an invalid workbook, a zip bomb, or more rows, columns or cells than a sheet may
            have.
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
    except Exception as error:  # a dozen types, of zipfile, XML and openpyxl
        reason = shorten(str(error)) or type(error).__name__
        raise DataError(f"{name}: not a sound workbook ({reason}). Save it again as .xlsx.") from None


def _sheet_csv(name: str, sheet: Any, decimal: str) -> IO[bytes]:
    """Converts row by row, as openpyxl pads its own rows to their last column, and fills gaps between row numbers."""
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
    """Converts a cell's value as Excel does for a CSV file, except for dates."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value).replace(".", decimal)
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    return "" if value is None else str(value)


def write_sheet(table: pa.Table, file: IO[bytes]) -> None:
    """Writes a table as a workbook of one sheet, with a frozen first row.

    Columns of lists are left out. Text that begins like a formula remains text. Fractions show three decimals.

    Args:
        table: table to write.
        file: file to write to.

    Raises:
        ConfigError: openpyxl is missing.
        DataError: more rows than a sheet may have, or a longer text than a cell.
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
    content = io.BytesIO()  # on a full disk, an archive or an open sheet would print a traceback
    try:
        with closing(sheet):
            sheet.append([cell(name) for name in table.column_names])
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                sheet.append([cell(value) for value in row])
    except Exception as error:
        number = getattr(errno, str(error).removeprefix("IO_"), None)  # lxml's error on the sheet's file
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
