"""docs/preferences.md: its examples run, and its figures are those of the saved results."""

import json
import re
import statistics
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from crowdzoo.aggregation import PREFERENCE_METHODS
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
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
        exec(block, names)
    found, quality, x = names["found"], names["quality"], names["x"]
    assert (tmp_path / "texts" / "pairs.parquet").exists()
    assert spearmanr(found.scores, quality).statistic > 0.95
    assert found.reliability.argmin() == 4
    assert found.position_biases().argmax() == 5
    assert spearmanr(names["scorer"].predict(x, verbose=0)[:, 0], quality).statistic > 0.95
    assert names["model"].crowd.slopes.argmin() == 4
    served = load_and_predict(tmp_path / "served_pairs", {"left": x[:2], "right": x[2:4]})
    wanted = names["model"].predict({"left": x[:2], "right": x[2:4]}, verbose=0)
    np.testing.assert_allclose(served["probabilities"], wanted, rtol=1e-4)


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
