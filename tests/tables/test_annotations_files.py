"""Annotations from files: formats, places of errors, rejected rows, and what comes back from Parquet."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tracemalloc
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from csv_files import read_csv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import bad_row
from slow_cases import quick
from strategies import annotations
from table_files import message_of, rows_of, write

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import DataError
from crowdzoo.reading.tables.jsonl import JsonlSource

pytestmark = pytest.mark.usefixtures("here")  # errors name files as they were passed: short names

# the files of a property test may share a folder: each is written anew
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=10)
in_chunks_too = pytest.mark.parametrize("chunks", quick("whole", slow=["chunks of 7 bytes"]), indirect=True)


HEADER = "task,annotator,label\n"

# === Formats ===

CONTENT = {
    "a.csv": "task,annotator,label\n7,ann,cat\n7,bob,dog\n12,ann,dog\n",
    "a.tsv": "task\tannotator\tlabel\n7\tann\tcat\n7\tbob\tdog\n12\tann\tdog\n",
    "a.jsonl": '{"task": 7, "annotator": "ann", "label": "cat"}\n{"task": 7, "annotator": "bob", "label": "dog"}\n'
    '{"label": "dog", "task": 12, "annotator": "ann"}\n',
}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.usefixtures("chunks")
def test_every_text_format_reads_alike(name, suffix):
    ann = Annotations.read(write(name + suffix, CONTENT[name]))
    assert rows_of(ann) == [(7, "ann", "cat"), (7, "bob", "dog"), (12, "ann", "dog")]
    assert ann.tasks.tolist() == [7, 12]
    assert ann.classes.tolist() == ["cat", "dog"]
    assert ann.tasks.dtype == np.int64


@pytest.mark.usefixtures("chunks")
def test_a_parquet_file_of_others_reads_with_its_types():
    table = pa.table(
        {
            "task": pa.array(["7", "12", "7"]).dictionary_encode(),
            "worker": pa.array([3, 1, 1], pa.uint8()),
            "label": pa.array(["b", "a", "a"], pa.large_string()),
            "confidence": pa.array([1, None, 0], pa.float32()),
            "timestamp": pa.array([0, 1, None], pa.timestamp("s", "Europe/Paris")),
            "comment": pa.array([None, None, None]),
        }
    )
    pq.write_table(table, "a.parquet")
    ann = Annotations.read("a.parquet")
    assert rows_of(ann) == [("7", 3, "b"), ("12", 1, "a"), ("7", 1, "a")]
    np.testing.assert_array_equal(ann.confidence, [1, np.nan, 0])
    np.testing.assert_array_equal(ann.timestamp, [0, 1, np.nan])


READINGS = {
    "carriage returns": "task,annotator,label\r\na,x,1\r\nb,x,2\r\n",
    "no last line end": "task,annotator,label\na,x,1\nb,x,2",
    "byte order mark": b"\xef\xbb\xbftask,annotator,label\na,x,1\nb,x,2\n",
    "blank lines": "\n\ntask,annotator,label\n\na,x,1\n   \nb,x,2\n\n",
    "white space": "task, annotator ,label\n a , x,1\nb\t,x , 2\n",
    "quotes": '"task","annotator","label"\n"a","x","1"\n"b","x",2\n',
    "worker": "worker,task,label\nx,a,1\nx,b,2\n",
    "other columns": "id,task,id,annotator,label,text\n1,a,1,x,1,\n2,b,1,x,2,ü\n",
    "line breaks in quotes": 'task,annotator,label,text\na,x,1,"two\nlines, and a ""quote"""\nb,x,2,"\n\n"\n',
    "a quote in the middle": 'task,annotator,label,text\na,x,1,5" screen\nb,x,2,no\n',
}


@pytest.mark.parametrize("content", READINGS.values(), ids=READINGS)
@pytest.mark.usefixtures("chunks")
def test_what_csv_files_come_like(content):
    assert rows_of(Annotations.read(write("a.csv", content))) == [("a", "x", 1), ("b", "x", 2)]


def test_ids_are_integers_only_where_all_of_them_are_written_as_python_writes_them():
    header = "task,annotator,label\n"
    for ids, expected in [
        (["10", "9"], [9, 10]),
        (["-1", "0"], [-1, 0]),
        (["10", "09"], ["09", "10"]),
        (["10", "-0"], ["-0", "10"]),
        (["10", "+9"], ["+9", "10"]),
        (["10", "9.0"], ["10", "9.0"]),
        (["10", "t9"], ["10", "t9"]),
        (["99999999999999999999", "1"], ["1", "99999999999999999999"]),
    ]:
        ann = Annotations.read(write("a.csv", header + "".join(f"{task},x,1\n" for task in ids)))
        assert ann.tasks.tolist() == expected


