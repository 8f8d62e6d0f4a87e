"""Judgments that Appen (CrowdFlower) marks as tainted do not count, in every kind of table."""

import os
from pathlib import Path

import pandas as pd
import pytest
from table_files import write_table

from crowdzoo import Annotations

COLUMNS = "task=_unit_id,annotator=_worker_id,label=category"
# two of three judgments of each unit are of workers who failed too many test questions
TABLE = pd.DataFrame({
    "_unit_id": [1, 1, 1, 2, 2, 2], "_tainted": [False, True, True] * 2, "_worker_id": ["w1", "w8", "w9"] * 2,
    "category": ["yes", "no", "no", "no", "yes", "yes"],
})  # fmt: skip
TAINTED = r"left out: answers that column '_tainted' says do not count: 4"


def check(crowd):
    said = zip(crowd.tasks[crowd.task_ids], crowd.classes[crowd.labels], strict=True)
    assert {int(task): label for task, label in said} == {1: "yes", 2: "no"}
    assert crowd.annotators.tolist() == ["w1"]
    assert crowd.num_rejected == 0


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet", "xlsx"])
def test_tainted_judgments_are_left_out_and_counted(tmp_path, ending):
    path = write_table(TABLE, tmp_path / f"a.{ending}")
    with pytest.warns(UserWarning, match=TAINTED):
        check(Annotations.read(path, columns=COLUMNS))


@pytest.mark.parametrize("kind", [bool, str, float])
def test_those_of_a_frame_as_well(kind):
    with pytest.warns(UserWarning, match=TAINTED):
        check(Annotations.from_frame(TABLE.astype({"_tainted": kind}), columns=COLUMNS))


def test_a_column_without_a_tainted_one_says_nothing():
    crowd = Annotations.from_frame(TABLE.assign(_tainted=[None, "", "false"] * 2), columns=COLUMNS)
    assert len(crowd) == 6


@pytest.mark.skipif("CROWDZOO_DATA" not in os.environ, reason="CROWDZOO_DATA names no folder of data")
def test_f4_of_the_reports():
    with pytest.warns(UserWarning, match=TAINTED):
        check(Annotations.read(Path(os.environ["CROWDZOO_DATA"], "reports", "F4", "appen.csv"), columns=COLUMNS))


@pytest.mark.parametrize("mark", ["yes", "Yes", "x", "TRUE", "1"])
def test_tainted_is_said_in_several_words(tmp_path, mark):
    TABLE.replace({"_tainted": {True: mark, False: "no"}}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.warns(UserWarning, match=TAINTED):
        check(Annotations.read(tmp_path / "a.csv", columns=COLUMNS))
