"""What `crowdzoo next` saves on five real crowds: annotations until equal accuracy, against asking evenly at random.

The method, the gain and the margin were chosen on four other crowds (face, ZenCrowd_in, CF, trec); gold of the five was
not looked at before.

    python benchmarks/reproduce/next_annotations.py            # 10 runs a set
    python benchmarks/reproduce/next_annotations.py --page     # prints the table of what is saved
"""

import json
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from intervals import Runs, mean_interval
from needed import need
from rows import run
from simulated_next import simulate_next

from crowdzoo.aggregation import create

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from real_crowds import CROWDS, real_sets  # noqa: E402  it stands in the folder above, which Python does not search by itself

TITLES = {"bluebird": "Blue Birds", "dog": "dog", "rte": "RTE", "web": "web", "d_sentiment": "positive sentiment"}
HEAD = (
    "| set | tasks | annotations | accuracy to reach | at random | by gain | saved (95 %) | all sure after "
    "| accuracy there | at random |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
)
RESULTS = HERE.parent / "results" / "next_annotations.json"
SETS = ("bluebird", "dog", "rte", "web", "d_sentiment")
METHOD = "hierarchical-dawid-skene"
RUNS = 10


def replay(name: str) -> Iterator[dict[str, Any]]:
    """One dictionary a run: annotations until the target, both ways, and where the choice stopped."""
    [(_, annotations, gold)] = real_sets((name,))
    found = simulate_next(annotations, gold, create(METHOD), runs=RUNS, sure=0.99)
    for seed in range(RUNS):
        yield {
            "seed": str(seed),
            "tasks": annotations.num_tasks,
            "all": found.all_annotations,
            "target": round(found.target, 4),
            "random": int(found.random[seed]),
            "chosen": int(found.chosen[seed]),
            "saved": round(float(found.saved[seed]), 4),
            "stopped": int(found.stopped[seed]),
            "stopped accuracy": round(float(found.stopped_accuracy[seed]), 4),
            "random accuracy there": round(float(found.random_accuracy[seed]), 4),
        }


def table(saved: dict[str, Any]) -> str:
    """The saved results as Markdown."""
    lines = []
    for name, row in saved["until equal accuracy"].items():
        runs = row["runs"]

        def mean(column: str, runs: list[dict[str, Any]] = runs) -> float:
            return statistics.mean(one[column] for one in runs)

        center, half = mean_interval([Runs([one["saved"] for one in runs])])
        first = runs[0]
        lines.append(
            f"| {TITLES[name]} | {first['tasks']:,} | {first['all']:,} | {first['target']:.3f} | {mean('random'):,.0f} "
            f"| {mean('chosen'):,.0f} | {100 * center:.0f} ± {100 * half:.0f} % | {mean('stopped'):,.0f} "
            f"| {mean('stopped accuracy'):.3f} | {mean('random accuracy there'):.3f} |\n"
        )
    return HEAD + "".join(lines)


def show_table() -> None:
    print(table(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    need(*(CROWDS[name].place for name in SETS))
    run(RESULTS, {"until equal accuracy": {name: partial(replay, name) for name in SETS}}, __doc__, show_table)