@pytest.mark.parametrize("kind", LABEL_KINDS)
@in_chunks_too
@pytest.mark.usefixtures("chunks")
@in_one_folder
@given(data=st.data())
def test_what_is_written_is_what_is_read(kind, data):
    ann = data.draw(annotations(kind, named=True))
    delimiter, end = data.draw(st.sampled_from(",\t")), data.draw(st.sampled_from(["\n", "\r\n"]))
    buffer = io.StringIO(newline="")
    quoting = data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=quoting)
    last = [0] * len(ann) if ann.positions is None else ann.positions.tolist()
    if ann.right_ids is None:
        writer.writerow(["task", "annotator", "label", "position"])
    else:
        writer.writerow(["left", "annotator", "label", "right"])
        last = ann.tasks[ann.right_ids].tolist()
    writer.writerows((*row, cell) for row, cell in zip(rows_of(ann), last, strict=True))
    name = write("a.csv" if delimiter == "," else "a.tsv", buffer.getvalue())
    again = Annotations.read(name, kind=kind)
    # a file cannot tell 7 from "7", so names are compared by their text
    assert [tuple(map(str, row)) for row in rows_of(again)] == [tuple(map(str, row)) for row in rows_of(ann)]
    same = Annotations.read(name, kind=kind, tasks=ann.tasks, annotators=ann.annotators, classes=ann.classes)
    assert same == ann


# === Errors that name the place ===

WAY_OUT = "Fix the file, or skip bad rows with on_bad_rows='reject' (rejects='FILE' keeps them)."
BAD_ROWS = {
    "empty task": (HEADER + "a,x,1\n,x,1\n", "row 3, column 'task': '' is empty. Fill it in, or remove the row."),
    "blank annotator": (HEADER + "a,  ,1\n", "row 2, column 'annotator': '  ' is empty."),
    "empty label": (HEADER + "a,x,\n", "row 2, column 'label': '' is empty."),
    "worker is called worker": ("task,worker,label\na,,1\n", "row 2, column 'worker': '' is empty."),
    "after blank lines": ("\n" + HEADER + "\n\na,x,1\n\n,x,1\n", "row 7, column 'task': '' is empty."),
    "after a quoted line break": ('task,annotator,label,text\na,x,1,"\n\n"\n,x,1,\n', "row 5, column 'task': ''"),
    "too few values": (HEADER + "a,x\nb,x,1\n", "row 2: 'a,x' has 2 values where the header has 3. Add the missing"),
    "too many values": (HEADER + "b,x,1\na,x,1,2\n", "row 3: 'a,x,1,2' has 4 values where the header has 3. Put quo"),
    "repeated": (HEADER + "a,x,1\nb,x,1\na,x,1\n", "row 4, column 'annotator': 'x' has labelled task 'a' before, in"),
    "not UTF-8": (b"task,annotator,label\na,x,caf\xe9\n", "row 2, column 'label': 'caf\\\\xe9' is not UTF-8 (byte"),
    "open quote": (HEADER + 'b,x,1\n"a,x,1\nc,x,1\n', "row 3: '\"a,x,1' opens a quote that nothing closes."),
    "open quote at the end after another in its line": (
        'task,annotator,label,text\nb",x,1,"a',
        "row 2: 'b\",x,1,\"a' opens a quote that nothing closes.",
    ),
    "letters after the quote that a later row closes": (HEADER + 'a,x,"1\nb,x,1"y\n', "row 2: 'a,x,\"1' opens a quote"),
    "letters after the quote that closes a value": (
        HEADER + 'b,x,"1"\n"ca"t,x,1\n',
        "row 3: '\"ca\"t,x,1' closes a quot",
    ),
    "a quote after a backslash": (HEADER + '"a\\"b",x,1\n', 'row 2: \'"a\\\\"b",x,1\' closes a quote within a value.'),
    "carriage return, and a blank line": (HEADER + "a,b,x\rc,d,x\n\n", "row 2: 'a,b,x\\rc,d,x' holds a carr"),
    "NUL byte": (HEADER + "a,x\0,1\nb,x,1\n", "row 2"),
    "carriage return within a line": (HEADER + "a,x\ry,1\n", "row 2: 'a,x\\ry,1' holds a carriage return within"),
}


