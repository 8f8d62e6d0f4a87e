"""Files as people have them: separators, encodings, line ends, decimal commas, no header, gzip and zip."""

import io
import zipfile

import numpy as np
import pytest
from refusals import bad_row
from table_files import message_of, rows_of, write

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError
from crowdzoo.files.utf8_blocks import utf8_blocks

pytestmark = pytest.mark.usefixtures("here")

TEXT = "task,annotator,label\nt1,Jürgen,größer\nt1,Zoë,kleiner\n"
ROWS = [("t1", "Jürgen", "größer"), ("t1", "Zoë", "kleiner")]


def zipped(members=()):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in dict(members).items():
            archive.writestr(name, content)
    return buffer.getvalue()


# === Separators ===


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.usefixtures("chunks")
def test_the_header_shows_the_separator(mark, suffix):
    assert rows_of(Annotations.read(write("a" + suffix, TEXT.replace(",", mark)))) == ROWS


def test_any_separator_may_be_given_and_then_any_ending():
    write("a.dat", TEXT.replace(",", "^"))
    assert rows_of(Annotations.read("a.dat", separator="^")) == ROWS
    assert rows_of(Annotations.read(write("b.txt", TEXT.replace(",", "\t")), separator="tab")) == ROWS
    write("a.csv", TEXT.replace(",", "^"))
    message = message_of("a.csv")
    assert "The whole header is one column, 'task^annotator^label'." in message
    assert "separator='^'" in message


# === Encodings and line ends ===


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.usefixtures("chunks")
def test_a_byte_order_mark_says_the_encoding_whatever_is_given(encoding):
    write("a.csv", TEXT.encode(encoding))
    assert rows_of(Annotations.read("a.csv")) == ROWS
    assert rows_of(Annotations.read("a.csv", encoding="latin-1")) == ROWS


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "mac-roman", "utf-8"])
@pytest.mark.usefixtures("chunks")
def test_an_encoding_may_be_given(encoding):
    assert rows_of(Annotations.read(write("a.csv", TEXT.encode(encoding)), encoding=encoding)) == ROWS


def test_a_byte_that_is_not_utf_8_is_refused_with_the_option():
    with pytest.raises(DataError, match="encoding='latin-1'", check=bad_row(2, "annotator", r"J\xfcrgen")):
        Annotations.read(write("a.csv", TEXT.encode("latin-1")))
    assert "the header is not UTF-8 (byte 0xE9 at 21)" in message_of(write("b.csv", b"task,annotator,label,\xe9\n"))


@pytest.mark.usefixtures("chunks")
def test_a_byte_that_is_not_of_the_encoding_given_is_refused_with_its_place():
    place = TEXT.encode().index("ü".encode())
    assert message_of(write("a.csv", TEXT), encoding="ascii").startswith(f"a.csv: byte {place} is not ascii (")


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_blocks_come_out_alike_wherever_they_are_cut(size):
    content = "ä,b\r\nc\r\rd\r\n".encode("utf-16")
    blocks = [content[start : start + size] for start in range(0, len(content), size)]
    assert b"".join(utf8_blocks(blocks, "a")).decode() == "ä,b\r\nc\r\rd\r\n"
    content = "ä\rc\r\nd\r".encode("latin-1")
    blocks = [content[start : start + size] for start in range(0, len(content), size)]
    assert b"".join(utf8_blocks(blocks, "a", "latin-1")).decode() == "ä\nc\nd\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_place_of_a_wrong_byte_does_not_depend_on_where_blocks_are_cut(size):
    right = "task,標註,label\n1,甲,乙\n".encode("gbk")
    content = right + b"\xff\xff\n"
    blocks = [content[start : start + size] for start in range(0, len(content), size)]
    with pytest.raises(DataError, match=rf"^a: byte {len(right)} is not gbk \("):
        list(utf8_blocks(blocks, "a", "gbk"))


# === Decimal commas ===

RATINGS = "task;annotator;label;confidence\nt1;x;3,5;0,5\nt2;x;4;\n"


@pytest.mark.usefixtures("chunks")
def test_ratings_with_a_decimal_comma_are_read_when_asked():
    found = Annotations.read(write("a.csv", RATINGS), kind="regression", decimal=",")
    assert found.labels.tolist() == [3.5, 4]
    np.testing.assert_array_equal(found.confidence, [0.5, np.nan])
    # what separates thousands there, or is a decimal mark after all, is not guessed
    write("b.csv", RATINGS.replace("3,5", "1.234"))
    assert "'1.234' is not a number." in message_of("b.csv", kind="regression", decimal=",")


