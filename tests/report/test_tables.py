import io

import pytest

from crowdzoo.report.tables import format_table, print_table

HEADER = ("method", "accuracy", "note")
ROWS = [("MW", "0.84 ± 0.01", "ours"), ("majority vote", "0.79 ± 0.02", "")]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_columns_are_aligned_and_numbers_stand_to_the_right():
    assert format_table("Results", ("name", "count"), [("a", 7), ("long name", "1,234")]).splitlines() == [
        "Results",
        "name       count",
        "---------  -----",
        "a              7",
        "long name  1,234",
    ]


def test_no_rows_leave_the_header():
    assert format_table("Nothing", ("a",), []) == "Nothing\na\n-"


def test_a_pipe_gets_plain_text():
    file = io.StringIO()
    print_table("Results", HEADER, ROWS, file=file)
    assert file.getvalue() == format_table("Results", HEADER, ROWS) + "\n"


def test_a_terminal_gets_borders_and_every_cell(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "100")
    file = Terminal()
    print_table("Results", HEADER, [*ROWS, ("[bold]", 1, "[/x]")], file=file)
    for cell in ("Results", *HEADER, "0.84 ± 0.01", "majority vote", "[bold]", "[/x]"):
        assert cell in file.getvalue()
    assert "│" in file.getvalue()