@pytest.mark.parametrize(("content", "expected"), BAD_ROWS.values(), ids=BAD_ROWS)
@pytest.mark.usefixtures("chunks")
def test_a_bad_row_of_a_csv_file_is_named(content, expected):
    assert message_of(write("a.csv", content)).startswith(f"a.csv: 1 bad row. {WAY_OUT}\n  a.csv, {expected}")


def test_an_open_quote_costs_its_own_line_and_not_the_rest_of_the_file():
    """What follows the quote is longer than any value may be."""
    rows = "".join(f"task{number},x,1\n" for number in range(20_000))
    ann = Annotations.read(
        write("a.csv", HEADER + '"a,x,1\n' + rows + 'b,x,"1\n'), on_bad_rows="reject", rejects="rejects.csv"
    )
    assert len(ann) == 20_000
    one, other = read_csv("rejects.csv")
    assert (one["row"], other["row"]) == ("2", "20003")
    assert one["reason"].startswith("opens a quote that does not close within 131,072 chara")
    assert other["reason"].startswith("opens a quote that nothing closes.")


BAD_NUMBERS = {
    "no number": ("good", "is a word of a scale, give each word its number: rename={'good': 'NUMBER'}."),
    "underscore": ("1_000", "'1_000' is not a number."),
    "infinite": ("inf", "is not a finite number."),
    "nan": ("nan", "missing=['nan']."),
    "overflow": ("1e999", "is not a finite number."),
    "empty": ("", "is empty. Fill it in, or remove the row."),
}


@pytest.mark.parametrize(("value", "expected"), BAD_NUMBERS.values(), ids=BAD_NUMBERS)
@pytest.mark.usefixtures("chunks")
def test_a_bad_rating_is_named(value, expected):
    message = message_of(write("a.csv", f"task,annotator,label\na,x,1\nb,x,{value}\nc,x,2\n"), kind="regression")
    line = message.splitlines()[1]
    assert len(message.splitlines()) == 2
    assert line.startswith("  a.csv, row 3, column 'label': ")
    assert line.endswith(expected)


@pytest.mark.usefixtures("chunks")
def test_a_rating_outside_of_the_scale_is_a_bad_row():
    lines = ["task,annotator,label", "a,u,0", "b,u,10", "c,u,10.5", "d,u,-1", "f,u,5"]
    Path("a.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError) as error:
        Annotations.read("a.csv", kind="regression", low=0, high=10)
    assert [(row.row, row.column, row.value) for row in error.value.rows] == [(4, "label", 10.5), (5, "label", -1.0)]
    assert error.value.rows[0].reason.startswith("is outside the scale 0 to 10.")
    kept = Annotations.read("a.csv", kind="regression", low=0, high=10, on_bad_rows="reject", rejects="bad.csv")
    assert (kept.labels.tolist(), kept.num_rejected) == ([0, 10, 5], 2)
    assert [(row["row"], row["original"]) for row in read_csv("bad.csv")] == [("4", "c,u,10.5"), ("5", "d,u,-1")]
    assert len(Annotations.from_frame(kept.to_frame(), kind="regression", low=0)) == 3
    with pytest.raises(DataError, check=bad_row(0, "label", 0.0)):
        Annotations.from_frame(kept.to_frame(), kind="regression", low=1)


@pytest.mark.parametrize(
    ("scale", "reason"),
    [
        ({"low": 6}, "is outside the scale (at least 6). Fix the rating or remove it, or change low."),
        ({"high": 4}, "is outside the scale (at most 4). Fix the rating or remove it, or change high."),
        ({"low": 0, "high": 4}, "is outside the scale 0 to 4. Fix the rating or remove it, or change low and high."),
    ],
)
def test_the_reason_names_the_ends_of_the_scale_that_were_set(scale, reason):
    with pytest.raises(DataError) as error:
        Annotations.from_arrays(["a"], ["u"], [5.0], kind="regression", **scale)
    assert error.value.rows[0].reason == reason


def test_an_infinite_rating_without_a_scale_is_not_called_outside_of_one():
    names = (np.array(["a"], object), np.array(["u"], object))
    crowd = Annotations("regression", np.array([0]), np.array([0]), np.array([np.inf]), *names)
    with pytest.raises(DataError, match="is not a finite number"):
        crowd.check_scale()


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("b,x,1,high,0", "row 3, column 'confidence': 'high' is not a number."),
        ("b,x,1,inf,0", "row 3, column 'confidence': 'inf' is not a finite number. Leave it empty where it is unknown"),
        ("b,x,1,1,soon", "row 3, column 'timestamp': 'soon' is not a number of seconds or an ISO 8601 date such as 20"),
        ("b,x,1,1,31.02.2026", "row 3, column 'timestamp': '31.02.2026' is not a number of seconds or "),
        ("b,x,1,1,1/2/2026", "row 3, column 'timestamp': '1/2/2026' is not a number of seconds or "),
    ],
)
def test_a_bad_confidence_or_timestamp_is_named(row, expected):
    name = write("a.csv", f"task,annotator,label,confidence,timestamp\na,x,1,0.5,0\n{row}\n")
    assert message_of(name).splitlines()[1].startswith(f"  a.csv, {expected}")


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ("x", "'x' is not an integer."),
        ("-1", "'-1' is not a position: positions are integers from 0."),
        ("0.5", "'0.5' is not a position: positions are integers from 0."),
        ("", "'' is empty. Fill it in, or remove the row."),
        ("3", "'3' belongs to annotator"),
    ],
)
def test_a_bad_position_is_named(position, expected):
    name = write("a.csv", f"task,annotator,label,position\nb,x,O,0\na,x,O,{position}\n")
    line = message_of(name, kind="sequence").splitlines()[1]
    assert line.startswith(f"  a.csv, row 3, column 'position': {expected}".replace("'3'", "3"))