# === No header ===


@pytest.mark.usefixtures("chunks")
def test_columns_of_a_file_without_a_header_are_numbers():
    write("a.csv", "x;t1;cat;9\nx;t2;dog;9\n")
    found = Annotations.read("a.csv", header=False, columns={"task": 2, "annotator": 1, "label": 3})
    assert rows_of(found) == [("t1", "x", "cat"), ("t2", "x", "dog")]
    bad = write("b.csv", "x,t1,cat\nx,,dog\ny,t1\n")
    message = message_of(bad, header=False, columns="task=2,annotator=1,label=3")
    assert "b.csv, row 2, column '2': '' is empty." in message
    assert "b.csv, row 3: 'y,t1' has 2 values where" in message


def test_a_file_without_a_header_says_what_it_needs():
    write("a.csv", "x,t1,cat\n")
    write("a.jsonl", "{}")
    for name, columns, expected in [
        ("a.csv", None, "columns={'task': '1', 'annotator': '2', 'label': '3'}."),
        ("a.csv", {"task": "x"}, "a.csv: columns of a file without a header are numbers"),
        ("a.csv", "task=2,annotator=1,label=4", "there is no column '4', which was given for 'label'."),
        ("a.csv", "task=2,annotator=1,label=4", "The columns are '1', '2', '3'."),
        ("a.csv", "task=2,annotator=1", "'label' is missing"),
        ("a.jsonl", {"task": 1}, "a.jsonl: separator and header are options of CSV files"),
    ]:
        assert expected in message_of(name, header=False, columns=columns)


# === gzip and zip ===


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv.gz", TEXT),
        ("a.csv.zip", zipped({"a.csv": TEXT})),
        ("export.zip", zipped({"answers.tsv": TEXT.replace(",", "\t")})),
        ("mac.zip", zipped({"folder/a.csv": TEXT, "__MACOSX/folder/._a.csv": "x", "folder/.DS_Store": ""})),
    ],
    ids=["gzip", "zip", "zip of another name", "zip of a Mac"],
)
@pytest.mark.usefixtures("chunks")
def test_annotations_are_read_from_gzip_and_zip(name, content):
    assert rows_of(Annotations.read(write(name, content))) == ROWS


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (zipped({"a.csv": TEXT, "b.csv": TEXT}), "a.zip: the zip archive holds 2 files; leave one, or unpack it."),
        (zipped(), "a.zip: the zip archive holds 0 files; leave one, or unpack it."),
        (b"PK\x03\x04 and nothing more", "a.zip: not a sound zip archive (File is not a zip file). Copy it again, "),
        (zipped({"a.csv": TEXT})[:-30], "a.zip: not a sound zip archive"),
        (zipped({"a.xlsx": "x"}), "a.zip: files of annotations end in .csv"),
    ],
)
def test_an_archive_that_cannot_be_read_says_why(content, expected):
    assert message_of(write("a.zip", content)).startswith(expected)


def test_a_zip_bomb_is_refused_before_it_is_unpacked():
    write("a.zip", zipped({"a.csv": b"a" * (65 << 20)}))
    assert "would become 68,157,440, as in a zip bomb" in message_of("a.zip")


# === Command line ===


def test_the_command_line_reads_what_a_spreadsheet_in_german_saves(capsys, refusal_of):
    write("a.csv", "Aufgabe;Person;Note\nt1;Jürgen;1,5\nt1;Zoë;2,5\nt2;Zoë;3\nt2;Jürgen;3\n".encode("cp1252"))
    write("g.csv", "t1;1,75\nt2;3\n")
    words = ["aggregate", "a.csv", "--kind", "regression", "--method", "mean", "--out", "out", "--encoding", "cp1252"]
    words += ["--columns", "task=Aufgabe,annotator=Person,label=Note", "--decimal", ","]
    assert cli.main([*words, "--gold", "g.csv", "--gold-columns", "task=1,gold=2"]) == 0
    assert "0.1250" in capsys.readouterr().out  # the mean absolute error: 2 for 1.75, and 3 for 3
    assert "For numbers with a decimal comma give --decimal ','." in refusal_of(*words[:-2], "--force", code=3)
