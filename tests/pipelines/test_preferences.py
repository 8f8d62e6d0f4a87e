"""Task preference: the configuration, and a whole run from comparisons of texts to a served reward model."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest

from crowdzoo.commands.main import main
from crowdzoo.errors import ConfigError
from crowdzoo.pipelines.config import load_config

CONFIG = """\
name: essays
task: preference
data: {annotations: judgments.csv, instances: essays.csv, gold: known.csv}
model: {form: bag-of-words, hidden: [8], dropout: 0.0}
training: {epochs: 30, batch_size: 16, learning_rate: 0.05}
evaluation: {minimum_pair_accuracy: 0.6, tolerance: 0.1}
output: {root: out}
"""
WORDS = ("awful", "dull", "plain", "fine", "great")


def write_inputs(folder):
    """Sixty texts of four words, each worth 0 to 4, three annotators, the last of whom answers at random."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 5, size=(60, 4))
    worth = codes.mean(axis=1)
    pairs = [(left, (left + step) % 60) for left in range(60) for step in (1, 4, 10)]
    rows = []
    for left, right in pairs:
        better = "left" if worth[left] > worth[right] else "right" if worth[left] < worth[right] else "equal"
        for code in range(3):
            said = better if code < 2 else ("left", "right", "equal")[generator.integers(3)]
            rows.append((f"t{left}", f"t{right}", f"a{code}", said))
    texts = [" ".join(WORDS[code] for code in row) for row in codes]
    splits = ["eval" if task % 4 == 3 else "train" for task in range(60)]
    tables = {
        "judgments.csv": [("left", "right", "annotator", "label"), *rows],
        "essays.csv": [("task", "text", "split"), *[(f"t{row}", texts[row], splits[row]) for row in range(60)]],
        "known.csv": [("left", "right", "gold"), *[row[:2] + row[3:] for row in rows if row[2] == "a0"]],
    }
    for name, table in tables.items():
        with open(folder / name, "w", newline="") as file:
            csv.writer(file).writerows(table)
    (folder / "essays.yaml").write_text(CONFIG)
    judgments = [(int(left[1:]), int(right[1:]), who, said) for left, right, who, said in rows]
    return SimpleNamespace(path=folder, texts=texts, worth=worth, pairs=pairs, judgments=judgments)


@pytest.fixture
def inputs(tmp_path):
    return write_inputs(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("aggregation.method", "dawid-skene", "aggregation: unknown aggregation method 'dawid-skene': choose one of "
         "bradley-terry"),
        ("method.name", "deep-em", "method: method 'deep-em' is not for task preference"),
        ("data.low", 1, "data.low is not for base text-regressor, where data has dataset, annotations, "
         "instances, gold, classes, "),
        ("data.platform", "mturk", "data.platform is not for"),
        ("evaluation.minimum_accuracy", 0.5, "evaluation.minimum_accuracy is not for"),
        ("data.dataset", "labelme", "'dataset' takes the place of 'annotations' and 'instances'"),
    ],
)  # fmt: skip
def test_what_is_not_for_preferences_is_said(inputs, key, value, message):
    with pytest.raises(ConfigError) as caught:
        load_config(inputs.path / "essays.yaml", {key: value})
    assert message in str(caught.value)


def test_the_check_reads_preferences_instances_and_gold(inputs, capsys, monkeypatch):
    monkeypatch.chdir(inputs.path)
    assert main(["run", "essays.yaml", "--check"]) == 0
    assert "fine, read 540 preferences, 60 instances" in capsys.readouterr().out
    with open("known.csv", "a") as file:
        file.write("t1,zed,left\n")
    assert main(["run", "essays.yaml", "--check"]) == 3
    assert "known.csv, row 182, column 'right': 'zed' is none of the 60 tasks" in capsys.readouterr().err
    assert not (inputs.path / "out").exists()