BAD_LINES = {
    "broken": ('{"task": 1,}', "row 2: '{\"task\": 1,}' is not JSON: "),
    "no object": ("[1, 2]", "row 2: '[1, 2]' is not a JSON object."),
    "no key": ('{"task": 1, "label": 1}', "row 2, column 'worker': None is empty. Fill it in, or remove the row."),
    "list": ('{"task": [1], "worker": 1, "label": 1}', "row 2, column 'task': [1] is not a string or an integer."),
    "fraction": ('{"task": 1, "worker": 1, "label": 0.5}', "row 2, column 'label': 0.5 is not a string or an integer"),
    "bool": ('{"task": 1, "worker": 1, "label": true}', "row 2, column 'label': True is not a string or an integer."),
    "half a character": ('{"task": "\\ud800", "worker": 1, "label": 1}', "row 2, column 'task': '?' holds half a cha"),
    "not UTF-8": (b'{"task": "\xff"}', 'row 2: \'{"task": "\\\\xff"}\' is not UTF-8 (byte 0xFF). Save the file as UTF'),
}


@pytest.mark.parametrize(("line", "expected"), BAD_LINES.values(), ids=BAD_LINES)
@pytest.mark.usefixtures("chunks")
def test_a_bad_line_of_json_is_named(line, expected):
    good = '{"task": %d, "worker": "a", "label": "x"}\n'
    data = line if isinstance(line, bytes) else line.encode()
    message = message_of(write("a.jsonl", (good % 8).encode() + data + b"\n" + (good % 9).encode()))
    assert message.startswith(f"a.jsonl: 1 bad row. {WAY_OUT}\n  a.jsonl, {expected}")
    assert len(message.splitlines()) == 2


def test_a_key_named_after_an_encoding_is_not_taken_for_a_wrong_encoding():
    lines = ['{"task": 1, "worker": 1, "UTF-8": 1}', '{"task": 1, "worker": 2, "UTF-8": 1, "UTF-8": 0}']
    message = message_of(write("a.jsonl", "\n".join(lines)), columns="label=UTF-8")
    assert "a.jsonl, row 2: " in message
    assert message.endswith("holds the key 'UTF-8' twice.")


def test_a_bad_row_of_a_parquet_file_is_named():
    parquet_of(task=[1.0, 1.5, None], worker=["x", "y", "z"], label=["a", "b", ""])
    with pytest.raises(DataError) as error:
        Annotations.read("a.parquet")
    assert [(row.row, row.column, row.value) for row in error.value.rows] == [(1, "task", 1.5), (2, "task", None)]


