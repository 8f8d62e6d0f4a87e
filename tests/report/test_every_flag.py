"""Every note on an annotator that a kind of label can give goes through report, quality, its sheets, and next."""

import ast
import csv
import json
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from crowdzoo import kinds
from crowdzoo.aggregation import MultiLabel
from crowdzoo.commands import main as cli
from crowdzoo.kinds import KINDS
from crowdzoo.kinds import page as kind_page
from crowdzoo.kinds.page_parts import FLAGS, WORDS
from crowdzoo.quality import annotators, report
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.report.page import report_page
from crowdzoo.report.sheets import page_sheets
from crowdzoo.sequences import write_spans

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import planted_crowds as planted

sys.path.pop(0)
MULTI = "multi-label"
PLANTED = {of: name for name, (_, of, *rest) in planted.KINDS.items() if not rest}


def marks_of(path):
    """The notes in the dictionaries called `marks` of a module."""
    found = set()
    for node in ast.walk(ast.parse(Path(path).read_text("utf-8"))):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "marks":
            found |= {key.value for key in node.value.keys if key is not None}
    return found


def flags_of(kind):
    """The notes that the page of a kind gives, by its sources."""
    if kind == "classification":
        return marks_of(annotators.__file__)
    modules = [cls.__module__ for cls in KINDS[kind].page.mro() if cls.__module__.startswith(f"{kinds.__name__}.")]
    return set().union(*(marks_of(sys.modules[module].__file__) for module in modules))


def test_every_note_is_one_of_a_kind():
    found = {kind: flags_of(kind) for kind in KINDS}
    assert {*found} == {*PLANTED}
    assert set().union(*found.values()) == FLAGS.keys()
    assert all({"copy", "alone", "few"} < each for each in found.values())
    assert all(len(each) > 4 for each in found.values())


def noted(notes, number):
    """The notes, dealt out among annotators."""
    return [sorted(notes)[place::number] for place in range(number)]


@pytest.fixture
def give_notes(monkeypatch):
    """A function that has a kind's page give all its notes, whatever annotators do."""

    def give(kind):
        def with_notes(columns, notes):
            number = len(columns["annotator"])
            columns["notes"] = notes = notes(number)
            for note, column in WORDS.items():  # which say what for what, or who
                if column in columns:
                    columns[column] = [each or ("so and so" if note in own else None)
                                       for each, own in zip(columns[column], notes, strict=True)]  # fmt: skip
            return columns

        def table(*given):
            columns = with_notes(annotators.annotator_table(*given).to_pydict(), lambda n: noted(flags_of(kind), n))
            columns["notes"] = [",".join(each) for each in columns["notes"]]
            return pa.table(columns)

        of_annotators = kind_page.KindPage.of_annotators
        monkeypatch.setattr(report, "annotator_table", table)
        monkeypatch.setattr(
            kind_page.KindPage,
            "of_annotators",
            lambda *given, **columns: with_notes(
                of_annotators(*given, **columns), lambda number: noted(flags_of(kind), number)
            ),
        )

    return give


def check_sheet(rows, kind):
    """The sheet of annotators says in words what each note means."""
    said = {note for row in rows for note in row["notes"].split(",") if note}
    assert said == flags_of(kind)
    for row in rows:
        notes = [note for note in row["notes"].split(",") if note]
        serious = [FLAGS[note].title for note in notes if FLAGS[note].serious]
        assert sorted(serious) == sorted(row["flag"].split(", ")) if serious else not row["flag"]
        assert bool(row["reason"]) == bool(notes)
        assert "None" not in row["reason"]
        assert "{" not in row["reason"]
        assert bool(row["advice"]) == bool(serious)


@pytest.mark.parametrize("kind", KINDS)
def test_every_note_of_a_kind_is_said_by_every_command(kind, give_notes, tmp_path, here, capsys):
    crowd = next(planted.KINDS[PLANTED[kind]][0](0)).annotations
    if kind == "sequence":
        write_spans(crowd, "crowd.jsonl")
    else:
        write_annotations(crowd, "crowd.csv")
    file = "crowd.jsonl" if kind == "sequence" else "crowd.csv"
    words = [file, "--multi-label"] if kind == MULTI else [file, "--kind", kind]
    give_notes(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cli.main(["report", *words, "--out", "r.html", "--bootstrap", "0"]) == 0
        numbers = json.loads((tmp_path / "r.json").read_text("utf-8"))
        assert {note for each in numbers["tables"]["annotators"]["values"]["notes"] for note in each} == flags_of(kind)
        warned = {each["key"] for each in numbers["warnings"]} & FLAGS.keys()
        assert warned == {note for note in flags_of(kind) if FLAGS[note].serious}
        if kind == MULTI:
            result = MultiLabel(none=planted.NONE).fit(crowd)
            page = report_page(crowd, result, bootstrap=0, curve=0)
            check_sheet(page_sheets(page, crowd, result, None, 0.1).annotators.to_pylist(), kind)
        else:
            assert cli.main(["quality", *words, "--out", "sheets", "--format", "csv", "--bootstrap", "0"]) == 0
            with open(tmp_path / "sheets" / "annotators.csv", encoding="utf-8") as rows:
                check_sheet([*csv.DictReader(rows)], kind)
        if KINDS[kind].questions is not None:
            assert cli.main(["next", *words, "--budget", "3"]) == 0
    capsys.readouterr()
