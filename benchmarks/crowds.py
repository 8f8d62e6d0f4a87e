"""Every aggregation method on every real crowd of classes: accuracy less majority vote's, by kind of crowd.

    python benchmarks/crowds.py                     # rows that the results do not have
    python benchmarks/crowds.py --methods robust    # these again
    python benchmarks/crowds.py --print             # the tables of the saved rows

Protocol, fixed before the first run of the candidates for the default:

- Crowds and families: real_crowds.py. A figure is the mean over families of the means over their crowds; next to it the
  mean over crowds. Accuracies count ties by chance, on the tasks with gold.
- What is learnt from gold of real crowds is shown on families that it was not learnt from: families are in six folds
  (`fold_of`), and each fold is shown with weights learnt from simulated crowds and the other five.
- `clearly below`: the upper end of the 95 % interval of a paired bootstrap over tasks (2,000 draws) of the difference
  to majority vote is under -.01.
- `off`: distance between the mean probability of the answers and their accuracy. `sure`: answers with a probability of
  .95 or more; how many there are, how many are right, and how many had divided votes.
- A candidate becomes the default if by families left out its mean over families is above the other candidates', it is
  clearly below majority vote on at most four crowds, and its probabilities are off by .12 or less on average. Within
  .002 the one that is clearly below on fewer crowds is taken, then the simpler one.
- Candidates: a step of EM that is learnt (one network, unrolled), with and without real crowds in its training; a pool
  of existing methods with equal weights; the vote. Sizes of the network are compared by the loss on held-out simulated
  crowds and by families left out, not by these tables.
- faithbench is shown and not learnt from: its tasks were picked because the annotators disagree, so the majority is
  below chance. Where a crowd's annotators made its gold they are left out (ecg).
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))
import baselines  # noqa: F401 - registers the aggregators of examples/baselines
from needed import need
from real_crowds import CROWDS, OLD, family_mean, read, weights_without
from stack import stack

from crowdzoo import Annotations
from crowdzoo.aggregation import METHODS, ConvergenceWarning, VotesWarning, create
from crowdzoo.aggregation.engine.labels import tied_classes
from crowdzoo.errors import CrowdzooError
from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parent / "results" / "crowds.json"
LEFT_OUT, POOL = "robust, families left out", "vote, EBCC and hierarchical"
BASELINES = ("bwa", "worker-clustering")  # of examples/baselines
DRAWS, CLEARLY, SURE = 2000, -0.01, 0.95
LONG = {"ebcc": 30_000, "glad": 120_000}  # most annotations
Fit = Callable[[Annotations], np.ndarray]


def left_out(family: str) -> Fit:
    """Posteriors by weights that were fitted to other families."""

    def fit(annotations: Annotations) -> np.ndarray:
        with weights_without(family):
            return create("robust").fit(annotations).posteriors

    return fit


def pooled(annotations: Annotations) -> np.ndarray:
    """The plain mean of three methods' posteriors."""
    return np.mean(
        [create(name).fit(annotations).posteriors for name in ("majority-vote", "ebcc", "hierarchical-dawid-skene")],
        axis=0,
    )


def methods_of(family: str) -> dict[str, Fit]:
    """Every method, and the candidates for the default."""
    methods: dict[str, Fit] = {
        name: (lambda annotations, name=name: create(name).fit(annotations).posteriors)
        for name in (*METHODS, *BASELINES)
    }
    return methods | {LEFT_OUT: left_out(family), POOL: pooled}


