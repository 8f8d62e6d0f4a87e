"""CONTRIBUTING.md tells the truth: what it says of a new method, layer, kind and so on is done, in a copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

AGGREGATOR = '''
"""FirstVote: the label that came first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdzoo.aggregation.base import Aggregator, check_classification
from crowdzoo.aggregation.classes.majority_vote import MajorityVote
from crowdzoo.checks.constraints import SEED, setting


@dataclass(frozen=True)
class FirstVote(Aggregator):
    """The label that came first.

    Source:
        Nobody.

    Needs:
        Nothing.
    """

    seed: int = setting(0, SEED)

    def fit(self, annotations):
        check_classification(annotations, "FirstVote")
        return MajorityVote(seed=self.seed).fit(annotations.select_rows(
            np.unique(annotations.task_ids, return_index=True)[1]
        ))
'''

LAYER = '''
"""Toy: trace regularization under another name."""

import keras

from crowdzoo.layers.trace_regularization import TraceRegularization


@keras.saving.register_keras_serializable(package="crowdzoo")
class ToyLayer(TraceRegularization):
    """Trace regularization under another name.

    Source:
        Nobody.

    Needs:
        Nothing.
    """
'''

PLATFORM = '''
"""Toy: JSON lines of `{"item": ..., "by": ..., "says": ...}`."""

from crowdzoo.reading.platforms.json_records import json_records
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import Record


def _read(entry, question, spans, file_annotator):
    record = Record(entry["item"], {})
    record.add(entry["by"], [entry[question]], "")
    return record


TOY = Platform(
    name="toy", title="Toy", suffixes=(".jsonl",), menu="Choose Export.", records=json_records,
    is_own=lambda entry: "says" in entry, questions=lambda entry: [("says", "class")], read=_read,
)
'''

DATA_SET = '''
"""A data set of three tasks."""

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets.crowd_dataset import CrowdDataset


def load_toy():
    annotations = Annotations.from_arrays([0, 1, 2], ["a", "b", "a"], ["x", "y", "x"])
    return CrowdDataset(
        "toy", annotations, np.eye(3, dtype="float32"), np.array([0, 1, 0]), np.array(["train", "train", "eval"]),
        licence="CC0", citation="nobody", description="three tasks",
    )
'''

KIND_METHOD = '''
"""VerdictVote: a majority vote on verdicts."""

from dataclasses import dataclass, replace
from typing import ClassVar

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.aggregation.classes.majority_vote import MajorityVote


@dataclass(frozen=True)
class VerdictVote(Aggregator):
    kind: ClassVar[str] = "verdict"

    def fit(self, annotations):
        return MajorityVote().fit(replace(annotations, kind="classification"))
'''

KIND = '''
"""Verdicts: yes or no."""

from dataclasses import replace

from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.kinds.classes.kind import CLASSES, ClassAggregating, ClassReading, ClassTraining
from crowdzoo.kinds.classes.scoring import ClassScoring
from crowdzoo.kinds.kind import loaded, made


class VerdictScoring(ClassScoring):
    metric = metric_title = "right"

    def score(self, gold, answers):
        return {"right": super().score(gold, answers)["accuracy"]}


class VerdictAggregating(ClassAggregating):
    def add_notes(self, result, crowd, gold=None):
        return result