BAD_FILES = {
    "empty": ("a.csv", b"", "a.csv is empty."),
    "blank": ("a.csv", b"\n \n", "a.csv is empty."),
    "only a header": ("a.csv", HEADER, "a.csv has a header but no rows."),
    "empty gzip": ("a.csv.gz", b"", "a.csv.gz is empty."),
    "missing column": ("a.csv", "task,anotator,label\na,x,1\n", "a.csv: column 'annotator' (or 'worker') is missing"),
    "no header": ("a.csv", "a,x,1\nb,x,1\n", "a.csv: columns 'task', 'annotator' and 'label' are missing. The colu"),
    "no header, and no numbers": (
        "a.csv",
        "t-a,x,cat\nt-b,x,dog\n",
        "a.csv: columns 'task', 'annotator' and 'label' are missing. The columns are 't-a', 'x', 'cat'. Say which they "
        "are: columns={'task': 'NAME', 'annotator': 'NAME', 'label': 'NAME'}. If the file has no header, say so: ",
    ),
    "several missing columns, one of them misspelt": (
        "a.jsonl",
        '{"id": 1, "anotator": 1, "emotion": "joy", "ts": 1}',
        "a.jsonl: columns 'task', 'annotator' and 'label' are missing. Did you mean 'anotator'?",
    ),
    "two of one column": ("a.csv", "task,task,annotator,label\na,a,x,1\n", "a.csv: column 'task' is there 2 times."),
    "header not UTF-8": ("a.csv", b"task,annotator,label,\xe9\n", "a.csv, row 1: the header is not UTF-8 (byte 0xE9"),
    "gzip without the name": ("a.csv", gzip.compress(b"task"), "a.csv: the file is compressed with gzip; let its name"),
    "spreadsheet": ("a.csv", b"PK\x03\x04", "a.csv: the file is a zip archive or a workbook; let its name end in .zip"),
    "Parquet as CSV": ("a.csv", b"PAR1....", "a.csv: the file is Parquet; let its name end in .parquet, or use from_p"),
    "JSON list": ("a.jsonl", "[\n{}]", "a.jsonl: a JSON list, not one object a line; let its name end in .json."),
    "JSON keys": ("a.jsonl", '{"task": 1, "worker": 1, "lable": 1}', "a.jsonl: column 'label' is missing. Did you"),
    "suffix": (
        "a.cvs",
        HEADER,
        "a.cvs: files of annotations end in .csv, .tsv, .jsonl, .json (each also in .gz or .zip), .xlsx or .parquet, "
        "not in '.cvs'. Did you mean '.csv'?",
    ),
    "empty Parquet": ("a.parquet", b"", "a.parquet is empty."),
}


