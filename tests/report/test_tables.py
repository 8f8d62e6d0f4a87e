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


@pytest.mark.parametrize(
    ("columns", "left_out"), [("90", ["seconds", "notes"]), ("64", ["behind", "seconds", "notes"])]
)
def test_a_narrow_terminal_cuts_none_of_the_first_columns(columns, left_out, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", columns)
    file, header = Terminal(), ["method", "nats per annotation", "against", "behind", "seconds", "notes"]
    row = ["crowdsourced-layer connection=VW", "0.843", "+0.013 [-0.004, +0.031]", "0", "12", "x" * 40]
    assert print_table("", header, [row], file=file, whole=3) == left_out
    for cell in ("crowdsourced-layer", "connection=VW", "0.843", row[2]):
        assert cell in file.getvalue()


def test_a_terminal_gets_borders_and_every_cell(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "100")
    file = Terminal()
    print_table("Results", HEADER, [*ROWS, ("[bold]", 1, "[/x]")], file=file)
    for cell in ("Results", *HEADER, "0.84 ± 0.01", "majority vote", "[bold]", "[/x]"):
        assert cell in file.getvalue()
    assert "│" in file.getvalue()
