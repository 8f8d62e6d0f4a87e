"""Exports as public bug reports have them, read with one command; see the README of CROWDZOO_DATA/reports."""

import json
import os
import re
from pathlib import Path

import pytest
from csv_files import read_csv

from crowdzoo import Annotations
from crowdzoo.commands.main import main
from crowdzoo.errors import DataError
from crowdzoo.reading.sentences.sentence_files import read_sentences

pytestmark = [
    pytest.mark.skipif("CROWDZOO_DATA" not in os.environ, reason="CROWDZOO_DATA names no folder of data"),
    pytest.mark.filterwarnings("default"),
]


def report(name):
    return Path(os.environ.get("CROWDZOO_DATA", "."), "reports", name)


def aggregated(name, out, options):
    """Task -> label of `crowdzoo aggregate`."""
    words = ["aggregate", str(report(name)), *options.split(), "--method", "majority-vote", "--out", str(out)]
    assert main(words) == 0
    return {row["task"]: row["label"] for row in read_csv(out)}


def test_f7_the_document_as_it_was_imported_is_no_annotator(tmp_path, capsys):
    crowd = read_sentences(report("F7") / "annotation", platform="webanno")
    assert crowd.annotations.annotators.tolist() == ["ann", "bob"]
    words = ["quality", str(report("F7") / "annotation"), "--platform", "webanno", "--kind", "sequence"]
    assert main([*words, "--out", str(tmp_path / "o")]) == 0
    assert re.search(r"agreement beyond chance on tags +1\.000 ", capsys.readouterr().out)


def test_f8_frames_of_one_name_in_two_tasks_are_two_images():
    crowd = Annotations.read(report("F8"), platform="cvat", kind="region")
    assert crowd.tasks.tolist() == ["220/frame_000000.png", "221/frame_000000.png"]
    assert crowd.redundancy.tolist() == [1, 1]


def test_f9_an_attribute_of_a_tag_is_chosen():
    crowd = Annotations.read(report("F9"), platform="cvat", field="fruit.state")
    said = zip(crowd.annotators[crowd.annotator_ids], crowd.classes[crowd.labels], strict=True)
    assert dict(said) == {"ann": "ripe", "bob": "raw", "cid": "ripe"}


def test_f15_rankings_are_read_as_preferences(tmp_path):
    with pytest.raises(DataError, match=r"the answers are rankings\. Read them with kind='preference'"):
        Annotations.read(report("F15") / "rank.jsonl", platform="argilla")
    words = ["aggregate", str(report("F15") / "rank.jsonl"), "--platform", "argilla", "--kind", "preference"]
    named = ["--columns", "task=value", "--on-duplicate", "all"]
    assert main([*words, *named, "--out", str(tmp_path / "o.csv")]) == 0
    ranks = {row["task"]: row["rank"] for row in read_csv(tmp_path / "o.csv")}
    assert ranks == {"b": "1", "a": "2", "c": "3"}  # bac, bca, abc, bac


def test_f18_a_table_of_argilla_1_is_read(rows_of):
    assert rows_of(report("F18") / "old.jsonl", "argilla") == [
        ("e0", "u1", "good"), ("e0", "u2", "bad"), ("e1", "u1", "bad"), ("e1", "u2", "bad")
    ]  # fmt: skip


def test_f19_the_assignee_of_a_job_is_the_annotator(tmp_path, rows_of):
    assert sorted(rows_of(report("F19"), "cvat")) == [
        ("a.jpg", "dora", "cat"), ("a.jpg", "emil", "cat"), ("b.jpg", "dora", "dog"), ("b.jpg", "emil", "dog")
    ]  # fmt: skip
    assert aggregated("F19", tmp_path / "o.csv", "--platform cvat") == {"a.jpg": "cat", "b.jpg": "dog"}


def test_f11_a_written_coco_file_has_the_ids_of_the_annotators_files(tmp_path):
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    words = ["--platform", "coco", "--kind", "region", "--out", str(tmp_path / "o")]
    assert main(["aggregate", str(report("F11") / "crowd"), *words]) == 0
    found = json.loads((tmp_path / "o" / "regions.json").read_text())
    gold = json.loads((report("F11") / "gold.json").read_text())
    for part, name in (("images", "file_name"), ("categories", "name")):
        assert {each["id"]: each[name] for each in found[part]} == {each["id"]: each[name] for each in gold[part]}
    true = coco.COCO(str(report("F11") / "gold.json"))
    score = cocoeval.COCOeval(true, true.loadRes(found["annotations"]), "bbox")
    for step in (score.evaluate, score.accumulate, score.summarize):
        step()
    assert score.stats[0] == pytest.approx(1)


@pytest.mark.parametrize("path", ["out.manifest", "annotations/worker-response"])
def test_f12_answers_of_sagemaker_are_read(path):
    crowd = Annotations.read(report("F12") / path, platform="sagemaker")
    tasks, workers = crowd.tasks[crowd.task_ids].tolist(), crowd.annotators[crowd.annotator_ids].tolist()
    names = ["s3://b/img1.jpg", "s3://b/img2.jpg"] if path == "out.manifest" else [0, 1]
    assert tasks == [names[0]] * 3 + [names[1]] * 3
    assert workers == ["private.eu.0", "private.eu.1", "private.eu.2"] * 2
    assert crowd.classes[crowd.labels].tolist() == ["cat", "cat", "dog", "dog", "dog", "dog"]
    assert crowd.seconds is None if path == "out.manifest" else crowd.seconds.tolist() == [9.1] * 6
