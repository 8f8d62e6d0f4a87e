"""Tables as annotators' tools and spreadsheets write them, which were misread without a word."""

import json

import pandas as pd
import pytest
from table_files import message_of, texts_of, write, write_table

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError, DataWarning

pytestmark = pytest.mark.usefixtures("here")


NO_ANNOTATORS = ("consensus", "majority_vote", "n", "agreement", "Email Address", "Ann_comment", "Bob confidence")


@pytest.mark.parametrize("name", ["", "Unnamed: 0", *NO_ANNOTATORS])
def test_a_column_of_a_wide_table_that_is_no_annotator_is_named(name):
    file = write("a.csv", f"{name},Ann,Bob\n0,0,1\n1,1,1\n")
    message = message_of(file, wide=True, columns="task=")
    assert f"column '{name}' does not look like an annotator" in message
    assert "columns={'task': '', 'annotator': 'Ann,Bob'}" in message
    assert Annotations.read(file, wide=True, columns="task=,annotator=Ann,Bob").num_annotators == 2


HEADER = "task,annotator,label\n"
REFUSED = {
    "what is known of a rater": (
        "rater,i1,i2,gender,age\nr1,3,4,f,33\nr2,3,4,m,44\n", {"wide": True, "columns": "annotator=rater"},
        r"not look like a task.*{'annotator': 'rater', 'task': 'i1,i2'}",
    ),
    "a line break in a label, of which a part is known": (
        f'{HEADER}1,a,"cat\ndog"\n1,b,cat\n', {}, r"made of other labels.*label_separator='\\n'",
    ),
    "lines above the header": (f"# exported in March\n{HEADER}1,ann,x\n", {}, "lines above the names of the columns"),
    "a title and a blank line above it": (f"Results\n\n{HEADER}1,ann,x\n", {}, "lines above the names of the columns"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "options", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_task_no_label_or_no_header_is_told(content, options, expected):
    with pytest.raises(DataError, match=expected):
        Annotations.read(write("a.csv", content), **options)


def test_a_list_as_numpy_writes_it_is_several_labels():
    file = write("a.csv", "task,annotator,label\n1,a,\"['cat' 'red dog'\n 'cow']\"\n1,b,['cat']\n")
    assert "is a list" in message_of(file)
    crowd = Annotations.read(file, label_separator=",", on_duplicate="all")
    assert texts_of(crowd) == [("1", "a", "cat"), ("1", "a", "cow"), ("1", "a", "red dog"), ("1", "b", "cat")]


CHOICES = [
    ("1", "ann", json.dumps({"choices": ["x", "y"]})), ("1", "bob", "x"), ("2", "ann", "y"), ("2", "bob", "y"),
]  # fmt: skip


def test_several_choices_in_a_csv_file_of_label_studio_are_read_with_single_ones(refusal_of):
    lines = [f'{task},{who},"{label.replace(chr(34), chr(34) * 2)}"' for task, who, label in reversed(CHOICES)]
    file = write("a.csv", "\n".join(["id,annotator,topics", *lines, ""]))
    words = ["aggregate", file, "--columns", "task=id,label=topics", "--multi-label", "--out", "o.csv", "--force"]
    said = refusal_of(*words, code=3)
    assert """labels such as '{"choices": ["x", "y"]}' hold answers""" in said
    assert "--label-separator ','" in refusal_of(*words, "--field", "choices", code=3)
    options = {"field": "choices", "label_separator": ",", "on_duplicate": "all"}
    crowd = Annotations.read(file, columns="task=id,label=topics", **options)
    rest = [("1", "bob", "x"), ("2", "ann", "y"), ("2", "bob", "y")]
    assert texts_of(crowd) == [("1", "ann", "x"), ("1", "ann", "y"), *rest]


def zooniverse(*values):
    cells = [json.dumps([{"task": "T0", "value": value}]).replace('"', '""') for value in values]
    return "\n".join(["task,user,label", *(f'1,u{number},"{cell}"' for number, cell in enumerate(cells)), ""])


def test_the_choices_of_a_survey_are_its_labels():
    answers = [[{"choice": "LION", "answers": {"HOWMANY": number}}] for number in "12"]
    crowd = Annotations.read(
        write("a.csv", zooniverse(*answers)), field="T0", label_separator=",", columns="annotator=user"
    )
    assert texts_of(crowd) == [("1", "u0", "LION"), ("1", "u1", "LION")]


def test_marked_points_are_no_labels():
    file = write("a.csv", zooniverse([{"x": 1.5, "y": 2.5, "tool": 0}], []))
    assert "'x': 1.5" in message_of(file, field="T0", columns="annotator=user")
    assert "are not labels" in message_of(file, field="T0", columns="annotator=user")


def test_the_lines_below_the_header_of_qualtrics_are_named():
    parts = ["ResponseId,Q1", "Response ID,How?", '"{""ImportId"":""_recordId""}","{""ImportId"":""QID1""}"']
    file = write("a.csv", "\n".join([*parts, "R_1,Yes", "R_2,Yes", ""]))
    message = message_of(file, wide=True, columns="annotator=ResponseId,task=Q*")
    assert "as Qualtrics writes them" in message
    assert "Remove rows 2 and 3" in message
    file = write("a.csv", "\n".join([parts[0], "R_1,Yes", "R_2,Yes", ""]))
    assert len(Annotations.read(file, wide=True, columns="annotator=ResponseId,task=Q*")) == 2


def test_a_frame_that_pandas_wrote_as_json_is_a_table():
    frame = pd.DataFrame({"task": ["t1", "t1"], "annotator": ["ann", "bob"], "label": ["x", "y"]})
    wanted = [("t1", "ann", "x"), ("t1", "bob", "y")]
    assert texts_of(Annotations.read(write("a.json", frame.to_json()))) == wanted
    other = frame.rename(columns={"label": "mood"}).to_json()
    assert texts_of(Annotations.read(write("b.json", other), columns="label=mood")) == wanted
    tasks = {"t1": {"ann": "x", "bob": "y"}, "t2": {"ann": "x", "bob": "x"}}  # tasks of the same annotators, as ever
    assert texts_of(Annotations.read(write("c.json", json.dumps(tasks))))[2] == ("t2", "ann", "x")


@pytest.mark.parametrize(("column", "name"), [("annotator", "NaN"), ("annotator", "unassigned"), ("task", "None")])
def test_an_id_that_names_nobody_is_told(capsys, column, name):
    known = {"task": "1", "annotator": "ann"} | {column: name}
    file = write("a.csv", f"task,annotator,label\n1,bob,x\n{known['task']},{known['annotator']},x\n")
    way_out = rf"leave them out: exclude=\['{name}'\]" if column == "annotator" else "remove the rows"
    with pytest.warns(DataWarning, match=f"'{name}' count as {column}s. If none are meant, {way_out}"):
        assert len(Annotations.read(file)) == 2
    if column == "annotator":
        words = ["aggregate", file, "--method", "majority-vote", "--out", "o.csv", "--exclude", name]
        assert cli.main(words) == 0
        assert "annotations                 1" in capsys.readouterr().out


def test_an_id_that_a_spreadsheet_shortened_is_told():
    file = write("a.csv", "task,annotator,label\n1.23457E+17,ann,x\n1.23457E+17,bob,y\n")
    with pytest.warns(DataWarning, match=r"'1.23457E\+17', one of the tasks"):
        assert Annotations.read(file).num_tasks == 1


def test_a_word_of_a_scale_or_for_no_rating_says_what_to_write():
    file = write("a.csv", "task,annotator,label\n1,ann,Strongly agree\n1,bob,N/A\n1,cid,4\n")
    message = message_of(file, kind="regression")
    assert "rename={'Strongly agree': 'NUMBER'}" in message
    assert "leave the rows out: missing=['N/A']." in message
    crowd = Annotations.read(file, kind="regression", rename="Strongly agree=5", missing="N/A")
    assert crowd.labels.tolist() == [5.0, 4.0]


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_a_message_on_json_names_nested_answers_and_no_header(ending):
    for entry in ({"id": 1, "judgments": [{"worker": "a", "label": "x"}]}, {"data": [{"task": 1, "label": "x"}]}):
        message = message_of(write(f"a.{ending}", json.dumps(entry) + "\n"))
        assert f"Answers inside '{[*entry][-1]}' are not read" in message
        assert not {"header=False", "separator="} & {*message.replace(".", " ").split()}
    assert "header" not in message_of(write(f"a.{ending}", '{"x": 1, "y": 2}\n'))


def test_since_says_when_the_last_answer_was_given(refusal_of):
    file = write("a.csv", "task,annotator,label,timestamp\n1,ann,x,45353.4\n1,bob,x,45353.5\n")  # days of Excel
    words = ["aggregate", file, "--method", "majority-vote", "--out", "o.csv", "--since", "2024-03-01"]
    # 45,353.5 seconds are 12 hours, 35 minutes and 53.5 seconds
    assert "from 1970-01-01 12:35 to 1970-01-01 12:35." in refusal_of(*words, code=3)


STATUS = {
    "status": ["Approved", "Rejected", "draft"],
    "is_deleted": ["0", "TRUE", "1"],
    "was_cancelled": ["", "yes", "true"],
    "_tainted": [False, True, True],  # of Appen (CrowdFlower): the worker failed too many test questions
}


def with_status(column, values):
    return pd.DataFrame({"task": ["t"] * 3, "annotator": [*"abc"], "label": [*"xyy"], column: values})


@pytest.mark.parametrize("column", STATUS)
@pytest.mark.parametrize("form", ["csv", "jsonl", "json", "parquet", "xlsx", "frame"])
def test_answers_that_a_column_says_do_not_count_are_left_out(column, form):
    frame = with_status(column, STATUS[column])
    if form != "frame":
        write_table(frame, f"a.{form}")
    with pytest.warns(UserWarning, match=f"left out: answers that column '{column}' says do not count: 2"):
        crowd = Annotations.from_frame(frame) if form == "frame" else Annotations.read(f"a.{form}")
    assert texts_of(crowd) == [("t", "a", "x")]
    assert crowd.num_rejected == 0


@pytest.mark.parametrize("mark", ["yes", "Yes", "x", "TRUE", "1", "True", True, 1.0])
@pytest.mark.parametrize("form", ["csv", "frame"])
def test_tainted_is_said_in_several_words(mark, form):
    frame = with_status("_tainted", ["no" if isinstance(mark, str) else type(mark)(0), mark, mark])
    with pytest.warns(UserWarning, match="column '_tainted' says do not count: 2"):
        crowd = Annotations.from_frame(frame) if form == "frame" else Annotations.read(write_table(frame, "a.csv"))
    assert texts_of(crowd) == [("t", "a", "x")]


def test_a_status_that_is_a_label_or_a_code_says_nothing_of_answers():
    file = write("a.csv", "task,annotator,status\n1,a,rejected\n1,b,draft\n")
    assert len(Annotations.read(file, columns="label=status")) == 2
    file = write("b.csv", "task,annotator,label,status\n1,a,x,1\n1,b,x,done\n")
    assert len(Annotations.read(file)) == 2
    pairs = write("c.csv", "chosen,rejected,annotator\nx,y,a\ny,z,a\n")
    assert len(Annotations.read(pairs, kind="preference", columns="winner=chosen,loser=rejected")) == 2
    assert len(Annotations.from_frame(with_status("_tainted", [None, "", "false"]))) == 3


def test_words_for_yes_and_no_stand_in_columns_of_labels():
    file = write("a.csv", "id;rater;freude;wut\n1;a;ja;nein\n2;a;Nein;JA\n3;a;\N{CHECK MARK};\n")
    crowd = Annotations.read(file, columns="task=id,annotator=rater,label=freude,wut")
    assert texts_of(crowd) == [("1", "a", "freude"), ("2", "a", "wut"), ("3", "a", "freude")]


def test_each_column_that_says_so_leaves_answers_out():
    head = "task,annotator,label,AssignmentStatus,deleted\n"
    file = write("a.csv", f"{head}t,a,x,Approved,yes\nt,b,y,Rejected,no\nt,c,z,Approved,no\n")
    with pytest.warns(UserWarning, match="column 'AssignmentStatus' or 'deleted' says do not count: 2"):
        assert texts_of(Annotations.read(file)) == [("t", "c", "z")]
    file = write("b.csv", f"{head}t,a,x,Rejected,no\n")
    assert "says do not count: 1" in message_of(file)
