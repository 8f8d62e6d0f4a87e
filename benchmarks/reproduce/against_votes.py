"""Which methods fall below majority vote by more than chance explains: whole, thinned and generated crowds.

    python benchmarks/reproduce/against_votes.py                  # rows that the results do not have
    python benchmarks/reproduce/against_votes.py --parts whole
    python benchmarks/reproduce/against_votes.py --page           # writes the table of docs/aggregation.md

Protocol, fixed before the first run:

- `whole`: the 15 crowds of aggregation_quality.py. `thinned`: the cells of choice.py, each with its three draws.
  `grid`: the 108 crowds of robust_grid.py.
- The figure of a cell is the mean over tasks of known class of the chance to be right (ties are drawn), less that of
  majority vote; in `thinned`, the mean of the three draws. Its 95 % interval comes from 2,000 draws of the tasks with
  replacement, the same for both methods (intervals.bootstrap).
- Below: the difference is less than -.01. Really below: the whole interval is less than -.01. Among many cells where
  a method is just .01 below, one in forty would be called so by chance.
"""

import json
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import choice
import numpy as np
from intervals import bootstrap
from robust_grid import ROWS, crowds
from rows import Parts, run
from stack import told

sys.path.insert(0, str(Path(__file__).parents[1]))
from aggregation_quality import MORE_SETS, SETS, chances, real_sets

from crowdzoo.aggregation import ConvergenceWarning, VotesWarning, create

RESULTS = Path(__file__).parents[1] / "results" / "against_votes.json"
PAGE = Path(__file__).parents[2] / "docs" / "aggregation.md"
START, END = "<!-- against_votes.py writes this table -->", "<!-- the end of that table -->"
BASELINE = "majority-vote"
METHODS = ("robust", "dawid-skene", "hierarchical-dawid-skene", "dependent-dawid-skene", "one-coin", "mace")
LEAST = -0.01
DRAWS = 2000
PARTS = ("whole", "thinned", "grid")


def compared(draws: Iterable[choice.Crowd], **about: str) -> dict[str, Any]:
    """Differences to majority vote, and their intervals; draws of one crowd have the same tasks and gold."""
    right: dict[str, list[np.ndarray]] = {method: [] for method in (BASELINE, *METHODS)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", VotesWarning)
        for annotations, gold in draws:
            for method, found in right.items():
                found.append(chances(create(method).fit(annotations).posteriors, gold))
    row: dict[str, Any] = {**about, BASELINE: round(float(np.mean(right[BASELINE])), 5)}
    for method in METHODS:
        figures = bootstrap(right[method], right[BASELINE], draws=DRAWS)
        names = (method, f"{method}, low", f"{method}, high")
        row |= {name: round(figure, 5) for name, figure in zip(names, figures, strict=True)}
    return row


def whole(name: str) -> Iterator[dict[str, Any]]:
    yield compared([choice.one_of(name)])


def thinned(name: str, redundancy: int) -> Iterator[dict[str, Any]]:
    annotations, gold = choice.one_of(name)
    seeds = range(choice.FIRST_DRAW, choice.FIRST_DRAW + choice.DRAWS)
    yield compared((annotations.restrict(redundancy=redundancy, seed=seed), gold) for seed in seeds)


def grid(num_classes: int, num_annotators: int) -> Iterator[dict[str, Any]]:
    for about, *crowd in crowds(num_classes, num_annotators):
        yield compared([tuple(crowd)], **about)


def parts() -> Parts:
    medians = {name: np.median(one.redundancy[one.redundancy > 0]) for name, one, _ in real_sets((*SETS, *MORE_SETS))}
    return {
        "whole": {name: partial(whole, name) for name in medians},
        "thinned": {
            f"{name}, {redundancy}": partial(thinned, name, redundancy)
            for name, median in medians.items()
            if median >= choice.LEAST_MEDIAN
            for redundancy in choice.REDUNDANCIES
        },
        "grid": {f"{k} classes, {r} annotators": partial(grid, k, r) for k, r in ROWS},
    }


# === The table ===


def cells(saved: dict[str, Any], part: str) -> list[tuple[str, dict[str, Any]]]:
    """Name and figures of each cell of a part."""
    return [
        (", ".join(filter(None, (name, one.get("cell")))), one)
        for name, row in saved.get(part, {}).items()
        for one in row["runs"]
    ]


def table(saved: dict[str, Any]) -> str:
    """The methods, the one with the best mean over all parts first; then the cells where `robust` is below."""
    found = {part: cells(saved, part) for part in PARTS if part in saved}
    every = [one for some in found.values() for _, one in some]
    head = ["method", *(f"{part}: mean | worst | below | really below" for part in found)]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (4 * len(found))]
    for method in sorted(METHODS, key=lambda method: -np.mean([one[method] for one in every])):
        figures = []
        for part in found:
            values = np.array([one[method] for _, one in found[part]])
            really = sum(one[f"{method}, high"] < LEAST for _, one in found[part])
            figures += [f"{values.mean():+.4f}", f"{values.min():+.3f}", str((values < LEAST).sum()), str(really)]
        lines.append(f"| `{method}` | {' | '.join(figures)} |")
    below = sorted((one["robust"], name, one) for some in found.values() for name, one in some if one["robust"] < LEAST)
    named = [
        f"{name}: {100 * value:+.1f} [{100 * one['robust, low']:+.1f}, {100 * one['robust, high']:+.1f}]"
        for value, name, one in below
    ]
    numbers = ", ".join(f"{part} {len(some)}" for part, some in found.items())
    stacks = sorted({told(row["stack"]) for rows in saved.values() for row in rows.values()})
    words = f"Cells: {numbers}. `robust` is below, in points: {'; '.join(named) or 'nowhere'}."
    return "\n".join([*lines, "", words, f"Computed on: {'; '.join(stacks)}."])


def write_page() -> None:
    saved = json.loads(RESULTS.read_text(encoding="utf-8"))
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    PAGE.write_text(f"{before}{START}\n\n{table(saved)}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    run(RESULTS, parts(), __doc__, write_page)
