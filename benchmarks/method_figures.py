"""The figures that `crowdzoo methods` shows: those of the saved results that are on data sets that ship.

Writes crowdzoo/report/method_figures.json, which a wheel holds. Run it after a change of benchmarks/results/crowds.json
or benchmarks/results/reproduce_deep.json; a test compares. Deep methods have the rows "labelme-defaults" of the latter,
which `python benchmarks/reproduce/deep_methods.py --data labelme-defaults --again --save` trains anew. Processor times
of aggregations are those in the file; for a method that is not in it, they are measured.

Writes crowdzoo/report/method_cards.json as well: what the cards of crowdzoo's own methods say, from their docstrings
and settings. Run it after a change of these, too.

    python benchmarks/method_figures.py
"""

import json
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent / "reproduce"))
from deep_methods import DEFAULTS
from rows import seconds_of

from crowdzoo.aggregation import METHODS, create
from crowdzoo.datasets import load_labelme
from crowdzoo.report.cards import made_cards

HERE = Path(__file__).resolve().parent
SAVED = HERE.parent / "crowdzoo" / "report" / "method_figures.json"
CLASSES = "classification"
PARTS = ("cpu_seconds", "versions")


def figures() -> dict[str, Any]:
    """Sort of method -> kind of labels -> name -> figures."""
    return {
        "about": "Made by benchmarks/method_figures.py. Accuracies on LabelMe: of an aggregation on its 1,000 "
        "photographs, of a deep method on its held-out part at the last epoch.",
        "deep": {CLASSES: deep()},
        "aggregation": {CLASSES: aggregations()},
    }


def aggregations() -> dict[str, Any]:
    saved = json.loads((HERE / "results" / "crowds.json").read_text())["labelme"]
    kept = json.loads(SAVED.read_text())["aggregation"][CLASSES]
    figures_by_method = {}
    for name in dict.fromkeys([*kept, *METHODS]):
        if name in saved and name in METHODS:
            seconds, versions = timed(name) if name not in kept else (kept[name][0][part] for part in PARTS)
            figures_by_method[name] = [figure("", [saved[name]["accuracy"]], seconds, versions)]
    return figures_by_method


def timed(name: str) -> tuple[float, dict[str, Any]]:
    """Processor seconds of one fit after another, and on what."""
    annotations = load_labelme().annotations
    create(name).fit(annotations)
    started = time.process_time()
    create(name).fit(annotations)
    return time.process_time() - started, {part: version(part) for part in ("numpy", "numba")}


def deep() -> dict[str, Any]:
    """Of today's defaults, and of some variants after them; a test compares the settings of the rows."""
    saved = json.loads((HERE / "results" / "reproduce_deep.json").read_text())
    figures_by_method: dict[str, Any] = {}
    for title, row in saved["labelme-defaults"].items():
        trained = DEFAULTS[title]
        words = [f"{name}={value}" for name, value in trained.arguments.items()]
        if trained.method == "aggregated":
            if trained.labels not in METHODS:  # gold
                continue
            words = [trained.labels, "labels" if trained.hard else "posteriors"]
        assert row["runs"], title
        accuracies = [run["last"] for run in row["runs"]]
        of_method = figures_by_method.setdefault(trained.method, [])
        row_figure = figure(" ".join(words), accuracies, seconds_of(row), row["stack"])
        of_method.insert(len(of_method) if words else 0, row_figure)
    return figures_by_method


def figure(variant: str, accuracies: list[float], cpu_seconds: float, versions: dict[str, Any]) -> dict[str, Any]:
    kept = {name: versions[name] for name in ("python", "numpy", "numba", "keras", "backend") if name in versions}
    return {
        "set": "labelme",
        "variant": variant,
        "accuracy": round(statistics.mean(accuracies), 4),
        "spread": round(statistics.stdev(accuracies), 4) if len(accuracies) > 1 else None,
        "runs": len(accuracies),
        "cpu_seconds": float(f"{cpu_seconds:.3g}"),
        "versions": kept,
    }


if __name__ == "__main__":
    SAVED.write_text(json.dumps(figures(), indent=1) + "\n")
    SAVED.with_name("method_cards.json").write_text(json.dumps(made_cards(), indent=1, ensure_ascii=False) + "\n")
