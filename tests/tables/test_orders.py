"""Lists in order, a row a list: read as pairs, and as lists."""

import re

import numpy as np
import pandas as pd
import pytest
from csv_files import read_csv
from refusals import bad_rows

from crowdzoo import Annotations
from crowdzoo.commands.main import main
from crowdzoo.data.orders import order_pairs, parse_order
from crowdzoo.errors import DataError
from crowdzoo.instances import read_rankings
from crowdzoo.tables import Rankings

# by hand; of two names of a, b, c whose places sum to an odd number the later one is on the left
PAIRS = [("b", "a", "ann", "right"), ("a", "c", "ann", "left"), ("c", "b", "ann", "equal")]


def rows_of(crowd):
    return list(crowd.to_frame()[["left", "right", "annotator", "label"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("a>b=c", [["a"], ["b", "c"]]),
        (" a > b ", [["a"], ["b"]]),
        ("a=b", [["a", "b"]]),
        ('["b", "a"]', [["b"], ["a"]]),
        ("['b', ('a', 'c')]", [["b"], ["a", "c"]]),
        ('["x>y", "a=b"]', [["x>y"], ["a=b"]]),
        ("[3, 1.5]", [["3"], ["1.5"]]),
    ],
)
def test_a_list_in_order_is_text_or_a_list(text, order):
    assert parse_order(text) == order


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has an empty name"),
        ("a>", "has an empty name"),
        ("[[], 'a', 'b']", "has an empty name"),
        ("a", "is a list of one task: there is nothing to compare. Remove the row."),
        (
            "a,b, c",
            "is a list of one task: there is nothing to compare. If it is several tasks, write a>b>c, best first.",
        ),
        ("a,", "is a list of one task: there is nothing to compare. Remove the row."),
        ("[]", "is a list of one task"),
        ("a>b>a", "has 'a' twice"),
        ("[1, [2]", "is not an ordered list. Write a>b=c"),
        ("[a, b]", "is not an ordered list"),
        ('[{"value": "a"}, "b"]', "contains something other than names"),
        ("[null, 'a']", "is not an ordered list"),
    ],
)
def test_what_is_no_list_in_order_says_what_to_write(text, says):
    with pytest.raises(DataError, match=re.escape(says)):
        parse_order(text)


def test_pairs_of_lists_are_those_of_rankings():
    """The same lists a row a task, whose pairs another function makes, in arrays."""
    rng, names = np.random.default_rng(0), np.array(list("abcdefg"))
    orders = [names[rng.permutation(7)] for _ in range(20)]
    lists = np.repeat(np.arange(20), 7)
    rankings = Rankings.from_arrays(np.concatenate(orders), lists, np.tile(np.arange(7), 20), lists)
    expected = sorted(rows_of(rankings.preferences()))
    pairs = [(left, right, number, label) for number, order in enumerate(orders)
             for left, right, label in order_pairs([[str(name)] for name in order])]  # fmt: skip
    assert sorted(pairs) == expected
    assert 0.4 < np.mean([label == "left" for *_, label in pairs]) < 0.6


def write_lists(folder, form):
    """A table of one list; in Parquet and in a frame a list is a list."""
    cells = {"annotator": ["ann"], "ranking": ["a>b=c"]}
    path = folder / f"a.{form}"
    if form == "csv":
        path.write_text("annotator,ranking\nann,a>b=c\n")
    elif form == "jsonl":
        path.write_text('{"annotator": "ann", "ranking": ["a", ["b", "c"]]}\n')
    elif form == "parquet":
        pd.DataFrame(cells).to_parquet(path)
    return path if path.exists() else pd.DataFrame(cells)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "frame"])
def test_a_column_of_lists_is_read_as_pairs(tmp_path, form):
    table = write_lists(tmp_path, form)
    read = Annotations.from_frame if form == "frame" else Annotations.read
    assert rows_of(read(table, kind="preference")) == PAIRS


