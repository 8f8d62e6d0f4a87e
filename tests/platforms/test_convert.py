"""`crowdzoo convert`, and `--platform` of the other commands: from an export to files that go on."""

import csv
import json

import numpy as np
import pytest
import studio_exports
from command_line import run
from studio_exports import annotation, choice

from crowdzoo import Annotations
from crowdzoo.commands import main as cli
from crowdzoo.instances import TEXTS, read_gold, read_instances
from crowdzoo.reading.platforms.export import PLATFORMS
from crowdzoo.sequences import read_spans


def name(start, end):
    return {"from_name": "names", "to_name": "t", "type": "labels", "value": {"start": start, "end": end,
            "labels": ["PER"], "text": "Bob"}}  # fmt: skip


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def task(number, data, *said):
    """A task of Label Studio with answers: who, label, whether it is the truth."""
    answers = (annotation(who, choice("mood", label), ground_truth=truth) for who, label, truth in said)
    return studio_exports.task(number, *answers, data=data)


EXPORT = [
    task(1, {"review": 'Good, "very"\r\ngood ☺'}, ("ann", "glad", False), ("bob", "sad", False), ("eve", "glad", True)),
    task(2, {"review": " Bad. "}, ("ann", "sad", False)),
    task(3, {"review": "Nobody saw it"}),
]


def test_an_export_becomes_a_table_of_annotations_and_one_of_instances(write, tmp_path, capsys):
    path = write("export.json", EXPORT)
    assert run("convert", path, "--platform", "label-studio", "--out", tmp_path / "data") == 0
    assert rows(tmp_path / "data" / "annotations.csv") == [
        ["task", "annotator", "label"], ["1", "ann", "glad"], ["1", "bob", "sad"], ["2", "ann", "sad"],
    ]  # fmt: skip
    shown = capsys.readouterr().out
    assert "columns of the instances  text (review)" in shown
    assert "question                  mood" in shown
    annotations = Annotations.read(tmp_path / "data" / "annotations.csv")
    assert annotations == Annotations.read(path, platform="label-studio")
    found = read_instances(tmp_path / "data" / "instances.csv", TEXTS)
    assert found.values.tolist() == [entry["data"]["review"] for entry in EXPORT]
    gold = read_gold(tmp_path / "data" / "instances.csv", annotations.tasks, annotations.classes)
    assert annotations.classes[gold[gold >= 0]].tolist() == ["glad"]


def test_a_column_is_named_where_there_are_several(write, tmp_path, capsys, refusal_of):
    data = {"title": "a", "body": "b b", "task": 7, "links": ["x"], "shown": True, "score": float("nan")}
    path = write("export.json", [task(1, data, ("ann", "glad", False))])
    out = tmp_path / "data"
    words = ("convert", path, "--platform", "label-studio", "--out", out, "--force")
    assert run(*words) == 0
    assert rows(out / "instances.csv") == [
        ["task", "title", "body", "data_task", "links", "shown", "score"],
        ["1", "a", "b b", "7", '["x"]', "true", ""],
    ]
    assert run(*words, "--text", "body") == 0
    assert rows(out / "instances.csv") == [["task", "text"], ["1", "b b"]]
    assert "(see --keep)  title, task, links, shown, score" in capsys.readouterr().out
    assert run(*words, "--text", "body", "--keep", "task, shown") == 0
    assert rows(out / "instances.csv") == [["task", "text", "data_task", "shown"], ["1", "b b", "7", "true"]]
    for option, value in (("--text", "boddy"), ("--keep", "boddy")):
        message = refusal_of(*words, option, value)
        assert f"{option} boddy is not a column of the export" in message
        assert "there are: 'title', 'body'" in message
    assert rows(out / "instances.csv")[0][2] == "data_task", "the earlier result is still there"


@pytest.mark.filterwarnings("default::UserWarning")  # which the command prints
def test_gold_that_cannot_be_used_is_said(write, tmp_path, capsys):
    golden = [("ann", "glad", False), ("eve", "glad", True)]
    other = [*golden, ("joe", "sad", True)]
    path = write("export.json", [task(1, {"text": "a"}, *golden), task(2, {"text": "b"}, *other)])
    assert run("convert", path, "--platform", "label-studio", "--out", tmp_path / "data") == 0
    assert "left out: gold that differs from the task's first: 1" in capsys.readouterr().err
    assert [row[-1] for row in rows(tmp_path / "data" / "instances.csv")] == ["gold", "glad", "glad"]