@pytest.mark.parametrize(("name", "content", "expected"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_cannot_be_read_says_why(name, content, expected):
    assert message_of(write(name, content)).startswith(expected)


ZIPPED = gzip.compress("".join(f"task{i},x,{i % 7}\n" for i in range(1000)).join([HEADER, ""]).encode())
DAMAGED = {
    "cut off": (ZIPPED[: len(ZIPPED) // 2], "the gzip file is cut off"),
    "not compressed": (HEADER.encode(), "not a sound gzip file ("),
    "a wrong byte": (ZIPPED[:200] + bytes([ZIPPED[200] ^ 255]) + ZIPPED[201:], "not a sound gzip file ("),
}


@pytest.mark.parametrize(("data", "expected"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_gzip_file_says_so(data, expected):
    Path("a.csv.gz").write_bytes(data)
    assert message_of("a.csv.gz").startswith(f"a.csv.gz: {expected}")


def test_a_missing_file_is_named_with_its_neighbour(here):
    write("answers.csv", HEADER)
    assert message_of("anwsers.csv") == "anwsers.csv does not exist. Did you mean 'answers.csv'?"
    assert message_of("nowhere/answers.parquet") == "nowhere/answers.parquet does not exist."
    (here / "folder.csv").mkdir()
    assert message_of("folder.csv") == "folder.csv is a folder. Name a file in it."


# === Rows kept apart ===


@pytest.mark.usefixtures("chunks")
def test_rejected_rows_are_kept_with_reason_and_text():
    lines = ["a,x,cat", "b,x", "b,x,cow", "a,x,dog", '"b",y,cat', ",y,cat"]
    name = write("a.csv", HEADER + "\n".join(lines) + "\n")
    ann = Annotations.read(name, classes=["cat", "dog"], on_bad_rows="reject", rejects="rejects.csv")
    assert rows_of(ann) == [("a", "x", "cat"), ("b", "y", "cat")]
    assert ann.num_rejected == 4
    rejects = sorted(read_csv("rejects.csv"), key=lambda reject: int(reject["row"]))
    file, row, column, value, reason, original = zip(*(reject.values() for reject in rejects), strict=True)
    assert (*file, *row) == (*["a.csv"] * 4, "3", "4", "5", "7")
    assert (column, value) == (("", "label", "annotator", "task"), ("b,x", "cow", "x", ""))
    assert original == ("b,x", "b,x,cow", "a,x,dog", ",y,cat")
    assert reason[0].startswith("has 2 values where the header has 3.")
    assert reason[1] == "is not one of the classes ['cat', 'dog']."


@pytest.mark.usefixtures("chunks")
@in_one_folder
@given(data=st.data())
def test_every_row_is_either_kept_or_rejected(data):
    """Good and bad rows in any mixture; which are bad is known from how they were made."""
    num_rows = data.draw(st.integers(1, 12))
    spoiled = data.draw(st.lists(st.sampled_from(["", "task", "label", "short", "repeat"]), min_size=num_rows + 1))
    lines, good, bad = ["0,a,no"], [("0", "a", "no")], {}
    for number, how in enumerate(spoiled[:num_rows], start=1):
        line = {"task": ",a,no", "label": f"{number},a,maybe", "short": f"{number},a", "repeat": "0,a,yes"}.get(
            how, f"{number},a,yes"
        )
        lines.append(line)
        if how:
            bad[number + 2] = line
        else:
            good.append((str(number), "a", "yes"))
    name = write("a.csv", HEADER + "\n".join(lines))
    ann = Annotations.read(name, classes=["no", "yes"], on_bad_rows="reject", rejects="rejects.csv")
    assert [tuple(map(str, row)) for row in rows_of(ann)] == good
    assert {int(reject["row"]): reject["original"] for reject in read_csv("rejects.csv")} == bad
    assert ann.num_rejected == len(bad) == len(lines) - len(ann)


@pytest.mark.parametrize(("policy", "kept", "dropped"), [("first", "cat", "4"), ("last", "dog", "2")])
@pytest.mark.usefixtures("chunks")
def test_what_a_policy_drops_is_kept_apart_too(policy, kept, dropped):
    name = write("a.csv", HEADER + "a,x,cat\nb,x,cat\na,x,dog\n")
    ann = Annotations.read(name, on_duplicate=policy, rejects="rejects.csv")
    assert ("a", "x", kept) in rows_of(ann)
    assert [reject["row"] for reject in read_csv("rejects.csv")] == [dropped]


def test_an_error_leaves_no_file_behind_and_an_old_one_alone():
    write("rejects.csv", "old")
    message_of(write("a.csv", HEADER + "a,x\n"), rejects="rejects.csv")
    assert sorted(os.listdir()) == ["a.csv", "rejects.csv"]
    assert Path("rejects.csv").read_text() == "old"


# === To Parquet and back ===


@pytest.mark.parametrize("kind", LABEL_KINDS)
@in_chunks_too
@pytest.mark.usefixtures("chunks")
@in_one_folder
@given(data=st.data())
def test_parquet_gives_back_what_was_written(kind, data):
    ann = data.draw(annotations(kind, named=True, optional=True))
    ann.to_parquet("a.parquet")
    assert Annotations.from_parquet("a.parquet") == ann
    assert Annotations.read("a.parquet") == ann
    sorted_ann = Annotations.from_frame(ann.to_frame(), kind=kind)
    sorted_ann.to_parquet("a.parquet")
    assert Annotations.read("a.parquet") == sorted_ann


def test_names_that_no_file_can_hold_are_refused_and_nothing_is_left():
    with pytest.raises(DataError, match=r"tasks holds \(1, 2\), of type tuple"):
        Annotations.from_arrays([(1, 2)], [1], [1]).to_parquet("a.parquet")
    assert os.listdir() == []


@pytest.mark.parametrize("column", ["task", "annotator", "label"])
@pytest.mark.parametrize("container", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_half_a_character_is_no_id(column, container):
    columns = {"task": ["a", "b"], "annotator": ["c", "d"], "label": ["e", "f"]}
    columns[column] = [columns[column][0], "\ud800"]
    columns = {name: container(values) for name, values in columns.items()}
    with pytest.raises(DataError, match="holds half a character", check=bad_row(1, column, "\ud800")):
        Annotations.from_arrays(**columns)


# === What Arrow's parsers and Python's would read differently, or not survive ===


@pytest.fixture(params=["fast", "slow"])
def parser(request, monkeypatch):
    """Arrow's parser, or Python's alone."""
    if request.param == "slow":
        monkeypatch.setattr(JsonlSource, "_fast", lambda *_: None)


@pytest.mark.parametrize("key", ["task", "annotator", "label"])
def test_an_escaped_nul_is_refused_in_each_column_that_counts(parser, key):
    row = {"task": "a", "annotator": "b", "label": "c", key: "d\0"}
    write("a.jsonl", json.dumps(row))
    assert f"a.jsonl, row 1, column '{key}': 'd\\x00' holds a NUL byte." in message_of("a.jsonl")
    row = {"task": "a", "annotator": "b", "label": "c", "note": "d\0"}
    write("a.jsonl", json.dumps(row))
    assert len(Annotations.read("a.jsonl")) == 1


ROW = '{"task": "a", "annotator": 1, "label": "x"}'


def test_a_line_of_null_kills_no_process(tmp_path):
    """Arrow 10 reads beyond its memory where a block of JSON, of a MiB, begins with null; these rows are more."""
    note = "x" * 1000
    rows = "".join(f'{{"task": "a{row}", "annotator": 1, "label": "x", "note": "{note}"}}\n' for row in range(1500))
    number = 0
    for before in ("", ROW + "\n", rows):
        for line in ("null", " null", "null\t", "null null", "\r\nnull", "null" + ROW, ROW + " null"):
            (tmp_path / f"{number}.jsonl").write_bytes(f"{before}{line}\n{ROW}\n".encode())
            number += 1
    code = (
        "import sys\nfrom crowdzoo import Annotations\nfor number in range(int(sys.argv[1])):\n    try:\n"
        "        Annotations.read(f'{number}.jsonl')\n    except ValueError as error:\n        print(error)"
    )
    command = [sys.executable, "-c", code, str(number)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert len(re.findall(r"jsonl: \d bad row", done.stdout)) == number


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (ROW[:-1] + ', "task": "b"}', "holds the key 'task' twice."),
        (ROW[:-1] + ', "confidence": NaN}', "is not JSON: NaN is not a number. Write null where it is unknown."),
        (ROW[:-1] + ",}", "is not JSON: "),
        (ROW + ",", "is not JSON: Extra data"),
        (ROW + "}", "is not JSON: Extra data"),
        (ROW + "\0", "is not JSON: Extra data"),
        (ROW[:-1] + ', "other": ' + "[" * 10_000 + "]" * 10_000 + "}", "is nested deeper than 100 levels."),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_json_lines_have_one_rule_whichever_parser_reads_them(line, reason, last, tmp_path):
    path = tmp_path / "a.jsonl"
    good = ROW.replace('"a"', '"b"')
    path.write_text("\n".join([good, line] if last else [good, line, good.replace('"b"', '"c"')]))
    message = message_of(path)
    assert "row 2" in message
    assert reason in message


def test_rejected_rows_may_hold_what_no_csv_file_can(tmp_path):
    path = write("a.jsonl", ROW + '\n{"task": "a\\u0000", "annotator": 1, "label": "\\ud800"}\n' + ROW + "\0\n")
    table = Annotations.read(path, on_bad_rows="reject", rejects=tmp_path / "r.csv")
    assert len(table) == 1
    rows = list(csv.reader((tmp_path / "r.csv").read_text().splitlines()))
    assert [row[1] for row in rows[1:]] == ["2", "3"]
    assert rows[1][3] == "a\\x00"


def test_blank_lines_without_end_take_no_memory(tmp_path):
    """64 MiB of line ends before the header, from 64 KiB of gzip."""
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"\n" * (64 << 20), 9) + gzip.compress(HEADER.encode() + b"1,2,x\n"))
    tracemalloc.start()
    try:
        assert len(Annotations.read(path)) == 1
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


# === Parquet of any type ===


def parquet_of(path="a.parquet", metadata=None, **columns):
    arrays = {name: column if isinstance(column, pa.Array) else pa.array(column) for name, column in columns.items()}
    fields = [(name, array.type) for name, array in arrays.items()]
    pq.write_table(pa.table(list(arrays.values()), schema=pa.schema(fields, metadata)), path)
    return path


NO_IDS = (
    pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.duration("s"), pa.binary(), pa.time32("ms"),
    pa.list_(pa.string(), 2),
)  # fmt: skip
MAY_BE_LISTS = ("annotator", "label")  # lists of them are taken apart


@pytest.mark.parametrize(
    ("kind", "column"),
    [(kind, column) for kind in NO_IDS for column in ("task", *MAY_BE_LISTS, "confidence", "timestamp")
     if not (pa.types.is_list(kind) and column in MAY_BE_LISTS)],
    ids=str,
)  # fmt: skip
def test_columns_of_types_that_are_no_ids_are_named(kind, column):
    columns = {"task": ["a", "b"], "annotator": ["x", "y"], "label": [0, 1]}
    message = message_of(parquet_of(**{**columns, column: pa.nulls(2, kind)}))
    read = pq.read_schema("a.parquet").field(column).type  # a list's field is "item" or "element", as pyarrow writes it
    assert f"column '{column}' has the type {read}" in message


def test_decimal_float_and_dictionary_ids_are_whole_numbers_or_bad_rows():
    who = {"annotator": ["x", "y"], "label": ["k", "k"]}
    for ids in (
        [Decimal("7"), Decimal("8.00")], pa.array([7.0, 8.0]), pa.array([7, 8]).dictionary_encode(),
        pa.array([7, 8], pa.uint64()),
    ):  # fmt: skip
        assert Annotations.read(parquet_of(task=ids, **who)).tasks.tolist() == [7, 8]
    for ids in ([Decimal("7.5"), Decimal("8")], [7.5, 8.0]):
        assert "row 0, column 'task': 7.5 is not an id" in message_of(parquet_of(task=ids, **who))
    large = Annotations.read(parquet_of(task=pa.array([2**63, 7], pa.uint64()), **who))
    assert large.tasks.tolist() == ["7", str(2**63)]


def test_bytes_that_are_not_utf8_are_named_in_parquet_too():
    table = {"task": ["a", "bXY", "c"], "annotator": ["x", "x", "x"], "label": ["k", "k", "k"]}
    content = Path(parquet_of(**table)).read_bytes()
    Path("a.parquet").write_bytes(content.replace(b"bXY", b"b\xff\xfe"))
    assert "a.parquet, row 1, column 'task': 'b\\\\xff\\\\xfe' is not UTF-8" in message_of("a.parquet")
    read = Annotations.read("a.parquet", on_bad_rows="reject", rejects="r.csv")
    assert read.tasks.tolist() == ["a", "c"]
    assert [row["row"] for row in read_csv("r.csv")] == ["1"]


@pytest.mark.parametrize(
    "footer",
    [
        b"", b"\xff", b"null", b"[]", b"[" * 10_000, b"{}", b'{"version": 1}',
        b'{"version": 1, "kind": "x", "names": {}}', b'{"version": 1, "kind": ["classification"], "names": {}}',
        b'{"version": 1, "kind": "classification", "names": []}',
        b'{"version": 1, "kind": "classification", "names": {"other": null}}',
        b'{"version": 1, "kind": "classification", "names": {"label": "abcdefgh"}}',
        b'{"version": 1, "kind": "classification", "names": {"label": {"type": "string", "names": "abcdefgh"}}}',
        b'{"version": 1, "kind": "classification", "names": {"label": {"type": "integer", "names": [1, "k"]}}}',
        b'{"version": 1, "kind": "classification", "names": {"label": {"type": "integer", "names": [%d]}}}' % 10**30,
        b'{"version": 1, "kind": "classification", "names": {"label": {"type": "string", "names": ["k", "k"]}}}',
        b'{"version": 1, "kind": "regression", "names": {"label": {"type": "string", "names": ["k"]}}}',
    ],
)  # fmt: skip
def test_a_damaged_footer_is_named(footer):
    path = parquet_of(metadata={b"crowdzoo.annotations": footer}, task=["a"], annotator=["x"], label=["k"])
    assert "a.parquet: the footer is damaged: crowdzoo.annotations" in message_of(path)


def test_columns_that_stand_twice_are_named():
    arrays = [pa.array(["a"])] * 4
    pq.write_table(pa.Table.from_arrays(arrays, ["task", "task", "annotator", "label"]), "a.parquet")
    assert "column 'task' is there 2 times" in message_of("a.parquet")
    pq.write_table(pa.Table.from_arrays(arrays, ["task", "annotator", "label", "task.x"]), "a.parquet")
    assert len(Annotations.read("a.parquet")) == 1


def test_an_option_that_does_not_exist_is_named_with_the_one_that_was_meant():
    with pytest.raises(TypeError, match=r"unknown option .* 'colums': .* Did you mean 'columns'\?$"):
        Annotations.read(write("a.csv", "task,annotator,label\na,x,1\n"), colums={"task": "item"})
    with pytest.raises(TypeError, match=r"unknown option .* 'on_duplicat'"):
        Annotations.from_arrays(["a"], ["x"], [1], on_duplicat="first")
