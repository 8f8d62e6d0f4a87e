"""Columns under other names: given, found by usual names, or refused because two may be meant."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import bad_row
from table_files import message_of, rows_of, write, write_table

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError, DataWarning
from crowdzoo.instances import read_instances
from crowdzoo.reading.tables.layout import Layout

pytestmark = pytest.mark.usefixtures("here")

MTURK = 'HITId,WorkerId,"Answer.category, chosen",Reward\nh1,w1,cat,0.1\nh1,w2,dog,0.1\nh2,w1,dog,0.1\n'
ROWS = [("h1", "w1", "cat"), ("h1", "w2", "dog"), ("h2", "w1", "dog")]
MAPPING = {"task": "HITId", "annotator": "WorkerId", "label": "Answer.category, chosen"}


def files():
    frame = pd.DataFrame(ROWS, columns=list(MAPPING.values()))
    write("a.csv", MTURK)
    for ending in ("tsv", "jsonl", "parquet"):
        write_table(frame, f"a.{ending}")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("columns", [MAPPING, ",".join(f"{ours}={theirs}" for ours, theirs in MAPPING.items())])
def test_columns_are_named_as_a_mapping_or_as_on_the_command_line_in_every_format(name, columns):
    files()
    assert rows_of(Annotations.read(name, columns=columns)) == ROWS


@pytest.mark.parametrize(
    "header",
    ["item,worker_id,answer", "Question ID,User,Category", "hit-id,RATER,Response", "IMAGE,annotator_id,rating"],
)
def test_usual_names_are_found_and_said_with_the_option_to_give(header):
    write("a.csv", f"{header}\nh1,w1,cat\nh1,w2,dog\nh2,w1,dog\n")
    task, annotator, label = header.split(",")
    option = {"task": task, "annotator": annotator, "label": label}
    with pytest.warns(DataWarning, match=f"a.csv: columns were found by usual names: columns={option}"):
        assert rows_of(Annotations.read("a.csv")) == ROWS
    # what the warning says is quiet
    assert len(Annotations.read("a.csv", columns=f"task={task},annotator={annotator},label={label}")) == 3


@pytest.mark.parametrize(
    ("content", "columns", "expected"),
    [
        (
            "task,worker_id,user,label\n1,2,3,4\n",
            None,
            "'worker_id' or 'user'. Say which: columns={'annotator': 'worker_id'}.",
        ),
        (MTURK, {"task": "HITid"}, "'WorkerId', 'Answer.category, chosen', 'Reward'. Did you mean 'HITId'?"),
        ("HITId,HITId,worker,label\n1,2,3,4\n", {"task": "HITId"}, "a.csv: column 'HITId' is there 2 times. Keep one."),
    ],
)
def test_a_column_that_is_not_clear_is_refused_with_what_to_write(content, columns, expected):
    assert message_of(write("a.csv", content), columns=columns).endswith(expected)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("HITId", "columns takes pairs such as task=HITId,annotator=WorkerId, got 'HITId'."),
        ("task=a,task=b", "columns names a column twice, got 'task=a,task=b'."),
        ({"tsk": "a"}, "columns: unknown column 'tsk': choose one of task, "),
        ({"label": ""}, "columns: label must be the name of a column, got ''."),
        ({"task": "a", "label": "a"}, "columns: task and label cannot both be the column 'a'."),
        (["task"], "columns takes names by name, such as {'task': 'HITId'}, got ['task']."),
    ],
)
def test_a_mapping_that_is_none_is_refused(columns, expected):
    assert message_of(write("a.csv", MTURK), columns=columns).startswith(expected)


def test_bad_rows_name_the_files_own_column():
    write("a.csv", "HITId,worker,label\n,w,cat\n")
    with pytest.raises(DataError, check=bad_row(2, "HITId", "")):
        Annotations.read("a.csv", columns={"task": "HITId"})


# === Instances and gold ===


def test_columns_of_instances_are_named_and_the_rest_are_features():
    write("i.csv", "image,x,y,expert\np,1,2,cat\nq,3,4,\n")
    pq.write_table(pa.table({"image": ["p", "q"], "x": [1, 3], "y": [2, 4], "expert": ["cat", ""]}), "i.parquet")
    for name in ("i.csv", "i.parquet"):
        found = read_instances(name, layout=Layout.of_second("task=image,gold=expert", {}))
        assert found.tasks.tolist() == ["p", "q"]
        assert found.values.tolist() == [[1, 2], [3, 4]]
        assert found.gold.tolist() == ["cat", ""]


# === Command line ===


def test_the_command_line_names_columns_of_annotations_and_gold(capsys):
    write("a.csv", MTURK)
    write("g.csv", "image,expert\nh1,cat\nh2,dog\n")
    words = ["aggregate", "a.csv", "--out", "out", "--gold", "g.csv", "--method", "majority-vote"]
    mapped = ["--columns", "task=HITId,annotator=WorkerId,label=Answer.category, chosen"]
    assert cli.main([*words, *mapped, "--gold-columns", "task=image,gold=expert"]) == 0
    assert "on 2 tasks with gold" in capsys.readouterr().out
    assert cli.main([*words, *mapped, "--gold-columns", "taks=image", "--force"]) == 4
    assert "--gold-columns: unknown column 'taks'" in capsys.readouterr().err
    assert cli.main(["quality", "a.csv", "--method", "none", "--bootstrap", "0", *mapped]) == 0


@pytest.mark.parametrize("column", ["timestamp", "confidence"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_column_that_says_nothing_to_us_is_left_out_with_a_word(column, ending):
    words = {"timestamp": ["Tue 3 May, noon", "", "Wed 4 May"], "confidence": ["high", "", "low"]}[column]
    write_table({"task": [1, 2, 3], "annotator": ["a"] * 3, "label": ["x", "y", "x"], column: words}, f"a.{ending}")
    with pytest.warns(DataWarning, match=f"'{column}' is left out: .* is not a number.*{{'{column}': ''}}"):
        found = Annotations.read(f"a.{ending}")
    assert len(found) == 3
    assert getattr(found, column) is None
    assert Annotations.read(f"a.{ending}", columns=f"{column}=") == found
    assert Annotations.read(f"a.{ending}", columns={column: ""}) == found
    # who names the column wants it
    with pytest.raises(DataError, match=f"Or leave the column out: columns={{'{column}': ''}}."):
        Annotations.read(f"a.{ending}", columns={column: column})


def test_a_column_of_which_some_values_are_read_is_not_left_out_unless_one_says_so():
    write("a.csv", "task,annotator,label,confidence\n1,a,x,0.5\n2,a,y,high\n")
    with pytest.raises(DataError, match="Or leave the column out", check=bad_row(3, "confidence", "high")):
        Annotations.read("a.csv")
    assert Annotations.read("a.csv", columns="confidence=").confidence is None


def test_a_column_that_cannot_be_read_is_left_out_after_a_row_that_spans_lines():
    """Arrow is not asked for the rows, and what comes before them is an empty batch."""
    write("a.csv", 'label,task,annotator,confidence\na,a,",a\na,a,",a')
    with pytest.warns(DataWarning, match="column 'confidence' is left out"):
        assert Annotations.read("a.csv").annotators.tolist() == [",a\na,a,"]


def test_milliseconds_since_1970_are_not_taken_for_seconds():
    second = 1_760_000_000
    for factor in (1, 10**3, 10**6, 10**9):
        times = [second * factor, (second + 30) * factor]
        write(
            "a.csv", "task,annotator,label,timestamp\n" + "".join(f"{t},a,x,{time}\n" for t, time in enumerate(times))
        )
        assert Annotations.read("a.csv").timestamp.tolist() == [second, second + 30]
        frame = pd.DataFrame({"task": [0, 1], "annotator": ["a"] * 2, "label": ["x"] * 2, "timestamp": times})
        assert Annotations.from_frame(frame).timestamp.tolist() == [second, second + 30]
    write("a.csv", f"task,annotator,label,timestamp\n0,a,x,9999-12-31\n1,a,x,{second * 1000}\n")
    assert Annotations.read("a.csv").timestamp.tolist() == [253402214400, second]
