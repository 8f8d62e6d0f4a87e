"""Tables that scripts write into the guide to aggregation: what the results render to, and that the guide has it."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"


@pytest.fixture(scope="module")
def scripts():
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in ("against_votes", "interval_coverage")}
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("name", ["against_votes", "interval_coverage"])
def test_the_guide_has_the_table_of_the_results(scripts, name):
    script = scripts[name]
    table = script.table(json.loads(script.RESULTS.read_text(encoding="utf-8")))
    assert f"{script.START}\n\n{table}\n\n{script.END}" in script.PAGE.read_text(encoding="utf-8")


def test_a_method_is_really_below_where_the_whole_interval_is(scripts, monkeypatch):
    script = scripts["against_votes"]
    monkeypatch.setattr(script, "METHODS", ("robust",))
    stack = {"python": "3", "numpy": "2", "keras": "3", "backend": "tensorflow", "tensorflow": "2"}

    def row(value, low, high):
        return {"runs": [{"robust": value, "robust, low": low, "robust, high": high}], "stack": stack}

    saved = {
        "whole": {"a": row(-0.02, -0.03, -0.011), "b": row(-0.02, -0.05, 0.01), "c": row(0.01, 0.0, 0.02)},
        "thinned": {"d, 2": row(0.1, 0.0, 0.2)},
        "grid": {"2 classes": row(0.0, -0.1, 0.1)},
    }
    found = script.table(saved)
    assert "| `robust` | -0.0100 | -0.020 | 2 | 1 | +0.1000 | +0.100 | 0 | 0 | +0.0000 | +0.000 | 0 | 0 |" in found
    assert "below, in points: a: -2.0 [-3.0, -1.1]; b: -2.0 [-5.0, +1.0]." in found


def test_two_draws_of_a_crowd_are_compared_task_by_task(scripts, monkeypatch):
    """A method that is majority vote is nowhere different; the interval of another holds its difference."""
    from crowdzoo.testing.aggregators import simulated_crowd

    script = scripts["against_votes"]
    monkeypatch.setattr(script, "METHODS", ("majority-vote", "dawid-skene"))
    crowd, truth = simulated_crowd(120, seed=1)
    draws = [(crowd.restrict(redundancy=2, seed=seed), truth) for seed in range(2)]
    row = script.compared(draws, cell="two")
    assert row["cell"] == "two"
    assert row["majority-vote, low"] == row["majority-vote, high"] == 0
    gains = [
        script.create("dawid-skene").fit(one).expected_accuracy(truth)
        - script.create("majority-vote").fit(one).expected_accuracy(truth)
        for one, _ in draws
    ]
    assert row["dawid-skene"] == pytest.approx(np.mean(gains), abs=1e-5)
    assert row["dawid-skene, low"] <= row["dawid-skene"] <= row["dawid-skene, high"]
