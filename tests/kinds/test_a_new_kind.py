"""CONTRIBUTING.md's section on a new kind of label is done, in a copy of the package: a line, a folder, its methods."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

METHODS = '''
"""VERDICT_METHODS: the algorithms for verdicts by name."""

from dataclasses import dataclass, replace
from typing import ClassVar

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.classes.majority_vote import MajorityVote


@dataclass(frozen=True)
class VerdictVote(Aggregator):
    kind: ClassVar[str] = "verdict"

    def fit(self, annotations):
        return MajorityVote().fit(replace(annotations, kind="classification"))


VERDICT_METHODS = {"verdict-vote": VerdictVote}
'''

KIND = '''
"""Verdicts: yes or no."""

from crowdzoo.kinds.classes.kind import Classification


class Verdicts(Classification):
    name = "verdict"
    counted = "verdicts"
    aggregation = "verdict-vote"
    metric = "right"
    streams = False

    def noted(self, result, crowd):
        return result

    def scores(self, truth, answers, **about):
        return {"right": super().scores(truth, answers)["accuracy"]}


KIND = Verdicts()
'''

PAGE = """
from crowdzoo.kinds.classes.page import ClassPage


class VerdictPage(ClassPage):
    own_values = ("yes",)


PAGE = VerdictPage
"""

PART = "def {name}(*given, **more):\n    return {part!r}, *given\n"

STORY = """
import numpy as np
import crowdzoo.commands.main as cli
from crowdzoo.commands.options import KINDS
from crowdzoo.kinds import aggregated, kind_of, page, records, scores, training
from crowdzoo.report.report_page import VALUES

kind = KINDS["verdict"]
assert kind_of("verdict") is kind and kind.title == "verdicts"
assert kind.bases[0] == "feature-classifier" and "ccem" in kind.methods()
crowd = kind.read("a.csv")
assert (crowd.kind, len(crowd), dict(kind.size_rows(crowd))["verdicts"]) == ("verdict", 6, "6")
result = kind.create_aggregator().fit(crowd)
assert result.classes[result.labels].tolist() == ["yes", "no"]
answers = {"probabilities": np.array([[0.9, 0.1], [0.8, 0.2]])}
assert kind.scores(np.array([0, 1]), answers) == {"right": 0.5}
assert "yes" in VALUES["verdict"]
assert records.read_labelled("verdict", {}, "rejects", "folder") == ("records", {}, "rejects", "folder")
assert aggregated.aggregated("verdict", 1, 2, 3, 4) == ("aggregated", 1, 2, 3, 4)
assert scores.model_scores("verdict", 1, 2, 3, 4, 5) == ("scores", 1, 2, 3, 4, 5)
assert training.train_from_files("verdict", 1, 2, 3, None) == ("training", 1, 2, 3, None)
assert cli.main(["aggregate", "a.csv", "--task", "verdict", "--out", "labels.csv"]) == 0
"""


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name} has {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.slow
def test_a_new_kind_of_label_is_a_line_a_folder_and_its_methods(tmp_path):
    package = tmp_path / "crowdzoo"
    shutil.copytree(ROOT / "crowdzoo", package, ignore=shutil.ignore_patterns("__pycache__"))
    change(
        package / "data" / "label_kinds.py",
        "(CLASSIFICATION, SEQUENCE, REGRESSION, PREFERENCE)",
        '(CLASSIFICATION, SEQUENCE, REGRESSION, PREFERENCE, LabelKind("verdict", "verdicts", "Aggregation"))',
    )
    folder = package / "kinds" / "verdicts"
    folder.mkdir()
    parts = {"records": "read_labelled", "aggregated": "aggregated", "scores": "model_scores"}
    for part, name in {**parts, "training": "train_from_files"}.items():
        (folder / f"{part}.py").write_text(PART.format(part=part, name=name))
    (folder / "__init__.py").touch()
    (folder / "kind.py").write_text(KIND)
    (folder / "page.py").write_text(PAGE)
    own = package / "aggregation" / "verdicts"
    own.mkdir()
    (own / "__init__.py").touch()
    (own / "methods.py").write_text(METHODS)
    registry = package / "aggregation" / "registry.py"
    change(registry, "SEQUENCE_METHODS, PREFERENCE_METHODS)", "SEQUENCE_METHODS, PREFERENCE_METHODS, VERDICT_METHODS)")
    change(
        registry,
        "\nfrom crowdzoo.checks",
        "\nfrom crowdzoo.aggregation.verdicts.methods import VERDICT_METHODS\nfrom crowdzoo.checks",
    )
    rows = ["1,a,yes", "1,b,yes", "1,c,no", "2,a,no", "2,b,no", "2,c,yes"]
    (tmp_path / "a.csv").write_text("\n".join(["task,annotator,label", *rows]) + "\n")
    words = [sys.executable, "-W", "ignore", "-c", STORY]
    ended = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "verdicts" in ended.stdout
    labels = [line.split(",")[:2] for line in (tmp_path / "labels.csv").read_text().replace('"', "").splitlines()[1:]]
    assert labels == [["1", "yes"], ["2", "no"]]
