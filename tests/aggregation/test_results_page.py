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


def test_equal_accuracies_share_a_rank(quality):
    import numpy as np

    accuracies = np.array([[0.9, 0.5], [0.8, 0.5], [0.9, 0.7]])
    assert quality.ranks(accuracies).tolist() == [[1.5, 2.5], [3.0, 2.5], [1.5, 1.0]]


def test_paired_difference_and_its_error(quality):
    import numpy as np

    found = quality.against(np.array([1.0, 1.0, 0.5, 0.0]), np.array([1.0, 0.0, 0.5, 0.0]))
    assert found["difference"] == 0.25
    assert found["error"] == pytest.approx(0.25)  # of (0, 1, 0, 0): deviation 0.5, by the root of 4


def test_tied_tasks_count_by_chance(quality):
    import numpy as np

    posteriors = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1], [0.5, 0.5]])
    assert quality.chances(posteriors, np.array([0, 1, 1, -1])).tolist() == [0.5, 1.0, 0.0]


def test_methods_are_listed_by_their_worst_set_against_the_votes(quality):
    def cells(**accuracies):
        return {"methods": {name: {"ours": {"accuracy": value}} for name, value in accuracies.items()}}

    sets = {
        "a": cells(**{"majority-vote": 0.7}, safe=0.7, bold=0.9),
        "b": cells(**{"majority-vote": 0.8}, safe=0.82, bold=0.75),
        "c": {"methods": {"majority-vote": {"ours": {"accuracy": 0.6}}, "safe": {"ours": {"accuracy": 0.62}},
                          "bold": {"ours": {"error": "KOS is for two classes."}}}},
    }  # fmt: skip
    assert quality._against_votes(sets, ["majority-vote", "bold", "safe"]) == [
        ["safe", "+0.00", "a", "+1.33", "1.15", "0", "3"],
        ["bold", "-5.00", "b", "+7.50", "17.68", "1", "2"],
    ]


def test_the_page_says_what_the_worst_sets_are(quality, table):
    rows = {row[0]: row for row in quality._against_votes(table["sets"], list(METHODS))}
    assert float(rows["dawid-skene"][1]) >= 0
    assert float(rows["hierarchical-dawid-skene"][1]) >= 0
    assert "neither is worse than majority vote on any set" in " ".join(
        quality.PAGE.read_text(encoding="utf-8").split()
    )
