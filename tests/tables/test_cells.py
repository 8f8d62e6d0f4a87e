"""Wide tables, marks of missing labels, and several labels in a cell."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import bad_row
from table_files import message_of, rows_of, write, write_table

from crowdzoo import Annotations
from crowdzoo.errors import ConfigError, DataError, DataWarning
from crowdzoo.instances import read_gold

pytestmark = pytest.mark.usefixtures("here")

WIDE = "task,ann,bob,cid\nt1,cat,,dog\nt2,,,\nt3, ,dog,NA\n"
CELLS = [("t1", "ann", "cat"), ("t1", "cid", "dog"), ("t3", "bob", "dog"), ("t3", "cid", "NA")]


@pytest.mark.usefixtures("chunks")
@pytest.mark.filterwarnings("ignore:.*'NA' counts as a class")
def test_a_wide_table_has_a_row_a_task_and_a_column_an_annotator():
    assert rows_of(Annotations.read(write("a.csv", WIDE), wide=True)) == CELLS
    assert rows_of(Annotations.read("a.csv", wide=True, missing=["NA"])) == CELLS[:3]
    table = pa.table({"task": ["t1", "t3"], "ann": ["cat", None], "bob": [None, "dog"], "cid": ["dog", "NA"]})
    pq.write_table(table, "a.parquet")
    assert rows_of(Annotations.read("a.parquet", wide=True)) == CELLS


def test_columns_of_annotators_are_named_or_matched():
    write("a.csv", "text,id,worker_1,worker_2,gold\n?,t1,cat,dog,cat\n")
    expected = [("t1", "worker_1", "cat"), ("t1", "worker_2", "dog")]
    for names in ("worker_1,worker_2", "worker_*"):
        assert rows_of(Annotations.read("a.csv", wide=True, columns={"task": "id", "annotator": names})) == expected
    assert message_of("a.csv", wide=True, columns={"task": "id", "annotator": "rater_*"}) == (
        "a.csv: no column of an annotator is named 'rater_*'."
    )


@pytest.mark.usefixtures("chunks")
def test_a_bad_cell_is_named_by_its_row_and_column():
    write("a.csv", WIDE)
    with pytest.raises(DataError, match="is not one of the classes", check=bad_row(4, "cid", "NA")):
        Annotations.read("a.csv", wide=True, classes=["cat", "dog"])
    Annotations.read("a.csv", wide=True, classes=["cat", "dog"], on_bad_rows="reject", rejects="r.csv")
    assert Path("r.csv").read_text().endswith(',"t3, ,dog,NA"\n')


@pytest.mark.parametrize(
    ("name", "content", "options", "expected"),
    [
        ("a.csv", WIDE, {"columns": {"label": "ann"}}, "columns: a wide table has columns task and annotator, and no"),
        ("a.csv", WIDE, {"annotator_separator": ";"}, "annotator_separator: in a wide table"),
        ("a.csv", "task,,b\n1,2,3\n", {}, "a.csv: column '' does not look like an annotator"),
        ("a.csv", "task,b,b\n1,2,3\n", {}, "a.csv: column 'b' is there 2 times. Keep one."),
        ("a.csv", "x,b\n1,2\n", {}, "a.csv: column 'task' is missing. Where no column names it, columns={'task': ''}"),
        ("a.jsonl", "{}", {}, "a.jsonl: a wide table is a CSV or Parquet file"),
        ("a.csv", WIDE, {"missing": [None]}, "missing takes marks with commas between"),
    ],
)
def test_a_wide_table_that_is_none_is_refused(name, content, options, expected):
    assert message_of(write(name, content), wide=True, **options).startswith(expected)


def test_rows_of_a_long_table_whose_label_means_none_are_left_out():
    write("a.csv", "task,worker,label\nt1,x,cat\nt1,y,NA\nt2,x, -1 \nt2,y,dog\n")
    found = Annotations.read("a.csv", missing="-1,NA")
    assert rows_of(found) == [("t1", "x", "cat"), ("t2", "y", "dog")]
    assert found.num_rejected == 0


# === Several labels in a cell ===

SEVERAL = "task,worker,label\nt1,x,cat|dog\nt1,y,cat\nt2,x,dog\n"


def test_a_label_that_is_made_of_others_is_refused_with_what_to_do():
    assert "'cat|dog' is made of other labels." in message_of(write("a.csv", SEVERAL))
    assert Annotations.read("a.csv", classes=["cat", "cat|dog", "dog"]).num_classes == 3
    assert "several may hold for a task, give --multi-label" in message_of("a.csv", label_separator="|")
    # a name with a comma is one as long as its parts are none
    write("b.csv", 'task,worker,label\nt1,x,"yes, very"\nt1,y,yes\nt2,x,yes/no\nt2,y,yes sir\n')
    assert Annotations.read("b.csv").num_classes == 4
    write("c.csv", "task,worker,label\nt1,x,the/cat\nt1,y,the\nt2,x,cat\n")
    assert len(Annotations.read("c.csv", kind="free-text").values) == 3
    assert "the label 'the/cat' is made of other labels" in message_of("c.csv")


@pytest.mark.usefixtures("chunks")
def test_several_labels_of_a_cell_are_split_and_the_rule_of_repeats_says_which_counts():
    write("a.csv", SEVERAL)
    rest = [("t1", "y", "cat"), ("t2", "x", "dog")]
    for rule, label in (("first", "cat"), ("last", "dog")):
        with pytest.warns(UserWarning, match="1 row was left out"):
            found = Annotations.read("a.csv", label_separator="|", on_duplicate=rule)
        assert rows_of(found) == [("t1", "x", label), *rest]
    assert "'x' has labelled task 't1' before, in row 2" in message_of("a.csv", label_separator="|")


def test_nothing_between_separators_is_no_label_but_an_empty_cell_stays_a_bad_row():
    write("a.csv", "task,worker,label\nt1,x,|cat| |\nt1,y,dog\n")
    assert rows_of(Annotations.read("a.csv", label_separator="|")) == [("t1", "x", "cat"), ("t1", "y", "dog")]
    for cell in ("", " | "):
        write("b.csv", f"task,worker,label\nt1,x,{cell}\nt1,y,dog\n")
        assert "row 2, column 'label': '' is empty" in message_of("b.csv", label_separator="|")


def test_classes_written_as_floats_are_those_of_a_file_with_types():
    write("a.csv", "task,annotator,label\nt1,a,1.0\nt2,a,10.0\nt3,a,2\nt3,b,2.0\nt4,b,-1.0\n")
    columns = {"task": ["t1", "t2", "t3", "t3", "t4"], "annotator": [*"aaabb"], "label": [1.0, 10.0, 2.0, 2.0, -1.0]}
    write_table(columns, "a.parquet")
    for name in ("a.csv", "a.parquet"):
        found = Annotations.read(name)
        assert (found.classes.tolist(), found.labels.tolist()) == ([-1, 1, 2, 10], [1, 3, 2, 2, 0])
        assert Annotations.read(name, missing="-1").classes.tolist() == [1, 2, 10]
    write("versions.csv", "task,annotator,label\nt1,a,1.0\nt2,a,1.1\n")
    assert Annotations.read("versions.csv").classes.tolist() == ["1.0", "1.1"]
    write("gold.csv", "task,gold\nt1,1.0\nt2,10\n")
    found = Annotations.read("a.csv")
    assert read_gold("gold.csv", found.tasks, found.classes).tolist() == [1, 3, -1, -1]


def test_a_wide_table_is_recognised_and_its_other_columns_are_no_annotators(refusal_of):
    write("a.csv", "task,ann,bob,gold\nt1,cat,,dog\nt2,dog,cat,dog\n")
    assert "say so: wide=True" in message_of("a.csv")
    assert "say so: --wide. Otherwise say which column it is: --c" in refusal_of("quality", "a.csv", code=3)
    message = message_of("a.csv", wide=True)
    assert "column 'gold' does not look like an annotator" in message
    assert "'annotator': 'ann,bob'" in message
    assert len(Annotations.read("a.csv", wide=True, columns="annotator=ann,bob")) == 3
    assert len(Annotations.read("a.csv", wide=True, columns={"annotator": "*"})) == 5


# === Lists in a cell ===


@pytest.mark.parametrize(("cell", "mark"), [("0, 0", ","), ("cat|cat", "|"), ('["cat"]', ","), ("['cat', 'dog']", ",")])
@pytest.mark.parametrize("way", ["csv", "jsonl", "parquet", "frame"])
def test_a_list_in_a_cell_is_no_class(cell, mark, way):
    table = pa.table({"task": [1, 2, 1], "worker": ["x", "x", "y"], "label": [cell, "0", "cat"]})
    if way != "frame":
        write_table(table, f"a.{way}")
    with pytest.raises(DataError, match=f"label_separator='{re.escape(mark)}'"):
        Annotations.from_frame(table) if way == "frame" else Annotations.read(f"a.{way}")


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ('["sports", "news"]', ["news", "sports"]),
        ("['sports','news']", ["news", "sports"]),
        ('["yes, very", "no"]', ["no", "yes, very"]),
        ('["sports"]', ["sports"]),
        ("[1, 0]", ["0", "1"]),
        ("[A], [B]", ["[A]", "[B]"]),
    ],
)
def test_a_list_of_json_or_python_is_split_into_what_it_holds(cell, labels):
    write_table({"task": [1, 2], "worker": ["x", "x"], "label": [cell, "other"]}, "a.csv")
    found = Annotations.read("a.csv", label_separator=",", on_duplicate="all")
    assert sorted(found.classes.tolist()) == sorted([*labels, "other"])


def test_an_empty_list_is_the_answer_that_no_label_holds():
    write("a.csv", 'task,worker,label\n1,x,[]\n2,x,"[""cat""]"\n')
    found = Annotations.read("a.csv", label_separator=",", on_duplicate="all", no_label="(none)")
    assert rows_of(found) == [(1, "x", "(none)"), (2, "x", "cat")]


@pytest.mark.parametrize("options", [{}, {"label_separator": ","}])
@pytest.mark.parametrize("row", ['1,"Ann1,Ann2","0,1"', "1,Ann1|Ann2,0|1", "1,\"['Ann1', 'Ann2']\",\"[0, 1]\""])
def test_several_annotators_in_a_cell_are_not_taken_as_one(row, options):
    write("a.csv", f"task,annotator,label\n{row}\n2,Ann1,0\n")
    with pytest.raises(DataError, match=r"looks like several, and .* like a label of each"):
        Annotations.read("a.csv", **options)
    # who names the classes knows what they are
    assert Annotations.read("a.csv", classes=["0", "1", "0,1", "0|1", "[0, 1]"], **options, on_duplicate="all")
    # names with a comma, and labels without
    write("b.csv", 'task,annotator,label\n1,"Doe, J.",0\n1,"Roe, R.","1,0"\n2,"Doe, J.",1\n')
    assert Annotations.read("b.csv", label_separator=",", on_duplicate="all").num_annotators == 2


def test_columns_that_are_no_annotators_are_not_taken_for_some():
    rows = "".join(f"{n},a title of {n},2026-01-0{n},yes,no\n" for n in range(1, 8))
    for name in ("Title", "Date", "Status", "created_at"):
        write("a.csv", f"task,{name},Ann,Bob\n1,x,yes,no\n")
        message = message_of("a.csv", wide=True)
        assert f"column '{name}' does not look like an annotator." in message
        assert "columns={'annotator': 'Ann,Bob'}; a *" in message
    # by what stands in them
    write("a.csv", f"no,Headline,Seen,Ann,Bob\n{rows}8,,,no,yes\n")
    message = message_of("a.csv", wide=True, columns="task=no")
    assert "'Headline' does not look like an annotator: none of" in message
    assert "columns={'task': 'no', 'annotator': 'Ann,Bob'}" in message
    assert Annotations.read("a.csv", wide=True, columns="task=no,annotator=Ann,Bob").num_annotators == 2
    # two who agree nowhere in a few rows may be two
    assert Annotations.read(write("b.csv", WIDE.replace("NA", "cat")), wide=True).num_annotators == 3


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_empty_cell_means_none_where_marks_of_none_are_named(ending):
    write_table({"task": [1, 2, 3], "worker": ["x", "x", "x"], "label": ["cat", "NA", None]}, f"a.{ending}")
    assert rows_of(Annotations.read(f"a.{ending}", missing="NA")) == [(1, "x", "cat")]
    found = Annotations.read(f"a.{ending}", missing="NA", no_label="(none)")
    assert rows_of(found) == [(1, "x", "cat"), (3, "x", "(none)")]


def test_a_cell_of_many_labels_takes_no_more_memory_than_it_holds():
    """Each of its labels had a copy of the whole cell: 2.6 GiB for 125 KiB."""
    write("a.csv", "task,annotator,label\n1,ann," + ";".join(f"x{i}" for i in range(20_000)) + "\n")
    before = pa.default_memory_pool().max_memory()
    crowd = Annotations.read("a.csv", label_separator=";", on_duplicate="all")
    assert len(crowd) == crowd.num_classes == 20_000
    assert pa.default_memory_pool().max_memory() - before < 1 << 28


def test_a_file_of_gold_that_hardly_matches_warns():
    """`007` beside `7`: a hundred of 108 rows were lost without a word."""
    tasks, classes = np.arange(108), np.array(["a", "b"], object)
    write("gold.csv", "task,gold\n" + "".join(f"{task:03},a\n" for task in tasks))
    with pytest.warns(DataWarning, match="100 of its 108 tasks are not among the 108"):
        assert (read_gold("gold.csv", tasks, classes) == 0).sum() == 8
    write("gold.csv", "task,gold\n" + "".join(f"{task},a\n" for task in range(1000)))
    assert (read_gold("gold.csv", tasks, classes) == 0).all()  # gold of more tasks than were annotated is no fault


@pytest.mark.parametrize("option", ["missing", "label_separator", "annotator_separator", "no_label", "encoding"])
def test_an_option_that_is_no_utf_8_is_refused(option):
    with pytest.raises(ConfigError, match=option):
        Annotations.read(write("a.csv", "task,annotator,label\n1,a,x\n2,b,y\n"), **{option: "\udc80"})


def test_columns_of_numbers_that_are_no_annotators_are_named_as_well():
    """Names that are all numbers become numbers."""
    write("a.csv", "".join(f"id{row},a,b\njd{row},b,a\n" for row in range(5)))
    message = message_of("a.csv", wide=True, header=False, columns="task=")
    assert "'1' does not look like" in message
    assert "columns={'task': '', 'annotator': '2,3'}" in message
    read = Annotations.read("a.csv", wide=True, header=False, columns="task=,annotator=2,3")
    assert read.num_annotators == 2
    write("b.csv", "0,0,70\n" * 5)
    assert "does not look like an annotator" in message_of("b.csv", wide=True, header=False, columns="task=")