def chances(posteriors: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """For each task of known class, the chance that a random one of its most probable classes is right."""
    known = np.flatnonzero(gold >= 0)
    tied = tied_classes(posteriors[known])
    return tied[np.arange(known.size), gold[known]] / tied.sum(axis=1)


def figures(posteriors: np.ndarray, votes: np.ndarray, annotations: Annotations, gold: np.ndarray) -> dict[str, Any]:
    """What the tables show of a method on a crowd."""
    known, chance, plain = gold >= 0, chances(posteriors, gold), chances(votes, gold)
    difference = chance - plain
    rng = np.random.default_rng(0)
    drawn = [difference[rng.integers(len(difference), size=len(difference))].mean() for _ in range(DRAWS)]
    top = posteriors[known].max(axis=1)
    sure, divided = top >= SURE, votes[known].max(axis=1) < 1 - 1e-9
    return {
        "accuracy": round(float(chance.mean()), 5),
        "gain": round(float(difference.mean()), 5),
        "high": round(float(np.quantile(drawn, 0.975)), 5),
        "off": round(float(abs(top.mean() - chance.mean())), 4),
        "sure": round(float(sure.mean()), 4),
        "sure_right": round(float(chance[sure].mean()), 4) if sure.any() else None,
        "sure_divided": round(float((sure & divided).mean()), 4),
        "tasks": int(known.sum()),
    }


def measure(saved: dict[str, Any], chosen: list[str] | None) -> Iterator[None]:
    """Computes the rows that are missing, or those of the chosen methods again."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", VotesWarning)
    for crowd, annotations, gold in read():
        votes = create("majority-vote").fit(annotations).posteriors
        row = saved.setdefault(crowd.name, {})
        for name, fit in methods_of(crowd.family).items():
            if (name in row) if chosen is None else (name not in chosen):
                continue
            if len(annotations) > LONG.get("ebcc" if name == POOL else name, 10**9):
                continue
            started = time.perf_counter()
            try:
                posteriors = fit(annotations)
            except CrowdzooError:  # of two classes only
                continue
            seconds = round(time.perf_counter() - started, 3)
            row[name] = figures(posteriors, votes, annotations, gold) | {
                "seconds": seconds,
                "stack": stack(keras=False),
            }
            print(f"{crowd.name:22} {name:28} {row[name]['gain']:+.4f} {seconds:.2f} s", flush=True)
        yield


def summary(saved: dict[str, Any], names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """A row a method, best mean of families first; only methods that have all of these crowds."""
    rows = []
    for method in dict.fromkeys(name for row in saved.values() for name in row):
        cells = {name: saved[name][method] for name in names if method in saved.get(name, {})}
        if not cells:
            continue
        mean = family_mean({name: cell["gain"] for name, cell in cells.items()})
        gains = np.array([cell["gain"] for cell in cells.values()])
        right = [
            cell["sure_right"] for cell in cells.values() if cell["sure_right"] is not None and cell["sure"] >= 0.05
        ]
        sure = np.array([(cell["sure"] * cell["tasks"], cell["sure_right"] or 0) for cell in cells.values()])
        rows.append(
            (
                mean,
                method,
                f"{len(cells)}",
                f"{mean:+.3f}",
                f"{gains.mean():+.3f}",
                f"{sum(cell['high'] < CLEARLY for cell in cells.values())}",
                f"{(gains < -0.01).sum()}",
                f"{gains.min():+.3f}",
                f"{np.mean([cell['off'] for cell in cells.values()]):.2f}",
                f"{np.mean([cell['sure'] for cell in cells.values()]):.2f}",
                f"{np.mean(right):.3f}" if right else "-",
                f"{np.average(sure[:, 1], weights=sure[:, 0]):.3f}" if sure[:, 0].any() else "-",
            )
        )
    return [row[1:] for row in sorted(rows, reverse=True)]


HEADER = (
    "method", "crowds", "families", "mean", "clearly below", "below .01", "worst", "off", "sure", "right",
    "right, pooled",
)  # fmt: skip


def by_kind(saved: dict[str, Any]) -> list[tuple[str, ...]]:
    """Mean over families of the gain, a column a kind of crowd."""
    kinds = {
        "people": lambda name: CROWDS[name].kind == "people",
        "doctors": lambda name: CROWDS[name].kind == "doctors",
        "models": lambda name: CROWDS[name].kind == "models",
        "rules": lambda name: CROWDS[name].kind == "rules",
        "the 20 older": lambda name: name in OLD,
    }
    rows = []
    for method in dict.fromkeys(name for row in saved.values() for name in row):
        cells = []
        for chosen in kinds.values():
            gains = {name: saved[name][method]["gain"] for name in filter(chosen, saved) if method in saved[name]}
            cells.append(f"{family_mean(gains):+.3f}" if gains else "-")
        rows.append((method, *cells))
    order = [row[0] for row in summary(saved, tuple(CROWDS))]
    return [("method", *kinds), *sorted(rows, key=lambda row: order.index(row[0]))]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="compute these again")
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved rows and stop")
    args = parser.parse_args()
    saved: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    if not args.only_print:
        for _ in measure(saved, args.methods):
            RESULTS.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
    print_table("all crowds", HEADER, summary(saved, tuple(CROWDS)))
    print_table("the 20 older ones", HEADER, summary(saved, OLD))
    header, *rows = by_kind(saved)
    print_table("mean of families by kind of crowd", header, rows)


if __name__ == "__main__":
    need(*(crowd.place for crowd in CROWDS.values()), some=True)
    main()
