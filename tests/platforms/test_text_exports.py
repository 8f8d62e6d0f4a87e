"""What all exports that are text have in common: their encoding, their separator, and when an answer was given."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from csv_files import read_csv
from refusals import bad_row
from studio_exports import annotation, choice, task

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
    code = f"aggregate {tmp_path / 'c'} --platform brat --kind sequence --encoding cp1252 --out {tmp_path / 'o.csv'}"
    assert main(code.split()) == 0
    assert '"d",0,"B-PER"' in (tmp_path / "o.csv").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match="encoding belongs to an export"):
        kind_of("sequence").reading.read(write("a.jsonl", "{}"), encoding="cp1252")


def test_a_batch_saved_by_excel_is_read_and_converted_with_its_encoding(write, tmp_path, refusal_of):
    path = write("b.csv", EXPORTS["mturk"][1].encode("cp1252"))
    with pytest.raises(DataError, match=r"row 2.*is not UTF-8.*such as encoding='latin-1'"):
        Annotations.read(path, platform="mturk")
    words = ["convert", str(path), "--platform", "mturk", "--out", str(tmp_path / "o")]
    assert "such as --encoding latin-1" in refusal_of(*words, code=3)
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


# === When an answer was given ===

SECONDS = 1_709_403_072  # date -u -d "2024-03-02 18:11:12 UTC" +%s
DATES = [
    "Sat Mar 02 10:11:12 PST 2024", "Sat, 02 Mar 2024 18:11:12 GMT", "2024-03-02 18:11:12 UTC", "2024-03-02 18:11:12",
    "2024-03-02T18:11:12Z", "2024-03-02 18:11:12 +0000", "2024-03-02T19:11:12+01:00", str(SECONDS), f"{SECONDS}000",
    "2024-03-02T18:11:12.0", "2024-03-02T18:11:12.0000000Z",
]  # fmt: skip


@pytest.mark.parametrize("date", DATES)
def test_a_date_of_a_table_and_of_an_export_is_one_time(write, date):
    table = write("t.csv", f'task,annotator,label,timestamp\n1,ann,cat,"{date}"\n1,bob,cat,\n')
    np.testing.assert_array_equal(Annotations.read(table).timestamp, [SECONDS, np.nan])
    batch = write("b.csv", f'HITId,WorkerId,SubmitTime,Answer.x\n1,ann,"{date}",cat\n1,bob,,cat\n')
    np.testing.assert_array_equal(Annotations.read(batch, platform="mturk").timestamp, [SECONDS, np.nan])


def test_each_platform_says_when_an_answer_was_given(write):
    said = annotation(4, choice("a", "cat"), created_at="2024-03-02T18:11:12.000000Z", lead_time=2.5)
    brief = {**said, "completed_by": 5, "created_at": None, "lead_time": 0}
    kept = write("b.json", [task(1, said, brief)])
    np.testing.assert_array_equal(Annotations.read(kept, platform="label-studio").timestamp, [SECONDS, np.nan])
    assert Annotations.read(kept, platform="label-studio").seconds.tolist() == [2.5, 0]
    times = {"created_at": said["created_at"], "lead_time": 2.5}
    short = {"id": 1, "a": "cat", "annotator": 4, "annotation_id": 1, **times}
    shown = {"text": "x", "_input_hash": 1, "_annotator_id": "ann", "answer": "accept", "accept": ["cat"]}
    head = "INPUT:t\tOUTPUT:a\tASSIGNMENT"
    exports = {
        "label-studio": write("a.json", [task(1, said)]),
        "toloka": write("p.tsv", f"{head}:worker_id\tASSIGNMENT:submitted\nx\tcat\tw\t2024-03-02T18:11:12.000\n"),
        "prodigy": write("p.jsonl", [{**shown, "_timestamp": SECONDS}]),
    }
    for platform, path in [*exports.items(), ("label-studio", write("min.json", [short]))]:
        crowd = Annotations.read(path, platform=platform)
        assert crowd.timestamp.tolist() == [SECONDS]
        assert (crowd.seconds is None) == (platform != "label-studio")


def test_a_wrong_encoding_and_an_infinite_time_are_named(write):
    path = write("b.csv", EXPORTS["mturk"][1].encode("cp1252"))
    with pytest.raises(DataError, match=r"b.csv: byte .* is not ascii"):
        Annotations.read(path, platform="mturk", encoding="ascii")
    path = write("c.csv", "HITId,WorkerId,WorkTimeInSeconds,SubmitTime,Answer.x\n1,ann,inf,1e999,cat\n")
    with pytest.warns(UserWarning, match="times that are not dates: 1"):
        assert Annotations.read(path, platform="mturk").seconds is None


@pytest.mark.filterwarnings("default")
def test_answers_since_a_date_are_chosen_and_times_that_are_no_dates_are_counted(write, tmp_path, capsys, refusal_of):
    path = write("b.csv", BATCH.format("yesterday"))
    words = ["aggregate", str(path), "--platform", "mturk", "--out", str(tmp_path / "o.csv"), "--force"]
    assert main([*words, "--since", "2024-03-02T18:11:12"]) == 0
    assert "left out: times that are not dates: 1" in capsys.readouterr().err
    assert (tmp_path / "o.csv").read_text(encoding="utf-8").count("\n") == 2
    words[1:4] = [str(write("d.jsonl", '{"id": 1, "text": "x", "label": ["cat"]}\n')), "--platform", "doccano"]
    assert main([*words, "--since", "2024-03-02"]) == 3
    assert "has no timestamps, which --since needs: leave it out." in capsys.readouterr().err
    words[1:4] = [str(write("t.csv", "task,annotator,label,when\n1,ann,cat,2024-03-02 10:11:12 UTC\n"))]
    assert "name their column, --columns timestamp=COLUMN." in refusal_of(*words, "--since", "2024-03-02", code=3)
    assert main([*words, "--since", "2024-03-02", "--columns", "timestamp=when"]) == 0


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("noon", ["2026-03-01T12:00Z", "2026-03-01 12:00 UTC", "2026-03-01T14:00+02:00"])
def test_times_are_given_as_exports_write_them_and_answers_without_one_are_counted(write, tmp_path, capsys, noon):
    rows = "1,ann,cat,2026-03-01T11:59:59Z\n2,ann,cat,2026-03-01 13:00:00 +01:00\n3,ann,cat,\n4,bob,cat,\n"
    words = ["aggregate", str(write("t.csv", "task,annotator,label,timestamp\n" + rows)), "--force", "--out"]
    out = tmp_path / "o.csv"
    for option, expected in ((["--since", noon], ["2"]), (["--until", noon], ["1"])):
        assert main([*words, str(out), *option, "--only", "ann"]) == 0
        assert f"t.csv: {option[0]} leaves out annotations without a timestamp: 1" in capsys.readouterr().err
        assert [row["task"] for row in read_csv(out)] == expected
    assert main([*words, str(out), "--exclude", f"ann:{noon.replace(' ', 'T', 1).replace(' ', '')}.."]) == 0
    assert [row["task"] for row in read_csv(out)] == ["1", "3", "4"]


def test_several_labels_in_one_answer_are_read_by_multi_label_as_the_message_says(write, rows_of):
    survey = [{"choice": choice, "answers": {}, "filters": {}} for choice in ("LION", "GNU")]
    cell = json.dumps([{"task": "T0", "value": survey}]).replace('"', '""')
    exports = {
        "doccano": write("ann.jsonl", [{"id": 1, "text": "a", "label": ["x", "y"]}]),
        "panoptes": write("c.csv", f'user_name,workflow_id,subject_ids,annotations\nann,1,1,"{cell}"\n'),
    }
    for platform, path in exports.items():
        with pytest.raises(DataError, match=r"before, in row \d\. .*several may hold .* --multi-label"):
            rows_of(path, platform)
    once = {"id": 1, "text": "a", "label": ["x"]}
    with pytest.raises(DataError, match=r"before, in row 1\. .* on_duplicate='first' or .*'last'\.$"):
        rows_of(write("ann.jsonl", [once, once]), "doccano")


def test_a_message_names_no_column_that_the_file_lacks(write, rows_of):
    """It was of column 'annotator', which a file of JSON lines does not have."""
    line = {"id": 1, "text": "a", "label": ["x"]}
    path = write("ann.jsonl", [line, line])
    with pytest.raises(DataError, match=r"row 2: 'ann' has labelled task '?1'? before, in row 1"):
        rows_of(path, "doccano")
    with pytest.raises(DataError, check=bad_row(1, "label", "x")):
        rows_of(path, "doccano", classes=["y", "z"])


def test_files_behind_one_another_have_no_marks_within(write):
    head, row = "HITId,WorkerId,Answer.food\n", "H{},W1,Wurst\n"
    path = write("joined.csv", f"\ufeff{head}{row.format(1)}\ufeff{row.format(2)}")
    assert Annotations.read(path, platform="mturk").tasks.tolist() == ["H1", "H2"]
    line = '{"id": %d, "text": "x", "label": ["Wurst"]}\n'
    path = write("joined.jsonl", f"\ufeff{line % 1}\ufeff{line % 2}")
    assert Annotations.read(path, platform="doccano").num_tasks == 2


def test_a_document_of_brat_is_next_to_its_annotations_in_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("ann/d.txt", "Anna sleeps.")
        archive.writestr("ann/d.ann", "T1\tPER 0 4\tAnna\n")
        archive.writestr("bob/d.txt", "Anna sleeps.")
        archive.writestr("bob/d.ann", "")
    crowd = read_spans(tmp_path / "c.zip", platform="brat")
    assert crowd.tokens == (("Anna", "sleeps", "."),)
    assert (crowd.annotations.tasks.tolist(), crowd.annotations.annotators.tolist()) == (["d"], ["ann", "bob"])
    with zipfile.ZipFile(tmp_path / "cut.zip", "w") as archive:
        archive.writestr("ann/d.ann", "")
    with pytest.raises(DataError, match=r"cut\.zip/ann/d\.txt does not exist"):
        read_spans(tmp_path / "cut.zip", platform="brat")