def test_lists_of_parquet_are_lists(tmp_path):
    pd.DataFrame({"annotator": ["ann", "bob"], "ranking": [["a", "b"], ["b", "a"]]}).to_parquet(tmp_path / "a.parquet")
    expected = [("b", "a", "ann", "right"), ("b", "a", "bob", "left")]
    assert rows_of(Annotations.read(tmp_path / "a.parquet", kind="preference")) == expected
    rankings = read_rankings(tmp_path / "a.parquet")
    assert sorted(rows_of(rankings.preferences())) == sorted(expected)


def test_lists_of_a_pandas_frame_may_have_ties():
    """By hand: y is better than x and z, which are equal. Arrow has no type for names and lists in one list."""
    frame = pd.DataFrame({"annotator": ["ann", "bob"], "ranking": [["x", "y"], ["y", ["x", "z"]]]})
    expected = [("y", "x", "ann", "right"), ("y", "x", "bob", "left"), ("x", "z", "bob", "equal")]
    assert rows_of(Annotations.from_frame(frame, kind="preference")) == [*expected, ("z", "y", "bob", "right")]


def test_the_column_may_be_named_and_so_may_the_answers(tmp_path):
    (tmp_path / "a.csv").write_text("who,said,when\nann,a>b=c,2026-03-01\n")
    columns = {"annotator": "who", "ranking": "said", "timestamp": "when"}
    crowd = Annotations.read(tmp_path / "a.csv", kind="preference", columns=columns, classes=["L", "R", "tie"])
    assert [label for *_, label in rows_of(crowd)] == ["R", "L", "tie"]
    assert crowd.timestamp.tolist() == [1772323200.0] * 3


def test_a_table_without_pairs_says_how_to_name_the_lists(write):
    with pytest.raises(DataError, match=r"lists in order.*: columns={'ranking': 'NAME', 'annotator'"):
        Annotations.read(write("a.csv", "who,said\nann,a>b=c\n"), kind="preference")


def test_bad_lists_are_named_with_row_column_and_value(write):
    path = write("a.csv", "annotator,ranking\nann,a>b\nbob,a\ncid,a>b>a\n")
    with pytest.raises(DataError, check=bad_rows((3, "ranking", "a"), (4, "ranking", "a>b>a"))):
        Annotations.read(path, kind="preference")
    with pytest.warns(UserWarning, match="2 rows were left out"):
        assert len(Annotations.read(path, kind="preference", on_bad_rows="reject")) == 1


def test_the_command_reads_the_lists_as_lists_as_well(tmp_path, capsys):
    rows = {"ann": "cabd", "bob": "acdb", "cid": "dcab"}
    (tmp_path / "a.csv").write_text(
        "annotator,said\n" + "".join(f"{who},{'>'.join(order)}\n" for who, order in rows.items())
    )
    (tmp_path / "b.csv").write_text("annotator,task,rank\n" + "".join(
        f"{who},{task},{rank}\n" for who, order in rows.items() for rank, task in enumerate(order)
    ))  # fmt: skip
    words = ["aggregate", "--kind", "preference", "--rankings"]
    named = ["--columns", "ranking=said"]
    assert main([*words, str(tmp_path / "a.csv"), *named, "--out", str(tmp_path / "a_out.csv")]) == 0
    assert "plackett-luce" in capsys.readouterr().out
    assert main([*words, str(tmp_path / "b.csv"), "--out", str(tmp_path / "b_out.csv")]) == 0
    assert read_csv(tmp_path / "a_out.csv") == read_csv(tmp_path / "b_out.csv")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("ann,a>b=c\n", "row 2, column 'ranking': 'a>b=c' has ties, which only pairs can have. Leave out rankings"),
        ("ann,a\n", "row 2, column 'ranking': 'a' is a list of one task"),
        (",a>b\n", "row 2, column 'annotator': '' is empty"),
    ],
)
def test_rows_that_are_no_lists_are_refused(write, rows, says):
    with pytest.raises(DataError, match=says):
        read_rankings(write("a.csv", "annotator,ranking\n" + rows))
