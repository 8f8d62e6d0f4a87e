"""docs/preferences.md: its examples and its commands run."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from crowdzoo.commands.main import main
from crowdzoo.export import load_and_predict

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "preferences.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_examples_run_and_say_what_the_text_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
        exec(block, names)
    found, quality, x = names["found"], names["quality"], names["x"]
    assert (tmp_path / "texts" / "pairs.parquet").exists()
    assert spearmanr(found.scores, quality).statistic > 0.95
    assert found.skills.argmin() == 4
    assert found.position_biases().argmax() == 5
    assert spearmanr(names["scorer"].predict(x, verbose=0)[:, 0], quality).statistic > 0.95
    assert names["model"].crowd.slopes.argmin() == 4
    served = load_and_predict(tmp_path / "served_pairs", {"left": x[:2], "right": x[2:4]}, signature="pairs")
    wanted = names["model"].predict({"left": x[:2], "right": x[2:4]}, verbose=0)
    np.testing.assert_allclose(served["probabilities"], wanted, rtol=1e-4)
    scores = load_and_predict(tmp_path / "served_pairs", x)["score"]
    np.testing.assert_allclose(scores, names["scorer"].predict(x, verbose=0)[:, 0], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdzoo.errors.DataWarning")
def test_the_commands_of_the_reward_model_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    good = rng.integers(0, 6, 40)
    texts = [" ".join(["fine"] * count + ["awful"] * (5 - count)) for count in good]
    pairs = [(a, (a + step) % 40) for a in range(40) for step in (1, 3, 7, 12)]
    known = ["equal" if good[a] == good[b] else ("left", "right")[int(good[a] < good[b])] for a, b in pairs]
    tables = {
        "judgments.csv": [("left", "right", "annotator", "label"),
                          *((*pair, who, label) for pair, label in zip(pairs, known, strict=True) for who in "ab")],
        "texts.csv": [("task", "text"), *enumerate(texts)],
        "known.csv": [("left", "right", "gold"), *((*pair, label) for pair, label in zip(pairs, known, strict=True))],
    }  # fmt: skip
    for name, rows in tables.items():
        with open(name, "w", newline="") as file:
            csv.writer(file).writerows(rows)
    commands = re.search(r"```sh\n(crowdzoo train .*?)```", GUIDE, flags=re.DOTALL)[1].splitlines()
    for line in commands:
        assert main(shlex.split(line, comments=True)[1:]) == 0, line
    with open("scores.csv") as file:
        found = [float(row["score"]) for row in csv.DictReader(file)]
    assert spearmanr(found, good).statistic > 0.9
