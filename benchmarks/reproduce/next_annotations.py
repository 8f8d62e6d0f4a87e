"""What `crowdzoo next` saves on five real crowds: annotations until equal accuracy, against asking evenly at random.

The method, the gain and the margin were chosen on four other crowds (face, ZenCrowd_in, CF, trec); gold of the five was
not looked at before.

    python benchmarks/reproduce/next_annotations.py            # 10 runs a set
    python benchmarks/reproduce/next_annotations.py --page     # prints the table of what is saved

A table of annotations is replayed twice in each run: in random order, and by `information_gain`. Both ways begin with
the same annotation of each task, drawn at random. Then they ask in rounds for as many annotations as `SHARE` of the
tasks, and fit the aggregator after each round. The random way asks evenly: no task gets its next annotation before all
others have as many. The other asks for the annotations with the highest gain, one a task in a round, among those of the
table that are left, and passes over tasks that are sure while others are left. Gold is used to measure accuracy only.
"""

import json
import statistics
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from intervals import Runs, mean_interval
from needed import need
from rows import grid, run
from settings import aggregator

from crowdzoo import Annotations
from crowdzoo.quality.next_annotation import information_gain, sure_tasks

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from real_crowds import CROWDS, real_sets  # noqa: E402  it is in the folder above, which Python does not search by itself

TITLES = {"bluebird": "Blue Birds", "dog": "dog", "rte": "RTE", "web": "web", "d_sentiment": "positive sentiment"}
HEADER = (
    "set", "tasks", "annotations", "accuracy to reach", "at random", "by gain", "saved (95 %)", "all sure after",
    "accuracy there", "at random",
)  # fmt: skip
RESULTS = HERE.parent / "results" / "next_annotations.json"
METHOD = "hierarchical-dawid-skene"
RUNS = 10
SHARE = 0.1  # annotations in a round, as a share of the tasks
MARGIN = 0.01  # how much less than the accuracy with all annotations the target is
SURE = 0.99

# === The replay ===


def replay(name: str) -> Iterator[dict[str, Any]]:
    """The runs on a real crowd."""
    [(_, annotations, gold)] = real_sets((name,))
    return replayed(annotations, gold, RUNS)


def replayed(annotations: Annotations, gold: np.ndarray, runs: int) -> Iterator[dict[str, Any]]:
    """One dictionary a run: annotations until the target, both ways, and where the choice stopped.

    Both ways count whole rounds, and the first one that reaches the target. The choice stops where all tasks are sure,
    or nothing is left to ask, and goes on from there if it has not reached the target.

    Args:
        annotations: N tasks of kind classification, each with several annotations.
        gold: class codes, int [N], -1 where unknown.
        runs: number of runs; each draws an order of its own, which both ways share.
    """
    whole = len(annotations)
    target = fitted(annotations).accuracy(gold) - MARGIN
    batch = max(1, round(SHARE * annotations.num_tasks))
    start = int((annotations.redundancy > 0).sum())
    for seed in range(runs):
        rng = np.random.default_rng([0, seed])
        order = even_order(annotations, rng)
        way = []
        for number in (*range(start, whole, batch), whole):
            result = fitted(annotations.select_rows(order[:number]))
            way.append((number, result.accuracy(gold)))
        chosen, stop = chosen_way(annotations, order[:start], gold, batch, rng)
        random_until, chosen_until = until(way, target, whole), until(chosen, target, whole)
        stopped, accuracy = chosen[stop]
        yield {
            "seed": str(seed),
            "tasks": annotations.num_tasks,
            "all": whole,
            "target": round(target, 4),
            "random": random_until,
            "chosen": chosen_until,
            "saved": round(1 - chosen_until / random_until, 4),
            "stopped": stopped,
            "stopped accuracy": round(accuracy, 4),
            "random accuracy there": round(float(np.interp(stopped, *np.array(way).T)), 4),
        }


def chosen_way(
    annotations: Annotations, first: np.ndarray, gold: np.ndarray, batch: int, rng: np.random.Generator
) -> tuple[list[tuple[int, float]], int]:
    """Numbers of annotations and accuracies, round by round, and the round in which all tasks were sure first."""
    mask = np.zeros(len(annotations), bool)
    mask[first] = True
    way: list[tuple[int, float]] = []
    stop = None
    while True:
        result = fitted(annotations.select_rows(np.flatnonzero(mask)))
        way.append((int(mask.sum()), result.accuracy(gold)))
        left = np.flatnonzero(~mask & ~sure_tasks(result, SURE)[annotations.task_ids])
        if not len(left):
            stop = len(way) - 1 if stop is None else stop
            left = np.flatnonzero(~mask)
        if not len(left):
            return way, stop
        tasks, who = annotations.task_ids[left], annotations.annotator_ids[left]
        gains = information_gain(result.posteriors[tasks], result.confusions[who])
        ranked = np.lexsort((rng.random(len(left)), -gains))
        _, best = np.unique(tasks[ranked], return_index=True)  # one a task
        mask[left[ranked[np.sort(best)[:batch]]]] = True


def even_order(annotations: Annotations, rng: np.random.Generator) -> np.ndarray:
    """Rows in random order, such that no task has its next one before all others have as many."""
    shuffled = rng.permutation(len(annotations))
    tasks = annotations.task_ids[shuffled]
    by_task = np.argsort(tasks, kind="stable")
    counts = np.bincount(tasks, minlength=annotations.num_tasks)
    turn = np.empty(len(tasks), np.int64)
    turn[by_task] = np.arange(len(tasks)) - np.repeat(np.cumsum(counts) - counts, counts)
    return shuffled[np.argsort(turn, kind="stable")]


def fitted(annotations: Annotations) -> Any:
    """What the method makes of some of the annotations."""
    with warnings.catch_warnings():  # of few annotations, on the way to many
        warnings.simplefilter("ignore")
        return aggregator(METHOD).fit(annotations)


def until(way: list[tuple[int, float]], target: float, whole: int) -> int:
    """Annotations of the first round that reaches the target; all of them where none does."""
    return next((number for number, accuracy in way if accuracy >= target), whole)


# === The table ===


def table(saved: dict[str, Any]) -> str:
    """The saved results as Markdown."""
    rows = []
    for name, row in saved["until equal accuracy"].items():
        first = row["runs"][0]
        mean = {column: statistics.mean(run[column] for run in row["runs"]) for column in first if column != "seed"}
        center, half = mean_interval([Runs([run["saved"] for run in row["runs"]])])
        rows.append((
            TITLES[name], f"{first['tasks']:,}", f"{first['all']:,}", f"{first['target']:.3f}",
            f"{mean['random']:,.0f}", f"{mean['chosen']:,.0f}", f"{100 * center:.0f} ± {100 * half:.0f} %",
            f"{mean['stopped']:,.0f}", f"{mean['stopped accuracy']:.3f}", f"{mean['random accuracy there']:.3f}",
        ))  # fmt: skip
    return grid(HEADER, rows)


def show_table() -> None:
    print(table(json.loads(RESULTS.read_text(encoding="utf-8"))))


PARTS = {"until equal accuracy": {name: partial(replay, name) for name in TITLES}}

if __name__ == "__main__":
    need(*(CROWDS[name].place for name in TITLES))
    run(RESULTS, PARTS, __doc__, show_table)
