"""Tables in the forms in which published files and bug reports had them: the right labels of the right people."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from table_files import message_of, rows_of, write, write_table

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError, DataError, DataWarning
from crowdzoo.files.workbooks import write_sheet
from crowdzoo.kinds import kind_of
from crowdzoo.reading.instances.instances import read_instances
from crowdzoo.reading.tables.layout import Layout

pytestmark = pytest.mark.usefixtures("here")


GO_EMOTIONS = """text,id,rater_id,admiration,amusement,neutral
Nice,e1,7,1,0,0
Nice,e1,9,1,1,0
Haha,e2,7,0,0,0
"""
POTATO = "instance_id,user,is_abuse:::yes,is_abuse:::no\nq1,ann,1,\nq1,bob,,x\n"
SEVERAL = {
    "a column a label, by their names": (
        "a.csv", GO_EMOTIONS,
        {"columns": "task=id,annotator=rater_id,label=admiration,amusement,neutral", "on_duplicate": "all",
         "no_label": "none"},
        [("e1", 7, "admiration"), ("e1", 9, "admiration"), ("e1", 9, "amusement"), ("e2", 7, "none")],
    ),
    "a column a label, by a pattern within the name": (
        "a.csv", GO_EMOTIONS.replace("\nHaha,e2,7,0", "\nHaha,e2,7,1"),
        {"columns": "task=id,annotator=rater_id,label=*ation"},
        [("e1", 7, "admiration"), ("e1", 9, "admiration"), ("e2", 7, "admiration")],
    ),
    "a column a label, which * stands for": (
        "a.csv", POTATO, {"columns": "task=instance_id,annotator=user,label=is_abuse:::*"},
        [("q1", "ann", "yes"), ("q1", "bob", "no")],
    ),
    "no label of a column is left out": (
        "a.csv", GO_EMOTIONS,
        {"columns": "task=id,annotator=rater_id,label=admiration,neutral", "missing": "-"},
        [("e1", 7, "admiration"), ("e1", 9, "admiration")],
    ),
    "Le-Wi-Di's cells": (
        "a.csv", 'task,annotator,label\n1,"Ann1,Ann2","0,1"\n2,Ann1,1\n', {"annotator_separator": ","},
        [(1, "Ann1", 0), (1, "Ann2", 1), (2, "Ann1", 1)],
    ),
    "Le-Wi-Di's JSON": (
        "a.json",
        {"1": {"text": "a", "annotators": "Ann1,Ann2", "annotations": "0,1"},
         "2": {"text": "b", "annotators": "Ann1", "annotations": "1"}},
        {"annotator_separator": ",", "columns": "annotator=annotators,label=annotations"},
        [(1, "Ann1", 0), (1, "Ann2", 1), (2, "Ann1", 1)],
    ),
    "empty answers of several annotators in a cell": (
        "a.csv", 'task,annotator,label\n1,"x,y,z","a,,b"\n2,"x,y","b,a"\n', {"annotator_separator": ","},
        [(1, "x", "a"), (1, "z", "b"), (2, "x", "b"), (2, "y", "a")],
    ),
    "the key of a task, and not a field of that name": (
        "a.json", {key: {"task": "hate", "annotator": "x", "label": "a"} for key in ("100", "205")}, {},
        [(100, "x", "a"), (205, "x", "a")],
    ),
    "lists in rows of JSON, one without a label": (
        "a.jsonl",
        '{"id": 1, "annotators": ["a", "b"], "labels": [0, 1]}\n{"id": 2, "annotators": ["b"], "labels": [2]}\n',
        {"annotator_separator": ",", "columns": "task=id,annotator=annotators,label=labels"},
        [(1, "a", 0), (1, "b", 1), (2, "b", 2)],
    ),
    "lists of several labels each": (
        "a.jsonl", '{"id": 1, "annotators": ["a", "b"], "labels": [["x", "y"], ["y"]]}\n',
        {"annotator_separator": ",", "label_separator": ",", "on_duplicate": "all",
         "columns": "task=id,annotator=annotators,label=labels"},
        [(1, "a", "x"), (1, "a", "y"), (1, "b", "y")],
    ),
    "peerannot": (
        "a.json", {"0": {"12": 1, "7": 0}, "1": {"7": 1}}, {}, [(0, 12, 1), (0, 7, 0), (1, 7, 1)],
    ),
    "a list of objects, with numbers and truth values": (
        "a.json",
        [{"task": "q", "annotator": "x", "label": 2.0}, {"task": "q", "annotator": "y", "label": True},
         {"task": "q", "annotator": "z", "label": 1.5}],
        {}, [("q", "x", "2"), ("q", "y", "true"), ("q", "z", "1.5")],
    ),
    "JSON lines that are called .json": (
        "a.json", '{"task": 1, "annotator": "x", "label": "a"}\n{"task": 2, "annotator": "x", "label": "b"}\n', {},
        [(1, "x", "a"), (2, "x", "b")],
    ),
    "MACE": (
        "a.csv", "NOUN,,VERB\n,,\n,NOUN,NOUN\n", {"wide": True, "header": False, "columns": "task="},
        [(1, 1, "NOUN"), (1, 3, "VERB"), (3, 2, "NOUN"), (3, 3, "NOUN")],
    ),
    "wide, without a header": (
        "a.csv", "9;cat;x;dog\n8;;x;cat\n", {"wide": True, "header": False, "columns": "task=1,annotator=2,4"},
        [(9, 2, "cat"), (9, 4, "dog"), (8, 4, "cat")],
    ),
    "wide, without a column of tasks": (
        "a.csv", "ann,bob\ncat,dog\n,cat\n", {"wide": True, "columns": {"task": ""}},
        [(2, "ann", "cat"), (2, "bob", "dog"), (3, "bob", "cat")],
    ),
    "a key of two columns": (
        "a.csv", "topic,document,worker,label\n1,d1,w,0\n2,d1,w,1\n", {"columns": "task=topic,document"},
        [("1 | d1", "w", 0), ("2 | d1", "w", 1)],
    ),
    "wide, with a key of two columns": (
        "a.csv", "topic;document;ann;bob\n1;d1;0;1\n", {"columns": "task=topic,document", "wide": True},
        [("1 | d1", "ann", 0), ("1 | d1", "bob", 1)],
    ),
    "a column whose name has a comma": (
        "a.csv", 'task,annotator,"label, final"\n1,x,0\n', {"columns": "label=label, final"}, [(1, "x", 0)],
    ),
    "Excel's line above the header": (
        "a.csv", "SEP=;\r\ntask;annotator;label\r\n1;Zoë;a\r\n", {}, [(1, "Zoë", "a")],
    ),
    "labels that mean the same": (
        "a.csv", "task,annotator,label\n1,x,ja\n1,y,J\n1,z,nein\n", {"rename": "J=ja"},
        [(1, "x", "ja"), (1, "y", "ja"), (1, "z", "nein")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "rows"), SEVERAL.values(), ids=SEVERAL)
@pytest.mark.filterwarnings("ignore:.*(usual names|with decimals)")
def test_a_form_is_read_as_it_is_meant(name, content, options, rows):
    assert rows_of(Annotations.read(write(name, content), **options)) == rows


def test_lists_of_parquet_are_taken_apart_with_lists_of_labels_in_them():
    rows = {"task": [1, 2], "annotator": [["a", "b"], ["b"]], "label": [[["x"], []], [["x", "y"]]]}
    pq.write_table(pa.table(rows), "a.parquet")
    found = Annotations.read("a.parquet", label_separator=",", no_label="none", on_duplicate="all")
    assert rows_of(found) == [(1, "a", "x"), (1, "b", "none"), (2, "b", "x"), (2, "b", "y")]


REFUSED = {
    "as many labels as annotators": (
        'task,annotator,label\n1,"a,b","0,1,1"\n', {"annotator_separator": ","},
        "row 2, column 'annotator': 'a,b' are 2 annotators, with 3 labels.",
    ),
    "counts in a column a label": (
        "id,worker,cat,dog\n1,x,45,5\n", {"columns": "task=id,label=cat,dog"},
        "row 2, column 'cat': '45' is neither 1 nor 0. Write 1 where the label was given. Counts do not say who voted",
    ),
    "counts in a wide table": (
        "task,cat,dog,frog,ship\n" + "".join(f"{n},{51 - n % 3},{n % 3},0,0\n" for n in range(9)) + "9,0,0,51,0\n",
        {"wide": True}, "its labels look like counts of votes, which do not say who voted.",
    ),
    "a row without a label": (
        GO_EMOTIONS, {"columns": "task=id,annotator=rater_id,label=admiration,neutral"},
        "row 4, column 'admiration': '0' is blank or 0, and so are the columns of all other labels. Leave such rows",
    ),
    "no such column of a label": (
        "task,worker,cat\n1,x,1\n", {"columns": "label=cat,dgo"},
        "there is no column 'dgo', which was given for 'label'",
    ),
    "a key that would not be one": (
        "topic,document,worker,label\na | b,c,w,0\n", {"columns": "task=topic,document"},
        "row 2, column 'topic': 'a | b' holds ' | ', which joins the columns that name a task.",
    ),
    "half a key": (
        "topic,document,worker,label\na,,w,0\na,b,w,0\n", {"columns": "task=topic,document"},
        "row 2, column 'task': '' is empty.",
    ),
    "no task": ("ann,bob\ncat,dog\n", {"wide": True}, "Where no column names it, columns={'task': ''} takes"),
    "columns of labels": ("id,worker,a,b,c\n1,x,1,0,0\n", {}, "If each label has a column of 0 and 1: columns="),
}  # fmt: skip


@pytest.mark.parametrize(("content", "options", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.filterwarnings("ignore:.*usual names")
def test_what_a_form_does_not_say_is_asked_for(content, options, message):
    assert message in message_of(write("a.csv", content), **options)


@pytest.mark.filterwarnings("ignore:.*usual names")
def test_a_bad_row_of_such_a_form_is_left_out_alone():
    write("a.csv", "id,worker,cat,dog\n1,x,45,5\n1,y,1,0\n")
    found = Annotations.read("a.csv", columns="task=id,label=cat,dog", on_bad_rows="reject", rejects="bad.csv")
    assert rows_of(found) == [(1, "y", "cat")]
    assert found.num_rejected == 1
    write("b.csv", 'task,annotator,label\n1,"a,b","0"\n2,"a,b","0,1"\n')
    with pytest.warns(UserWarning, match="1 row was left out"):
        found = Annotations.read("b.csv", annotator_separator=",", on_bad_rows="reject")
    assert rows_of(found) == [(2, "a", 0), (2, "b", 1)]


@pytest.mark.filterwarnings("ignore:.*usual names")
def test_two_answers_of_an_arena_mean_equal_and_one_judge_compares_models_again():
    rows = "1,x,y,j,model_a\n2,x,y,j,tie\n3,y,x,j,tie (bothbad)\n4,x,y,j,model_b\n"
    write("a.csv", "question,model_a,model_b,judge,winner\n" + rows)
    options = {"kind": "preference", "classes": ["model_a", "model_b", "tie"], "rename": {"tie (bothbad)": "tie"}}
    with pytest.raises(DataError, match="on_duplicate='all'"):
        Annotations.read("a.csv", **options)
    found = Annotations.read("a.csv", **options, on_duplicate="all")
    assert [found.classes[label] for label in found.labels] == ["model_a", "tie", "tie", "model_b"]


def test_alpaca_eval_is_read_as_preferences():
    rows = [{"generator_1": "m1", "generator_2": f"m{n}", "annotator": "g", "preference": n / 2} for n in (2, 3, 4)]
    write("a.json", rows)
    options = {"columns": "left=generator_1,right=generator_2,label=preference", "classes": ["1", "2", "1.5"]}
    found = Annotations.read("a.json", kind="preference", **options)
    assert [found.classes[label] for label in found.labels] == ["1", "1.5", "2"]
    assert found.tasks[found.right_ids].tolist() == ["m2", "m3", "m4"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"rename": "cat"}, "rename takes pairs of labels OLD=NEW"),
        ({"annotator_separator": ""}, "annotator_separator must be text"),
        ({"header": False, "wide": True}, "needs columns, such as columns={'task': '', 'annotator': '1,2,3'}"),
        ({"sheet": "x"}, "sheet is an option of Excel workbooks"),
    ],
)
def test_options_of_forms_are_checked(option, message):
    with pytest.raises(ConfigError, match=message):
        Annotations.read(write("a.csv", "task,annotator,label\n1,x,a\n"), **option)


def test_a_frame_has_one_column_each():
    with pytest.raises(ConfigError, match="one column each for task and label"):
        Annotations.from_frame({"id": [1], "annotator": ["a"], "x": [1], "y": [0]}, columns="task=id,label=x,y")


@pytest.mark.parametrize(
    ("content", "message"),
    [('[{"task": 1},\n {"task": ]\n', "a.json, row 2: is not JSON"),
     ('{\n "a": {"x": "yes"},\n "b": {"x": "yes" "y": "no"}\n}\n', "row 3: is not JSON: Expecting ',' delimiter"),
     ('{"a": {"x": "yes",\n "y": }}\n', "a.json, row 2: is not JSON"),
     ('{"a": {"x": "yes" "y": "no"}}', "Expecting ',' delimiter at character 19")],
)  # fmt: skip
def test_broken_json_is_named_where_it_breaks(content, message):
    found = message_of(write("a.json", content))
    assert message in found
    assert "rows are bad" not in found


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_gold_has_the_key_of_two_columns_that_annotations_have(ending, tmp_path):
    write("a.csv", "topic,document,worker,label\n1,d1,w,no\n2,d1,w,yes\n2,d2,w,no\n")
    write_table({"document": ["d1", "d1", "d2"], "topic": [2, 1, 2], "gold": ["no", "yes", ""]}, f"gold.{ending}")
    crowd = Annotations.read("a.csv", columns="task=topic,document,annotator=worker")
    layout = Layout.of_second("task=topic,document", {}, "gold_columns")
    found = kind_of("classification").reading.gold_of(crowd, Path(f"gold.{ending}"), layout)
    assert dict(zip(crowd.tasks, found, strict=True)) == {"1 | d1": 1, "2 | d1": 0, "2 | d2": -1}
    write("half.csv", "topic,document,gold\n1,,yes\n")
    with pytest.raises(DataError, match="Write the name of a task"):
        kind_of("classification").reading.gold_of(crowd, Path("half.csv"), layout)
    other = Layout.of_second("task=topic,documents", {}, "x")
    with pytest.raises(DataError, match="there is no column 'documents'"):
        kind_of("classification").reading.gold_of(crowd, Path("half.csv"), other)
    write("one.csv", '"topic,document",gold\n1 | d1,yes\n')  # a column that is called so
    assert kind_of("classification").reading.gold_of(crowd, Path("one.csv"), layout).tolist() == [1, -1, -1]


def test_splits_of_other_names_are_taken_for_ours():
    write("x.csv", "task,a,split\n1,2,training\n2,3,validation\n3,4,test\n4,5,train\n")
    with pytest.warns(UserWarning, match="'test' is taken for 'eval', .* for 'train', 'validation'"):
        assert read_instances("x.csv").split.tolist() == ["train", "eval", "eval", "train"]


def test_the_command_line_reads_several_labels_of_columns(capsys, refusal_of):
    write("a.csv", GO_EMOTIONS)
    words = ["aggregate", "a.csv", "--columns", "task=id,annotator=rater_id,label=admiration,amusement,neutral"]
    assert cli.main([*words, "--multi-label", "--method", "majority-vote", "--out", "labels.csv"]) == 0
    assert "answers           3" in capsys.readouterr().out
    assert "give --multi-label to crowdzoo aggregate" in refusal_of(*words, "--out", "out", code=3)


def test_a_label_that_is_renamed_and_never_met_is_said():
    with pytest.warns(DataWarning, match=r"a\.csv: rename: no label is 'yess'\."):
        Annotations.read(write("a.csv", "task,annotator,label\n1,x,yes\n1,y,no\n"), rename={"yess": "no"})


def test_an_answer_of_several_annotators_in_a_cell_is_no_object():
    write("b.jsonl", {"task": "t", "annotators": "a,b", "annotations": {"a": "0"}})
    columns = {"annotator": "annotators", "label": "annotations"}
    assert "bad row" in message_of("b.jsonl", annotator_separator=",", columns=columns)


def test_a_text_that_no_cell_of_a_sheet_holds_is_refused():
    pytest.importorskip("openpyxl")
    with pytest.raises(DataError, match="at most 32,767 characters"), open("a.xlsx", "wb") as file:
        write_sheet(pa.table({"text": ["a" * 32_768]}), file)
