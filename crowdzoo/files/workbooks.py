"""Excel workbooks: a sheet as lines of CSV, and a table as a sheet."""

import csv
import io
import os
from collections.abc import Iterable
from datetime import datetime, time
from typing import IO, Any

import pyarrow as pa

from crowdzoo.errors import ConfigError, DataError, unknown
from crowdzoo.files.regular import check_member, check_regular, zip_archive

WORKBOOK = ".xlsx"
MOST_ROWS = 1 << 20  # of a sheet
MOST_CHARACTERS = 32_767  # of a cell


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
        DataError: as `check_regular`; no sound workbook.
    """
    name = os.fspath(path)
    check_regular(path)
    with zip_archive(path, name) as archive:
        for member in archive.infolist():
            check_member(name, member)
    openpyxl = _openpyxl(name)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # a dozen kinds, of zipfile, of XML and its own
        raise DataError(f"{name}: not a sound workbook ({error}). Save it again as .xlsx.") from None
    try:
        sheets = {each.title: each for each in book.worksheets}
        if sheet is not None and sheet not in sheets:
            raise ConfigError(f"{name}: {unknown('sheet', sheet, sheets)}")
        chosen = sheets[sheet] if sheet is not None else book.worksheets[0]
        chosen.reset_dimensions()  # what the file says of its size is often wrong
        rows = [_cells(row, decimal) for row in chosen.iter_rows(values_only=True)]
    finally:
        book.close()
    width = len(next((row for row in rows if row), ()))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(row + [""] * (width - len(row)) if row else [])
    return io.BytesIO(text.getvalue().encode("utf-8", "replace"))


def _cells(row: Iterable[Any], decimal: str) -> list[str]:
    cells = [_text(value, decimal) for value in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


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

    def cell(value: Any) -> Any:
        if isinstance(value, float) and value == value:
            made = openpyxl.cell.WriteOnlyCell(sheet, value)
            made.number_format = "0.0##"
            return made
        if not isinstance(value, str):
            return None if value != value else value  # NaN
        if len(value) > MOST_CHARACTERS:
            raise DataError(f"a cell of a sheet holds at most {MOST_CHARACTERS:,} characters. Write .csv or .parquet.")
        made = openpyxl.cell.WriteOnlyCell(sheet, openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("\ufffd", value))
        made.data_type = "s"  # not "f", for a formula, or "e", for an error
        return made

    table = table.select([field.name for field in table.schema if not pa.types.is_nested(field.type)])
    sheet.append([cell(name) for name in table.column_names])
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        sheet.append([cell(value) for value in row])
    book.save(file)


def _openpyxl(name: str) -> Any:
    try:
        import openpyxl
    except ImportError:
        raise ConfigError(f"{name}: workbooks need openpyxl: pip install 'crowdzoo[excel]'. CSV does not.") from None
    return openpyxl
