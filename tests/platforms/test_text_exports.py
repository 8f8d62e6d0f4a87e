"""What all exports that are text have in common: their encoding and their separator."""

from pathlib import Path

import pytest

from crowdzoo import Annotations
from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds import kind_of
from crowdzoo.sequences import read_spans

# As Excel saves it in Germany; Bärbel and Käse have letters that are no UTF-8 there
BATCH = "HITId;WorkerId;SubmitTime;Answer.food\nH1;Bärbel;Sat Mar 02 10:11:12 PST 2024;Käse\nH1;W2;{};Wurst\n"
EXPORTS = {
    "mturk": ("b.csv", BATCH.format("Sat Mar 02 18:11:13 GMT 2024")),
    "toloka": ("b.tsv", "INPUT:text\tOUTPUT:food\tASSIGNMENT:worker_id\nx\tKäse\tBärbel\nx\tWurst\tW2\n"),
    "doccano": ("b/Bärbel.jsonl", '{"id": 1, "text": "x", "label": ["Käse"]}\n'),
    "cvat": (
        "b/Bärbel.xml",
        '<?xml version="1.0" encoding="utf-8"?><annotations><image name="a.jpg"><tag label="Käse"/></image>'
        "</annotations>",
    ),
}


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("platform", EXPORTS)
def test_an_export_has_the_encoding_that_is_given(write, tmp_path, platform, encoding):
    name, text = EXPORTS[platform]
    write(name, text.encode(encoding))
    crowd = Annotations.read(tmp_path / Path(name).parts[0], platform=platform, encoding=encoding)
    assert "Käse" in crowd.classes
    assert "Bärbel" in crowd.annotators


def test_spans_have_the_encoding_that_is_given(write, tmp_path):
    for who in ("ann", "bob"):
        write(f"c/{who}/d.txt", "Bärbel kam.".encode("cp1252"))
        write(f"c/{who}/d.ann", "T1\tPER 0 6\tBärbel\n".encode("cp1252"))
    crowd = read_spans(tmp_path / "c", platform="brat", encoding="cp1252")
    assert [list(tokens) for tokens in crowd.tokens] == [["Bärbel", "kam", "."]]
    code = f"aggregate {tmp_path / 'c'} --platform brat --task sequence --encoding cp1252 --out {tmp_path / 'o.csv'}"
    assert main(code.split()) == 0
    assert '"d",0,"B-PER"' in (tmp_path / "o.csv").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match="encoding belongs to an export"):
        kind_of("sequence").read(write("a.jsonl", "{}"), encoding="cp1252")


def test_a_batch_saved_by_excel_is_read_and_converted_with_its_encoding(write, tmp_path, capsys):
    path = write("b.csv", EXPORTS["mturk"][1].encode("cp1252"))
    with pytest.raises(DataError, match=r"row 2.*is not UTF-8.*such as encoding='latin-1'"):
        Annotations.read(path, platform="mturk")
    words = ["convert", str(path), "--platform", "mturk", "--out", str(tmp_path / "o")]
    assert main(words) == 3
    assert "such as --encoding latin-1" in capsys.readouterr().err
    assert main([*words, "--encoding", "latin-1"]) == 0
    assert "H1,Bärbel,Käse" in (tmp_path / "o" / "annotations.csv").read_text(encoding="utf-8")


def test_a_separator_that_is_given_counts(write):
    text = "HITId|WorkerId|Input.a,b,c,d,e|Answer.food\nH1|ann|x|Brot\nH1|bob|x|Wurst\n"
    crowd = Annotations.read(write("b.csv", text), platform="mturk", separator="|")
    assert crowd.classes.tolist() == ["Brot", "Wurst"]
    with pytest.raises(ConfigError, match=r"separator: exports of doccano have none\. Leave it out"):
        Annotations.read(write("b.jsonl", EXPORTS["doccano"][1]), platform="doccano", separator="|")
    with pytest.raises(ConfigError, match="encoding: exports of PNG masks have none"):
        Annotations.read(write("m/a/b.png", b"").parents[1], platform="png-masks", kind="region", encoding="cp1252")
