"""Writes small files of every stored format with this release, for the tests of later ones.

python tests/formats/write_formats.py        # into tests/formats/<major>.<minor>, which must not be there yet
"""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

import crowdzoo
from crowdzoo import Annotations
from crowdzoo.aggregation import BradleyTerry, DawidSkene, RatingEM, SpanMajorityVote
from crowdzoo.quality import quality_report
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.report.page import report_page
from crowdzoo.sequences import read_conll, write_conll, write_spans

HERE = Path(__file__).resolve().parent
TASKS = ["a", "a", "a", "b", "b", "b", "ç", "ç", "ç"]
PEOPLE = ["ann", "bob", "eve"] * 3
LABELS = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "🐈", "cat"]
RATINGS = [1.0, 1.5, 3.0, 2.0, 2.5, 4.0, 0.5, 1.0, 2.5]
LEFT, RIGHT = ["a", "b", "ç"] * 3, ["b", "ç", "a"] * 3
SIDES = ["left", "left", "right", "right", "left", "right", "left", "left", "equal"]
CONLL = "token ann bob\nAnna B-PER O\nin O O\nParis B-LOC B-LOC\n"
GOLD = "Anna B-PER\nin O\nParis B-LOC\n"


def main() -> None:
    """Writes the folder of this release."""
    folder = HERE / ".".join(crowdzoo.__version__.split(".")[:2])
    if folder.exists():
        sys.exit(f"{folder} is there already: files that a release wrote are not written again.")
    folder.mkdir()
    try:
        write(folder)
    except BaseException:
        shutil.rmtree(folder)
        raise


def write(folder: Path) -> None:
    """One file or folder of each format."""
    warnings.simplefilter("ignore")
    classes = Annotations.from_frame({"task": TASKS, "annotator": PEOPLE, "label": LABELS})
    ratings = Annotations.from_frame({"task": TASKS, "annotator": PEOPLE, "label": RATINGS}, kind="regression")
    sides = {"left": LEFT, "right": RIGHT, "annotator": sorted(PEOPLE), "label": SIDES}
    preferences = Annotations.from_frame(sides, kind="preference")
    for each in (classes, ratings, preferences):
        each.to_parquet(folder / f"annotations-{each.kind}.parquet")
    write_annotations(classes, folder / "annotations.csv")
    aggregation = DawidSkene().fit(classes)
    aggregation.to_parquet(folder / "aggregation-classification")
    RatingEM(max_iter=20).fit(ratings).to_parquet(folder / "aggregation-regression")
    BradleyTerry().fit(preferences).to_parquet(folder / "aggregation-preference")
    quality_report(classes).write(folder / "quality", "csv")
    report_page(classes, aggregation).write(folder / "report.html")
    (folder / "report.html").unlink()  # a page is looked at, and not read again
    _sentences(folder)
    _model(folder)
    from crowdzoo.records.example_files import write_dataset_info

    names = {name: getattr(classes, name).tolist() for name in ("classes", "annotators")}
    write_dataset_info(str(folder), {"kind": "classification", **names, "num_tasks": {"train": 2, "eval": 1}})


def _sentences(folder: Path) -> None:
    given, truth = folder / "given.conll", folder / "truth.conll"
    given.write_text(CONLL, encoding="utf-8")
    truth.write_text(GOLD, encoding="utf-8")
    sentences = read_conll(given, gold=truth, header=True)
    given.unlink()
    truth.unlink()
    write_spans(sentences, folder / "spans.jsonl")
    write_conll(sentences, folder / "sentences.conll", gold=folder / "sentences.gold.conll", header=True)
    SpanMajorityVote().fit(sentences.annotations).to_parquet(folder / "aggregation-sequence")


def _model(folder: Path) -> None:
    """A trained model with its names, its card and its warm-up requests, by the commands that users give."""
    rng = np.random.default_rng(0)
    rows = [f"{task},{','.join(f'{number:.3f}' for number in rng.normal(size=2))}" for task in ("a", "b", "ç")]
    (folder / "instances.csv").write_text("task,f0,f1\n" + "\n".join(rows) + "\n", encoding="utf-8")
    run = [sys.executable, "-m", "crowdzoo"]
    train = ["train", "annotations.csv", "instances.csv", "--out", "model.keras", "--epochs", "1", "--hidden", "2"]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    for command in (train, ["export", "model.keras", "served"]):
        subprocess.run([*run, *command], cwd=folder, check=True, env=environment, stdout=subprocess.DEVNULL)
    for file in (folder / "served" / "1" / "assets.extra").iterdir():
        file.rename(folder / file.name)
    shutil.rmtree(folder / "served")  # the rest is TensorFlow's own format


if __name__ == "__main__":
    main()
