"""Figures in sentences of the docs are those of the saved results."""

import json
import statistics
from pathlib import Path

ROOT = Path(__file__).parents[2]


def saved(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


def test_next_against_random_choice():
    kinds = saved("next_by_kind")["kinds"]
    savings = [100 * statistics.mean(run["saved"] for run in each["runs"]) for each in kinds.values()]
    assert len(kinds) == 7
    text = " ".join((ROOT / "docs" / "quality.md").read_text("utf-8").split())
    assert f"all seven kinds, `next` needs {min(savings):.0f} to {max(savings):.0f} % fewer answers" in text
    for each in kinds.values():
        better = [run["next"] - run["random"] for run in each["runs"]]
        assert statistics.mean(better) > 0


def test_batches_against_one_fit(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from real_crowds import family_mean

    crowds = {name: row["runs"] for name, row in saved("batches")["batches"].items() if name not in ("dog", "music")}

    def mean(figure):
        return family_mean({
            name: statistics.mean(run[figure] for run in runs if run["method"] == "robust")
            for name, runs in crowds.items()
        })  # fmt: skip

    same = f"{mean('same, prior'):.3f}".lstrip("0")
    difference = f"{abs(mean('accuracy, prior') - mean('accuracy, one fit')):.3f}".lstrip("0")
    text = " ".join((ROOT / "docs" / "aggregation.md").read_text("utf-8").split())
    assert f"annotations for {same} of the tasks, with the same accuracy to {difference} " in text
