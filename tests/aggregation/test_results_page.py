"""docs/aggregation-results.md says what the saved results say, and they are complete."""

import importlib.util
import json
from pathlib import Path

import pytest

from crowdzoo.aggregation import METHODS

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "aggregation_quality.py"


@pytest.fixture(scope="module")
def quality():
    spec = importlib.util.spec_from_file_location("aggregation_quality", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def table(quality):
    return json.loads(quality.RESULTS.read_text(encoding="utf-8"))


def test_page_is_what_the_results_render_to(quality, table):
    assert quality.PAGE.read_text(encoding="utf-8") == quality.render(table)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_was_measured_on_every_set(method, quality, table):
    assert set(table["sets"]) == set(quality.SETS)
    for name, row in table["sets"].items():
        cell = row["methods"][method]["ours"]
        assert "error" in cell or 0 <= cell["accuracy"] <= 1, name


def test_published_figures_are_those_of_the_script(quality, table):
    assert table["published"] == {"sources": quality.SOURCES, "figures": quality.PUBLISHED}


def test_the_page_says_what_the_worst_sets_are(quality, table):
    rows = {row[0]: row for row in quality._against_votes(table["sets"], list(METHODS))}
    assert float(rows["dawid-skene"][1]) >= 0
    assert float(rows["hierarchical-dawid-skene"][1]) >= 0
    assert "neither is worse than majority vote on any set" in " ".join(
        quality.PAGE.read_text(encoding="utf-8").split()
    )
