"""Dawid-Skene from vote shares and from one coin: accuracy on real and on generated crowds.

    python benchmarks/reproduce/starts.py                  # rows that the results do not have; some minutes
    python benchmarks/reproduce/starts.py --summary        # means of the saved results, no fit

The crowds are those of crowd_draws.py (`whole`, `thinned`, `development`, `generated`) and of robust_grid.py (`grid`).
A cell is a row of the real crowds, whose accuracies are means over its draws, and each crowd of the generated ones.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import crowd_draws
import numpy as np
from intervals import Runs, mean_interval
from robust_grid import ROWS, crowds
from rows import Parts, run

from crowdzoo import Annotations
from crowdzoo.aggregation import ConvergenceWarning, DawidSkene, MajorityVote, VotesWarning

RESULTS = Path(__file__).parents[1] / "results" / "starts.json"
METHODS = {"majority vote": MajorityVote(), "votes": DawidSkene(), "one-coin": DawidSkene(start="one-coin")}
GENERATED = ("generated", "grid")


def accuracies(annotations: Annotations, gold: np.ndarray, **about: str) -> dict[str, Any]:
    """Accuracy of majority vote and from each start, and what `about` says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", VotesWarning)
        found = {name: method.fit(annotations).expected_accuracy(gold) for name, method in METHODS.items()}
    return {**about, **{name: round(accuracy, 5) for name, accuracy in found.items()}}


def grid_runs(num_classes: int, num_annotators: int) -> Iterator[dict[str, Any]]:
    for about, annotations, truth in crowds(num_classes, num_annotators):
        yield accuracies(annotations, truth, **about)


def summary(saved: dict[str, Any]) -> Iterator[str]:
    """A line for each part: means, and the difference between the starts with its 95 % interval over the cells."""
    for part, rows in saved.items():
        runs = [[one] for row in rows.values() for one in row["runs"]]
        groups = runs if part in GENERATED else [row["runs"] for row in rows.values()]
        cells = np.array([[np.mean([one[name] for one in group]) for name in METHODS] for group in groups])
        means, gains = cells.mean(axis=0), cells[:, 2] - cells[:, 1]
        mean, half = mean_interval([Runs(gains)])
        better, worse = (gains > 0).sum(), (gains < 0).sum()
        accuracy = ", ".join(f"{name} {mean:.4f}" for name, mean in zip(METHODS, means, strict=True))
        yield f"{part}, {len(cells)} cells: {accuracy}; from one coin {mean:+.4f} ± {half:.4f},"
        yield f"    {gains.min():+.3f} to {gains.max():+.3f}; better in {better}, worse in {worse}"


def main() -> None:
    if "--summary" in sys.argv:
        print(*summary(json.loads(RESULTS.read_text(encoding="utf-8"))), sep="\n")
        return
    parts: Parts = crowd_draws.parts(accuracies)
    parts["grid"] = {f"{k} classes, {r} annotators": partial(grid_runs, k, r) for k, r in ROWS}
    run(RESULTS, parts, __doc__)


if __name__ == "__main__":
    main()
