"""docs/preferences.md: its examples run, and its figures are those of the saved results."""

import csv
import json
import re
import shlex
import statistics
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from crowdzoo.aggregation import PREFERENCE_METHODS
from crowdzoo.commands.main import main
from crowdzoo.export import load_and_predict
from crowdzoo.kinds import kind_of

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "preferences.md").read_text(encoding="utf-8")
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "preferences.json").read_text(encoding="utf-8"))


def mean(row, figure):
    return statistics.mean(run[figure] for run in row["runs"])


@pytest.mark.slow
def test_the_examples_run_and_say_what_the_text_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pairs.csv").write_text("task,topic,left,right\np0,0,a,b\np1,0,c,b\n")
    Path("annotations.csv").write_text("task,annotator,label\np1,x,left\np0,x,equal\np1,y,right\n")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
        exec(block, names)
    with open("judgments.csv") as file:
        rows = [tuple(row) for row in csv.reader(file)]
    assert rows[0] == ("annotator", "label", "left", "right")
    assert set(rows[1:]) == {("x", "left", "c", "b"), ("x", "equal", "a", "b"), ("y", "right", "c", "b")}
    found, quality, x = names["found"], names["quality"], names["x"]
    assert (tmp_path / "texts" / "pairs.parquet").exists()
    assert spearmanr(found.scores, quality).statistic > 0.95
    assert found.reliability.argmin() == 4
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


@pytest.mark.parametrize("method", PREFERENCE_METHODS)
def test_every_method_has_a_row(method):
    assert re.search(rf"^\| `{method}` \| ", GUIDE, flags=re.M)


def test_the_default_is_the_method_that_the_protocol_chose():
    rows = RESULTS["held-out, even topics"]
    best = max(PREFERENCE_METHODS, key=lambda row: mean(rows[row], "log-likelihood"))
    assert best == kind_of("preference").aggregation


def test_the_table_of_held_out_judgments_is_that_of_the_results(rows_of):
    rows, saved = rows_of(GUIDE, "held-out"), RESULTS["held-out, odd topics"]
    assert list(rows) == list(saved)
    for row, cells in rows.items():
        for cell, figure in zip(cells, ("log-likelihood", "share right"), strict=True):
            assert float(cell) == pytest.approx(mean(saved[row], figure), abs=0.00051), (row, figure)


def test_the_agreement_with_the_published_labels_is_that_of_the_results():
    saved = {row: mean(each, "agreement") for row, each in RESULTS["consensus"].items()}
    votes, low, high = re.search(r"agrees on (\.\d+) of the\npairs, the methods on (\.\d+) to (\.\d+)", GUIDE).groups()
    assert float(votes) == pytest.approx(saved.pop("votes"), abs=0.00051)
    assert float(low) == pytest.approx(min(saved.values()), abs=0.00051)
    assert float(high) == pytest.approx(max(saved.values()), abs=0.00051)


def test_the_table_of_new_topics_is_that_of_the_results(rows_of):
    rows, saved = rows_of(GUIDE, "cross-topic"), RESULTS["cross-topic"]
    assert list(rows) == list(saved)
    for row, cells in rows.items():
        for cell, figure in zip(cells, ("accuracy", "rho", "log-likelihood"), strict=False):  # length has no likelihood
            assert float(cell) == pytest.approx(mean(saved[row], figure), abs=0.00051), (row, figure)


def test_the_differences_within_topics_are_those_of_the_results(rows_of):
    saved = {row: {run["topic"]: run for run in each["runs"]} for row, each in RESULTS["cross-topic"].items()}
    for row, cells in rows_of(GUIDE, "paired").items():
        one, other = (saved[name] for name in row.split(" - "))
        for cell, figure in zip(cells, ("accuracy", "log-likelihood"), strict=True):
            gaps = [one[topic][figure] - other[topic][figure] for topic in one]
            mean_gap, error = map(float, cell.split(" ± "))
            assert mean_gap == pytest.approx(statistics.mean(gaps), abs=0.00051), (row, figure)
            assert error == pytest.approx(statistics.stdev(gaps) / len(gaps) ** 0.5, abs=0.00051), (row, figure)


def test_an_annotator_gave_as_many_judgments_as_the_text_says():
    judgments, annotators = re.search(r"([\d,]+) judgments by\s([\d,]+) annotators", GUIDE).groups()
    mean_number = int(judgments.replace(",", "")) / int(annotators.replace(",", ""))
    assert int(re.search(r"An annotator gave (\d+) judgments in the mean", GUIDE)[1]) == round(mean_number)
