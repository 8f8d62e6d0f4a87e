"""docs/aggregation.md: its examples run, and the figures it leans on are those of the saved results."""

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from crowdzoo.aggregation import METHODS
from crowdzoo.commands import main as cli

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "aggregation.md").read_text(encoding="utf-8")
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "aggregation_quality.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
        exec(block, names)
    assert (tmp_path / "labels" / "tasks.parquet").exists()
    accuracy = names["result"].expected_accuracy(names["labelme"].gold)
    assert f"# {accuracy:.3f};" in GUIDE


def test_the_commands_parse():
    commands = re.findall(r"^crowdzoo ([^#\n]*)", GUIDE, flags=re.M)
    assert len(commands) == 7
    for command in commands:
        cli._parser().parse_args(command.split())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_row(method):
    assert re.search(rf"^\| `{method}` \| ", GUIDE, flags=re.M)


def test_the_table_of_few_annotations_is_that_of_the_results():
    fewer = RESULTS["thinned"]
    for method in ("majority-vote", "dawid-skene", "mace", "ibcc", "ebcc"):
        shares = [
            np.mean([fewer[name][r][method] for name in ("rte", "dog", "d_sentiment")]) for r in ("2", "3", "5", "10")
        ]
        row = re.search(rf"^\| `{method}` \| (\.\d+) \| (\.\d+) \| (\.\d+) \| (\.\d+) \|$", GUIDE, flags=re.M)
        np.testing.assert_allclose([float(cell) for cell in row.groups()], shares, atol=0.00051)


def test_the_tables_of_the_crowds_are_those_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    crowds = importlib.import_module("crowds")
    assert crowds.written(GUIDE, json.loads(crowds.RESULTS.read_text(encoding="utf-8"))) == GUIDE


def test_the_default_is_above_the_vote_by_families_left_out():
    """What the protocol of benchmarks/crowds.py asks of a default."""
    saved = json.loads((ROOT / "benchmarks" / "results" / "crowds.json").read_text(encoding="utf-8"))
    rows = [row["robust, families left out"] for row in saved.values()]
    assert len(rows) == 62
    assert np.mean([row["gain"] for row in rows]) > 0.015
    assert sum(row["high"] < -0.01 for row in rows) <= 4
    assert np.mean([row["off"] for row in rows]) < 0.12


def test_the_table_of_calibration_is_that_of_the_results():
    saved = json.loads((ROOT / "benchmarks" / "results" / "calibration.json").read_text(encoding="utf-8"))["llm-judges"]
    for row, found in saved.items():
        method, number = row.split(", ")
        names = ("accuracy", "raw", "judge", "trees", "gap", "ece", "covered")
        figures = [f"{np.mean([run[name] for run in found['runs']]):.3f}".lstrip("0") for name in names]
        assert f"| {number} | `{method}` | {' | '.join(figures)} |" in GUIDE


def test_the_table_of_memory_is_that_of_the_results():
    saved = json.loads((ROOT / "benchmarks" / "results" / "out_of_core.json").read_text(encoding="utf-8"))
    places = {"memory": "memory", "blocks": "disk"}
    rows = [(part, float(size), found["runs"][0]) for part, sizes in saved.items() for size, found in sizes.items()]
    assert len(rows) > 2
    for part, size, run in rows:
        seconds = f"{run['seconds_a_pass']:.2f} | {run['cpu_seconds_a_pass']:.2f}"
        memory = f"{run['anonymous_mb']:,} | {run['mapped_mb']}"
        assert f"| {size:,.0f} | {places[part]} | {seconds} | {memory} |" in GUIDE
