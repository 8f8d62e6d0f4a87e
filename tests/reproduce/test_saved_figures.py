"""Tables of the docs that are copied from saved results."""

import json
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def saved(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


def line_of(page, begin):
    """Numbers of the row of a table that begins so."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    (row,) = re.findall(rf"^\| {re.escape(begin)}[^|]*\|( [-.\d].*)\|$", text, re.M)
    return [float(number) for number in re.findall(r"-?\d*\.?\d+", row)]


def test_next_against_random_choice():
    kinds = saved("next_by_kind")["kinds"]
    savings = [100 * statistics.mean(run["saved"] for run in each["runs"]) for each in kinds.values()]
    assert len(kinds) == 7
    text = " ".join((ROOT / "docs" / "quality.md").read_text("utf-8").split())
    assert f"all seven kinds, `next` needs {min(savings):.0f} to {max(savings):.0f} % fewer answers" in text
    for each in kinds.values():
        better = [run["next"] - run["random"] for run in each["runs"]]
        assert statistics.mean(better) > 0


@pytest.mark.parametrize("method", ["robust", "hierarchical-dawid-skene", "ibcc", "dawid-skene"])
def test_batches_against_one_fit(method, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from real_crowds import family_mean

    crowds = {name: row["runs"] for name, row in saved("batches")["batches"].items() if name not in ("dog", "music")}

    def mean(figure):
        return family_mean({
            name: statistics.mean(run[figure] for run in runs if run["method"] == method)
            for name, runs in crowds.items()
        })  # fmt: skip

    whole = mean("accuracy, one fit")
    expected = [
        *(mean(f"same, {way}") for way in ("prior", "last", "alone")), whole,
        *(mean(f"accuracy, {way}") - whole for way in ("prior", "alone")),
    ]  # fmt: skip
    assert line_of("aggregation.md", f"`{method}`") == pytest.approx(expected, abs=6e-4)
