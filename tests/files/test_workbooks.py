"""Excel workbooks: what is in a sheet is read, what is written is text and numbers and no formula."""

import datetime
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from refusals import bad_row
from table_files import rows_of

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.files import workbooks

pytestmark = pytest.mark.usefixtures("here")

openpyxl = pytest.importorskip("openpyxl")


def workbook(name, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(name)
    return name


def written(name, **columns):
    with open(name, "wb") as file:
        workbooks.write_sheet(pa.table(columns), file)


ANSWERS = [("task", "annotator", "label"), (7, "Zoë", "größer"), (7, "bob", True), (8, "bob", "a\nb")]


def test_the_first_sheet_is_read_or_the_one_that_is_named():
    workbook("a.xlsx", Antworten=ANSWERS, rest=[("task", "annotator", "label"), (1, "x", "y")])
    assert rows_of(Annotations.read("a.xlsx")) == [(7, "Zoë", "größer"), (7, "bob", "TRUE"), (8, "bob", "a\nb")]
    assert rows_of(Annotations.read("a.xlsx", sheet="rest")) == [(1, "x", "y")]
    with pytest.raises(ConfigError, match=r"unknown sheet 'rst': choose one of Antworten, rest. Did you mean 'rest'"):
        Annotations.read("a.xlsx", sheet="rst")


def test_numbers_dates_gaps_and_decimal_marks_are_what_they_are():
    day = datetime.datetime(2026, 11, 3)
    rows = [
        ("task", "annotator", "label", "timestamp", None), (1, "x", 3.5, day, None), (None,), (2, "x", 4.0, day, None),
    ]  # fmt: skip
    workbook("a.xlsx", s=rows)
    found = Annotations.read("a.xlsx", kind="regression", decimal=",")
    assert found.labels.tolist() == [3.5, 4.0]
    assert found.timestamp.tolist() == [day.replace(tzinfo=datetime.timezone.utc).timestamp()] * 2


def test_a_bad_row_has_the_number_that_excel_shows():
    workbook("a.xlsx", s=[("task", "annotator", "label"), (1, "x", "a"), (None,), (2, None, "a")])
    with pytest.raises(DataError, check=bad_row(4, "annotator", "")):
        Annotations.read("a.xlsx")


def test_instances_and_gold_are_read_from_workbooks_and_labels_written_to_one(capsys):
    written("a.xlsx", task=[1, 1, 2, 2, 3], annotator=[*"ababa"], label=["=x"] * 4 + ["n"])
    written("g.xlsx", task=[1, 2], gold=["=x", "n"])
    words = ["aggregate", "a.xlsx", "--gold", "g.xlsx", "--method", "majority-vote", "--out", "labels.xlsx"]
    assert cli.main(words) == 0
    assert "0.5000 (on 2 tasks with gold" in capsys.readouterr().out
    assert cli.main([*words, "--force"]) == 0
    sheet = openpyxl.load_workbook("labels.xlsx").active
    assert [cell.value for cell in sheet[1]][:4] == ["task", "label", "label_code", "probability"]
    assert [(row[0].value, row[1].value, row[1].data_type, row[3].value) for row in sheet.iter_rows(min_row=2)] == [
        (1, "=x", "s", 1), (2, "=x", "s", 1), (3, "n", "s", 1)
    ]  # fmt: skip
    with zipfile.ZipFile("labels.xlsx") as archive:
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")


def test_text_that_begins_as_a_formula_stays_text():
    table = pa.table(
        {"a": ["=1+1", "+1", "-1", "@x", "#N/A", "\x01", None], "n": [1.5, None, float("nan"), 1, 2, 3, 4]}
    )
    with open("a.xlsx", "wb") as file:
        workbooks.write_sheet(table.append_column("list", pa.array([[1]] * 7)), file)
    rows = [*openpyxl.load_workbook("a.xlsx").active.iter_rows(min_row=2)]
    assert [row[0].value for row in rows] == ["=1+1", "+1", "-1", "@x", "#N/A", "\ufffd", None]
    assert {row[0].data_type for row in rows[:-1]} == {"s"}
    assert [row[1].value for row in rows] == [1.5, None, None, 1, 2, 3, 4]
    assert rows[0][1].number_format == "0.0##"
    assert len(rows[0]) == 2


def test_more_rows_than_a_sheet_has_are_refused(monkeypatch):
    monkeypatch.setattr(workbooks, "MOST_ROWS", 3)
    with open("a.xlsx", "wb") as file, pytest.raises(DataError, match="at most 2 rows under its header"):
        workbooks.write_sheet(pa.table({"a": [1, 2, 3]}), file)


def test_what_is_no_workbook_is_said():
    for content in (b"PK\x03\x04", b"task,annotator,label\n"):
        with open("a.xlsx", "wb") as file:
            file.write(content)
        with pytest.raises(DataError, match=r"a\.xlsx: not a sound workbook of Excel"):
            Annotations.read("a.xlsx")
    with zipfile.ZipFile("b.xlsx", "w") as archive:
        archive.writestr("x", "y")
    with pytest.raises(DataError, match=r"b\.xlsx: not a sound workbook"):
        Annotations.read("b.xlsx")


def test_without_openpyxl_it_says_what_to_install(monkeypatch):
    workbook("a.xlsx", s=ANSWERS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ConfigError, match=r"workbooks need openpyxl: pip install 'crowdzoo\[excel\]'"):
        Annotations.read("a.xlsx")


def edited(name, sheet=lambda xml: xml, **members):
    """A workbook of one row with its sheet's XML changed, and members replaced or added."""
    workbook("sound.xlsx", s=[("task", "annotator", "label"), (1, "x", "a")])
    with zipfile.ZipFile("sound.xlsx") as old, zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            content = old.read(member)
            new.writestr(member, sheet(content) if member == "xl/worksheets/sheet1.xml" else content)
        for member, content in members.items():
            new.writestr(member, content)


def with_rows(xml):
    return lambda content: content.replace(b"</sheetData>", xml + b"</sheetData>")


CELL = b'<c r="%s" t="n"><v>1</v></c>'
TOO_LARGE = {
    "a row of a high number": (
        with_rows(b'<row r="1000000000">' + CELL % b"A1" + b"</row>"), "after row 2: a sheet has at most 1,048,576 rows"
    ),
    "the row after the last": (with_rows(b'<row r="1048577"/>'), "1,048,576 rows"),
    "the column after the last": (with_rows(b'<row r="3">' + CELL % b"XFE3" + b"</row>"), "16,384 columns"),
    "a far column before a near one": (with_rows(b'<row r="3">' + CELL % b"ZZZ3" + CELL % b"A3" + b"</row>"), "16,384"),
    "many cells in a row": (with_rows(b"<row>" + b"<c/>" * 300_000 + b"</row>"), "16,384 columns"),
    "many rows with one far cell": (
        with_rows(b"".join(b'<row r="%d">%s</row>' % (row, CELL % b"XFD%d" % row) for row in range(3, 4101))),
        "more than 67,108,864 cells",
    ),
    "rows out of order": (with_rows(b'<row r="9"/><row r="3"/>'), "row 3 comes after row 9"),
    "a number of a row that is none": (with_rows(b'<row r="x"/>'), r"not a sound workbook \(could not"),
    "a shared text that is not there": (with_rows(b'<row r="3"><c t="s"><v>99</v></c></row>'), "not a sound workbook"),
    "a column that is none": (with_rows(b'<row r="3"><c r="??"/></row>'), "not a sound workbook"),
    "a bomb": (with_rows(b" " * (9 << 20)), r"would become 9,\d{3},\d{3} bytes, as a zip bomb does"),
}  # fmt: skip


@pytest.mark.parametrize(("sheet", "message"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_small_file_that_stands_for_a_large_or_damaged_sheet_is_refused(sheet, message):
    edited("a.xlsx", sheet)
    with pytest.raises(DataError, match=rf"^a\.xlsx.*{message}"):
        Annotations.read("a.xlsx")


def test_the_last_row_that_excel_has_is_read():
    cells = b'<c t="n"><v>2</v></c><c t="inlineStr"><is><t>x</t></is></c><c t="inlineStr"><is><t>b</t></is></c>'
    edited("a.xlsx", with_rows(b'<row r="1048576">%s</row>' % cells))
    assert rows_of(Annotations.read("a.xlsx")) == [(1, "x", "a"), (2, "x", "b")]


def test_members_that_are_bombs_together_are_refused():
    edited("a.xlsx", **{f"{place}.xml": b" " * (1 << 20) for place in range(9)})
    with pytest.raises(DataError, match=r"a\.xlsx: would become 9,\d{3},\d{3} bytes, as a zip bomb does"):
        Annotations.read("a.xlsx")


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit, of util-linux")
@pytest.mark.parametrize("limit", [1000, 200_000])
def test_a_full_disk_has_one_message_and_no_traceback(limit):
    rows = "".join(f"{task * 0.1},a{task % 5},c{task % 3}\n" for task in range(3000))
    Path("a.csv").write_text(f"task,annotator,label\n{rows}")
    words = [sys.executable, "-m", "crowdzoo", "aggregate", "a.csv", "--method", "majority-vote", "--out", "o.xlsx"]
    ended = subprocess.run(["prlimit", f"--fsize={limit}", *words], capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.strip().endswith("File too large")
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert not Path("o.xlsx").exists()