VERDICT, SCORING = LABEL_KINDS["verdict"], VerdictScoring()
READING, AGGREGATING = ClassReading(VERDICT, "verdicts"), VerdictAggregating(VERDICT, "verdict-vote")
VERDICTS = replace(
    CLASSES,
    labels=VERDICT,
    reading=READING,
    aggregation=AGGREGATING,
    scoring=SCORING,
    training=ClassTraining(VERDICT, READING, AGGREGATING, SCORING),
    load_page=loaded("crowdzoo.kinds.verdicts.page:VerdictPage"),
    load_records=made("crowdzoo.kinds.verdicts.records:VerdictRecords"),
)
'''

KIND_PAGE = """
from crowdzoo.kinds.classes.page import ClassPage
from crowdzoo.kinds.page_parts import read_columns


class VerdictPage(ClassPage):
    kind = "verdict"
    own_columns = read_columns(__package__)
    own_values = ("yes",)
"""

KIND_RECORDS = """
from crowdzoo.kinds.classes.records import ClassRecords


class VerdictRecords(ClassRecords):
    def read(self, *given):
        return "read", *given
"""

KIND_STORY = """
import numpy as np
import crowdzoo.commands.main as cli
from crowdzoo.commands.options import KINDS
from crowdzoo.kinds import kind_of
from crowdzoo.report.page import VALUES

kind = KINDS["verdict"]
assert kind_of("verdict") is kind and kind.title == "verdicts"
assert kind.training.bases[0] == "feature-classifier" and "ccem" in kind.training.methods()
crowd = kind.reading.read("a.csv")
assert (crowd.kind, len(crowd), dict(kind.reading.size_rows(crowd))["verdicts"]) == ("verdict", 6, "6")
result = kind.aggregation.create().fit(crowd)
assert result.classes[result.labels].tolist() == ["yes", "no"]
answers = np.array([[0.9, 0.1], [0.8, 0.2]])
assert kind.scoring.score(np.array([0, 1]), answers) == {"right": 0.5}
assert "yes" in VALUES["verdict"]
assert [column.title for column in kind.page.own_columns["facts"]] == ["verdicts"]
assert kind.records.read(1, 2, 3) == ("read", 1, 2, 3)
assert cli.main(["aggregate", "a.csv", "--kind", "verdict", "--out", "labels.csv"]) == 0
"""


@pytest.fixture
def copy(tmp_path):
    """A folder with a copy of the package to write into."""
    shutil.copytree(ROOT / "crowdzoo", tmp_path / "crowdzoo", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def add(path, text):
    path.write_text(text.lstrip(), encoding="utf-8")


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name} has {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")


def add_after(path, old, *new):
    change(path, old, "\n".join([old, *new]))


def labels_of(folder):
    """Tasks and labels that a command wrote."""
    return [line.split(",")[:2] for line in (folder / "labels.csv").read_text().replace('"', "").splitlines()[1:]]


def run(folder, code):
    words = [sys.executable, "-W", "ignore", "-c", code]
    ended = subprocess.run(
        words, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


@pytest.mark.slow
def test_a_new_aggregator_is_a_file_and_two_lines(copy):
    package = copy / "crowdzoo" / "aggregation"
    add(package / "classes" / "first_vote.py", AGGREGATOR)
    add_after(package / "named.py", '    "wawa": Wawa,', '    "first-vote": FirstVote,')
    classes = "crowdzoo.aggregation.classes"
    add_after(package / "named.py", f"from {classes}.wawa import Wawa", f"from {classes}.first_vote import FirstVote")
    add_after(package / "__init__.py", f'"{classes}.wawa": "Wawa",', f'    "{classes}.first_vote": "FirstVote",')
    (copy / "a.csv").write_text("task,annotator,label\n1,a,x\n1,b,y\n2,a,y\n2,c,y\n")
    said = run(
        copy,
        "import crowdzoo, crowdzoo.commands.main as cli\n"
        "from crowdzoo.aggregation import FirstVote, create\n"
        "assert crowdzoo.__file__.startswith(__import__('os').getcwd())\n"
        "assert isinstance(create('first-vote', seed=3), FirstVote)\n"
        "assert cli.main(['aggregate', 'a.csv', '--method', 'first-vote', '--out', 'labels.csv']) == 0\n"
        "assert cli.main(['methods']) == 0",
    )
    assert "first-vote" in said
    assert labels_of(copy) == [["1", "x"], ["2", "y"]]


@pytest.mark.slow
def test_a_new_layer_is_a_file_and_two_lines_and_its_saved_models_load(copy):
    package = copy / "crowdzoo"
    add(package / "layers" / "toy_layer.py", LAYER)
    add_after(package / "training" / "methods.py", '    "waum": "WAUM",', '    "toy": "ToyLayer",')
    layers = '    "crowdzoo.layers.'
    add_after(package / "saving.py", f'{layers}waum": "WAUM",', f'{layers}toy_layer": "ToyLayer",')
    run(
        copy,
        "import numpy as np, crowdzoo\n"
        "from crowdzoo.models import CrowdModel, TrainingSettings, train\n"
        "x = np.random.default_rng(0).normal(size=(30, 4)).astype('float32')\n"
        "votes = crowdzoo.Annotations.from_dense(np.random.default_rng(1).integers(0, 3, (30, 5)))\n"
        "model, _ = train(TrainingSettings(method='toy', epochs=1), x, annotations=votes)\n"
        "model.save('toy.keras'); np.save('p.npy', model.predict(x, verbose=0)); np.save('x.npy', x)",
    )
    run(
        copy,
        "import keras, crowdzoo, numpy as np\n"
        "model = keras.saving.load_model('toy.keras')\n"
        "assert type(model.crowd).__name__ == 'ToyLayer'\n"
        "assert np.abs(model.predict(np.load('x.npy'), verbose=0) - np.load('p.npy')).max() == 0",
    )


@pytest.mark.slow
def test_a_new_data_set_is_a_file_and_a_line(copy):
    package = copy / "crowdzoo" / "datasets"
    add(package / "toy.py", DATA_SET)
    add_after(package / "__init__.py", "import write_files", "from crowdzoo.datasets.toy import load_toy")
    add_after(package / "__init__.py", "_OWN = {", '    "toy": ("classification", VECTORS, load_toy),')
    said = run(
        copy,
        "import crowdzoo.commands.main as cli\n"
        "from crowdzoo import datasets\n"
        "assert datasets.load('toy').majority_accuracy() == 1\n"
        "assert cli.main(['datasets']) == 0",
    )
    assert "toy" in said


@pytest.mark.slow
def test_a_new_platform_is_a_file_and_a_line(copy):
    package = copy / "crowdzoo" / "reading" / "platforms"
    add(package / "toy.py", PLATFORM)
    change(package / "export.py", "TOLOKA, PRODIGY", "TOLOKA, TOY, PRODIGY")
    platforms = "from crowdzoo.reading.platforms"
    add_after(package / "export.py", f"{platforms}.toloka import TOLOKA", f"{platforms}.toy import TOY")
    (copy / "toy.jsonl").write_text('{"item": "1", "by": "a", "says": "x"}\n{"item": "1", "by": "b", "says": "y"}\n')
    run(
        copy,
        "import crowdzoo\n"
        "found = crowdzoo.read_annotations('toy.jsonl', platform='toy')\n"
        "assert (len(found), found.classes.tolist()) == (2, ['x', 'y'])",
    )


@pytest.mark.slow
def test_a_new_kind_of_label_is_a_line_a_folder_and_its_methods(copy):
    package = copy / "crowdzoo"
    verdict = 'LabelKind("verdict", "verdicts", "Aggregation")'
    change(package / "data" / "label_kinds.py", "FREE_TEXT, REGION)", f"FREE_TEXT, REGION, {verdict})")
    folder, own = package / "kinds" / "verdicts", package / "aggregation" / "verdicts"
    for made in (folder, own):
        made.mkdir()
        (made / "__init__.py").touch()
    add(folder / "kind.py", KIND)
    add(folder / "records.py", KIND_RECORDS)
    add(folder / "page.py", KIND_PAGE)
    add(folder / "columns.csv", "table,key,title,form,bar,scale,help\nfacts,annotations,verdicts,count,,,\n")
    add(own / "verdict_vote.py", KIND_METHOD)
    kinds = package / "kinds" / "__init__.py"
    change(kinds, "REGIONS, SEVERAL_LABELS)", "REGIONS, SEVERAL_LABELS, VERDICTS)")
    add_after(kinds, "import SEVERAL_LABELS", "from crowdzoo.kinds.verdicts.kind import VERDICTS")
    registry = package / "aggregation" / "registry.py"
    change(registry, "TEXT_METHODS, REGION_METHODS,", 'TEXT_METHODS, REGION_METHODS, {"verdict-vote": VerdictVote},')
    vote = "\nfrom crowdzoo.aggregation.verdicts.verdict_vote import VerdictVote"
    change(registry, "\nfrom crowdzoo.checks", f"{vote}\nfrom crowdzoo.checks")
    rows = ["1,a,yes", "1,b,yes", "1,c,no", "2,a,no", "2,b,no", "2,c,yes"]
    (copy / "a.csv").write_text("\n".join(["task,annotator,label", *rows]) + "\n")
    assert "verdicts" in run(copy, KIND_STORY)
    assert labels_of(copy) == [["1", "yes"], ["2", "no"]]
