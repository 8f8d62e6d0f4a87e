"""Answers that later ones replace, as in a folder of daily exports, are no trouble that a report warns of."""

import json
import re
import warnings

import pytest
from studio_exports import annotation, choice, task

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.quality import quality_report


def export(days):
    """A task of Label Studio a day, and three answers to each."""
    answers = ([("x", "y")[day % 2], ("x", "y")[day % 2], "x"] for day in range(days))
    said = ([annotation(who, choice("mood", label)) for who, label in enumerate(each, start=1)] for each in answers)
    return json.dumps([task(day, *each) for day, each in enumerate(said)])


def report(*words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cli.main(["report", *words, "--out", "r.html", "--force", "--bootstrap", "0"]) == 0
    with open("r.json", encoding="utf-8") as file:
        return json.load(file)


@pytest.mark.parametrize("policy", ["last", "first"])
def test_a_folder_of_daily_exports_has_no_warning_of_rows(policy, tmp_path, here, capsys):
    (tmp_path / "answers").mkdir()
    for day in range(1, 6):
        (tmp_path / "answers" / f"2026-03-0{day}.json").write_text(export(4 * day))
    found = report("answers", "--platform", "label-studio", "--on-duplicate", policy)
    assert found["values"]["annotations"] == 60
    assert found["values"]["rows_left_out"] == 0
    assert not [each for each in found["warnings"] if "left out" in each["finding"]]
    words = ["aggregate", "answers", "--platform", "label-studio", "--on-duplicate", policy, "--out", "o.csv"]
    capsys.readouterr()
    with pytest.warns(UserWarning, match="120 rows were left out"):
        assert cli.main([*words, "--debug"]) == 0
    assert re.search(r"rows left out +120\n", capsys.readouterr().out)


def test_bad_rows_beside_replaced_ones_are_counted_alone(tmp_path, here):
    rows = "".join(f"{task},{who},{'xy'[task % 2]}\n" for task in range(6) for who in "abc")
    (tmp_path / "a.csv").write_text("task,annotator,label\n" + rows + rows + "7,a,\n7,b,\n")
    found = report("a.csv", "--on-duplicate", "last", "--on-bad-rows", "reject")
    assert found["values"]["rows_left_out"] == 2
    (warned,) = [each for each in found["warnings"] if "left out" in each["finding"]]
    assert "2 rows of the file were" in warned["finding"]
    with pytest.warns(UserWarning, match="20 rows were left out"):
        crowd = Annotations.read("a.csv", on_duplicate="last", on_bad_rows="reject")
    assert (crowd.num_rejected, crowd.num_replaced) == (20, 18)
    assert quality_report(crowd, bootstrap=0).overall["rows_left_out"] == 2


def test_replaced_answers_to_sentences_are_no_trouble(tmp_path, here):
    line = {"text": "Ana met Jo", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    lines = [{"task": task, "annotator": who, **line} for task in range(3) for who in "ab"] * 2
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = report("a.jsonl", "--kind", "sequence", "--on-duplicate", "last")
    assert found["values"]["rows_left_out"] == 0
