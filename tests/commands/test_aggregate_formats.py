"""`crowdzoo aggregate` writes tables as Parquet, CSV or JSON lines, into a folder or as one file."""

import json
import re

import pyarrow.parquet as pq
import pytest
from csv_files import read_csv

from crowdzoo.commands import main as cli

ROWS = "task,annotator,label\nt1,ann,cat\nt1,bob,cat\nt2,ann,dog\nt2,bob,dog\nt2,cid,cat\n"


@pytest.fixture(autouse=True)
def here(tmp_path, here):
    (tmp_path / "a.csv").write_text(ROWS)
    return tmp_path


def aggregate(*words):
    return cli.main(["aggregate", "a.csv", "--method", "majority-vote", *words])


def rows_of(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return read_csv(path)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_the_table_of_tasks_alone_is_written_into_a_file(here, ending):
    path = here / f"labels.{ending}"
    assert aggregate("--out", path.name) == 0
    found = rows_of(path)
    assert [(row["task"], row["label"], int(row["annotations"])) for row in found] == [
        ("t1", "cat", 2),
        ("t2", "dog", 3),
    ]
    assert float(found[1]["probability"]) == pytest.approx(2 / 3)
    assert sorted(one.name for one in here.iterdir()) == sorted(["a.csv", path.name])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_the_tables_of_a_folder_are_written_in_a_format(here, ending):
    assert aggregate("--out", "out", "--format", ending) == 0
    assert {one.name for one in (here / "out").iterdir()} == {f"tasks.{ending}", f"annotators.{ending}", "summary.json"}
    assert [row["annotator"] for row in rows_of(here / "out" / f"annotators.{ending}")] == ["ann", "bob", "cid"]
    # a second run replaces what the first wrote, and nothing else
    assert aggregate("--out", "out", "--format", ending) == 4
    assert aggregate("--out", "out", "--force") == 0
    assert (here / "out" / "tasks.parquet").is_file()


def test_only_an_earlier_table_is_replaced(here, capsys):
    for name in ("labels.csv", "labels.jsonl", "labels.parquet"):
        assert aggregate("--out", name) == 0
        assert aggregate("--out", name) == 0
    (here / "others.csv").write_text(ROWS)
    assert aggregate("--out", "others.csv") == 4
    assert "was not written by this command" in capsys.readouterr().err
    assert aggregate("--out", "a.csv", "--force") == 4
    assert (here / "others.csv").read_text() == (here / "a.csv").read_text() == ROWS


EDITS = {
    "a label": lambda text: text.replace('"t1","cat"', '"t1","dog"'),
    "a column": lambda text: "".join(f'{line},"checked"\n' for line in text.splitlines()),
    "saved by a spreadsheet": lambda text: text.replace('"', "").replace("\n", "\r\n"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_table_that_was_edited_is_only_replaced_with_force(here, capsys, edit):
    path = here / "labels.csv"
    assert aggregate("--out", path.name) == 0
    written = path.read_text()
    path.write_bytes(edit(written).encode())
    assert aggregate("--out", path.name) == 4
    assert "Name another file, or replace it with --force." in capsys.readouterr().err
    assert path.read_bytes() == edit(written).encode() != written.encode()
    assert aggregate("--out", path.name, "--force") == 0
    assert path.read_text() == written


def test_gold_has_the_decimal_mark_of_the_annotations(here, refusal_of):
    (here / "r.csv").write_text('task,annotator,label\n1,a,"3,5"\n1,b,"4,5"\n')
    (here / "g.csv").write_text("task,gold\n1,4.2\n")
    words = ["aggregate", "r.csv", "--kind", "regression", "--decimal", ",", "--gold", "g.csv", "--out", "o"]
    assert "write decimal commas there, too" in refusal_of(*words, code=3)
    (here / "g.csv").write_text('task,gold\n1,"4,2"\n')
    assert cli.main(words) == 0


GERMAN = ("--out-separator", ";", "--out-decimal", ",", "--bom")


def test_csv_for_a_german_excel_is_read_again(here, capsys):
    rows = "=1+1,ann,-x\n=1+1,bob,-x\n=1+1,cid,y\nt;2,ann,y\nt;2,bob,y\n"
    (here / "a.csv").write_text(f"task,annotator,label\n{rows}")
    assert aggregate("--out", "labels.csv", *GERMAN) == aggregate("--out", "labels.csv", *GERMAN) == 0
    header, first, second = (here / "labels.csv").read_text("utf-8").splitlines()
    assert header == "\ufefftask;label;label_code;probability;settled;annotations;answers_to_settle"
    assert first.startswith("\t=1+1;\t-x;0;0,66666")
    assert re.fullmatch(r'"t;2";y;1;1,0;0,9\d+;2;\d', second)
    assert aggregate("--out", "o", "--gold", "labels.csv", "--gold-columns", "gold=label", "--decimal", ",") == 0
    assert "1.0000 (on 2 tasks with gold" in capsys.readouterr().out
    assert cli.main(["quality", "a.csv", "--bootstrap", "0", "--out", "q", "--format", "csv", *GERMAN]) == 0
    assert "\t-x;2;0,4;" in (here / "q" / "classes.csv").read_text("utf-8")
    words = ["next", "a.csv", "--method", "one-coin", "--out", "b.csv"]
    assert cli.main([*words, *GERMAN]) == cli.main(words) == 0  # what it wrote is replaced