def test_spans_become_a_file_of_spans(write, tmp_path):
    text = "😀 met Bob"
    said = [annotation(who, name(*place)) for who, place in (("ann", (6, 9)), ("old", (7, 10)))]
    said.append(annotation("spacious", name(5, 9), name(6, 9)))
    path = write("export.json", [studio_exports.task(1, *said, data={"text": text})])
    out = tmp_path / "data"
    assert run("convert", path, "--platform", "label-studio", "--kind", "sequence", "--out", out) == 0
    crowd = read_spans(out / "spans.jsonl")
    assert crowd.tokens == (("😀", "met", "Bob"),)
    # of one whose offsets count UTF-16, and of one who marked a space too much, and Bob twice
    assert crowd.answers(0) == {who: ["O", "O", "B-PER"] for who in ("ann", "old", "spacious")}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--out", "o"), "--platform is missing: name the platform of the export, one of label-studio, mturk"),
        (
            ("--out", "o", "--platform", "cvat"),
            "end in .xml. It looks like an export of Label Studio: write --platform",
        ),
        (("--out", "o", "--platform", "label-studio", "--field", "x"), "--field x is not a question of this export"),
        (("--out", "o", "--field", "mood"), "--platform is missing"),
        (("--out", "o", "--platform", "label-studio", "--kind", "sequence", "--image", "a"), "--image a: sentences"),
    ],
)
def test_what_cannot_be_converted_is_refused_with_the_option(write, tmp_path, here, capsys, words, says):
    assert run("convert", write("export.json", EXPORT), *words) in (3, 4)
    assert says in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_each_platform_is_recognised_from_a_file_of_its_own(write):
    """And none is taken for another."""
    files = {
        "label-studio": ("a.json", EXPORT),
        "mturk": ("b.csv", "HITId,WorkerId,Answer.a\nH1,W1,cat\n"),
        "sagemaker": ("l.manifest", {"answers": [{"answerContent": {"a": "b"}, "workerId": "w"}]}),
        "labelbox": ("m.ndjson", {"data_row": {"id": "c1"}, "projects": {}}),
        "potato": ("n.jsonl", [{"id": "1", "displayed_text": "a", "label_annotations": {"b": {"c": "1"}}}]),
        "toloka": ("c.tsv", "INPUT:a\tOUTPUT:b\tASSIGNMENT:worker_id\nx\ty\tz\n"),
        "prodigy": ("d.jsonl", [{"text": "a", "_input_hash": 1, "_task_hash": 1, "accept": ["x"], "answer": "accept"}]),
        "doccano": ("e.jsonl", [{"id": 1, "text": "a", "label": ["x"]}]),
        "argilla": ("f.json", [{"id": "1", "fields": {"text": "a"}, "responses": {}}]),
        "cvat": ("g.xml", '<annotations><image name="a"></image></annotations>'),
        "coco": ("h.json", {"images": [{"id": 1, "file_name": "a"}], "annotations": [], "categories": []}),
        "brat": ("i.ann", "T1\tPER 0 4\tAnna\n"),
        "png-masks": ("j.png", "\x89PNG"),
        "webanno": ("k.tsv", "#T_SP=a.b.Name|value\n\n#Text=Anna\n1-1\t0-4\tAnna\tPER\n"),
        "panoptes": ("o.csv", "user_name,workflow_id,annotations,subject_ids\nann,1,[],7\n"),
    }
    write("i.txt", "Anna met Bob.")
    assert set(files) == set(PLATFORMS)
    for own, (file, content) in files.items():
        path = write(file, content)
        for other in set(PLATFORMS) - {own}:
            with pytest.raises(ValueError, match=rf"It looks like an export of .*: write platform='{own}'"):
                Annotations.read(path, platform=other)


def test_an_export_is_read_with_the_settings_of_a_configuration(write):
    """A configuration passes on what tables need, too, at its defaults."""
    from crowdzoo.kinds import kind_of
    from crowdzoo.pipelines.config.sections import DataConfig

    path, kind = write("export.json", EXPORT), kind_of("classification")
    data = DataConfig(annotations=path, platform="label-studio", instances=path)
    assert len(kind.reading.read(path, **data.model_dump(mode="json", include={*kind.options.reading}))) == 3


MTURK = "HITId,WorkerId,WorkTimeInSeconds,Input.text,Answer.mood\nh1,w1,{0},t,glad\nh1,w2,{1},t,sad\n"


@pytest.mark.parametrize("platform", ["mturk", "label-studio"])
def test_the_time_that_an_answer_took_is_kept_where_the_platform_says_so(write, tmp_path, platform):
    def export(*seconds):
        if platform == "mturk":
            return write("a.csv", MTURK.format(*("" if each is None else each for each in seconds)))
        said = [annotation(f"w{n}", choice("mood", "glad"), lead_time=each) for n, each in enumerate(seconds)]
        return write("a.json", [studio_exports.task("h1", *said)])

    found = Annotations.read(export(31, None), platform=platform)
    np.testing.assert_equal(found.seconds, [31.0, np.nan])
    assert run("convert", export(31, None), "--platform", platform, "--out", tmp_path / "data") == 0
    np.testing.assert_equal(Annotations.read(tmp_path / "data" / "annotations.csv").seconds, [31.0, np.nan])
    assert Annotations.read(export(None, None), platform=platform).seconds is None


def test_ids_that_a_reader_would_take_for_one_are_not_written(tmp_path, capsys):
    rows = [{"id": task, "text": "x", "label": ["a"], "username": "ann"} for task in ("2", " 2")]
    (tmp_path / "ann.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert (
        cli.main(["convert", str(tmp_path / "ann.jsonl"), "--platform", "doccano", "--out", str(tmp_path / "out")]) == 3
    )
    assert "' 2' and '2' would be read as one name. Rename one." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
