"""Tables in text and on a terminal, and what those of a quality report show."""

import io
import re

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.quality import quality_report
from crowdzoo.report.quality_tables import print_quality
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


TITLE = "annotators to check"


def crowd(liar: bool) -> Annotations:
    """40 tasks of two classes, four annotators right for 9 in 10 tasks; a fifth exchanges the classes, or guesses."""
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 2
    said = np.stack([np.where(rng.random(40) < 0.9, truth, 1 - truth) for _ in range(4)])
    fifth = 1 - truth if liar else rng.integers(0, 2, 40)
    said = np.concatenate([said, fifth[None]])
    annotators = np.repeat(["ann", "bob", "cem", "dan", "eve"], 40)
    return Annotations.from_arrays(np.tile(np.arange(40), 5), annotators, said.ravel())


@pytest.mark.parametrize(("liar", "note"), [(True, "exchanges"), (False, "as by chance")])
def test_who_exchanges_classes_and_who_guesses_is_listed_with_the_note_of_the_page(liar, note, capsys):
    print_quality(quality_report(crowd(liar), bootstrap=0))
    listed = capsys.readouterr().out.split(TITLE)[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed[3:]] == ["eve"]
    assert listed[3].endswith(note)


def test_in_a_good_crowd_nobody_is_listed(capsys):
    annotations = crowd(liar=True)
    print_quality(quality_report(annotations.select_rows(annotations.annotator_ids < 4), bootstrap=0))
    assert TITLE not in capsys.readouterr().out


def test_a_list_of_many_classes_is_cut_and_lists_can_be_left_out(capsys):
    labels = np.repeat(np.arange(30), np.arange(1, 31))
    table = Annotations.from_arrays(np.arange(len(labels)) // 2, np.arange(len(labels)) % 2, labels)
    print_quality(quality_report(table, bootstrap=0), top=0)
    shown = capsys.readouterr().out
    assert "the 20 most frequent of 30 classes" in shown
    assert re.search(r"^ +29 +30 ", shown, flags=re.M)
    assert not re.search(r"^ +3 +4 ", shown, flags=re.M)
    assert "to look at" not in shown
