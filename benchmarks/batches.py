"""Batches that are aggregated one after another with `prior`, against one fit of all annotations, on real crowds.

    python benchmarks/batches.py            # the rows that the results do not have
    python benchmarks/batches.py --page     # prints the table of what is saved

**Protocol.** The crowds of classes in CROWDZOO_DATA with 100 tasks or more, and at most 60,000 annotations. The tasks
of a crowd are divided at random into five batches of equal size (seeds 0 and 1). The first batch is aggregated alone,
and each other one with the result before it as `prior`; the labels of the five results together are the labels of the
batches. "alone" aggregates each batch without a prior. Both are compared with one fit of all annotations by the same
method: the share of tasks with the same label, and the accuracy on the tasks with gold less that of one fit. "last" is
the same for the tasks of the last batch alone, which knows the four before it. Crowds of a family count as one, and
seeds as one. Dog and Music were used to write and check the code; their family's figures are not in the table.

Expected before the run: batches agree with one fit on .97 of the tasks or more, on average over families, for each
method, and the accuracy differs by less than .01; the last batch agrees on more tasks than the average one.
"""

import statistics
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from real_crowds import CROWDS, family_mean, real_sets

from crowdzoo import Annotations
from crowdzoo.aggregation import create
from crowdzoo.datasets import data_folder

sys.path.append(str(Path(__file__).parent / "reproduce"))
from needed import need
from rows import grid, read, run

RESULTS = Path(__file__).parent / "results" / "batches.json"
METHODS = ("robust", "hierarchical-dawid-skene", "dawid-skene", "ibcc")
BATCHES, SEEDS = 5, 2
LEAST_TASKS, MOST_ANNOTATIONS = 100, 60_000
WRITTEN_WITH = ("dog", "music")
HEADER = (
    "method", "families", "same label, with prior", "same label, alone", "same label, last batch",
    "accuracy of one fit", "difference, with prior", "difference, alone",
)  # fmt: skip


def compared(name: str) -> Iterator[dict[str, Any]]:
    """The runs on a real crowd: one for each method and seed; none where the crowd is small or large."""
    [(_, annotations, gold)] = real_sets((name,))
    if annotations.num_tasks < LEAST_TASKS or len(annotations) > MOST_ANNOTATIONS:
        return
    for method in METHODS:
        whole = create(method).fit(annotations).labels
        for seed in range(SEEDS):
            batch = np.random.default_rng([7, seed]).permutation(annotations.num_tasks) % BATCHES
            labels = {way: in_batches(annotations, batch, method, way == "prior") for way in ("prior", "alone")}
            figures = {f"same, {way}": float((found == whole).mean()) for way, found in labels.items()}
            last = batch == BATCHES - 1
            figures["same, last"] = float((labels["prior"] == whole)[last].mean())
            known = gold >= 0
            figures |= {f"accuracy, {way}": float((found == gold)[known].mean()) for way, found in labels.items()}
            figures["accuracy, one fit"] = float((whole == gold)[known].mean())
            yield {"method": method, "seed": str(seed), **{key: round(value, 4) for key, value in figures.items()}}


def in_batches(annotations: Annotations, batch: np.ndarray, method: str, history: bool) -> np.ndarray:
    """Labels of all tasks, each from the fit of its batch, int64 [N]."""
    labels = np.full(annotations.num_tasks, -1)
    result = None
    for number in range(BATCHES):
        tasks = np.flatnonzero(batch == number)
        part = annotations.select_tasks(tasks)
        result = create(method).fit(part, prior=result) if history else create(method).fit(part)
        labels[tasks] = result.labels
    return labels


def show_table() -> None:
    """Prints the saved results as Markdown, families counted as one."""
    saved = read(RESULTS)
    crowds = {name: row["runs"] for name, row in saved["batches"].items() if name not in WRITTEN_WITH}
    rows = []
    for method in METHODS:

        def mean(figure: str, method: str = method) -> float:
            return family_mean({
                name: statistics.mean(run[figure] for run in runs if run["method"] == method)
                for name, runs in crowds.items()
            })  # fmt: skip

        whole = mean("accuracy, one fit")
        rows.append((
            method, str(len({CROWDS[name].family for name in crowds})),
            *(f"{mean(f'same, {way}'):.4f}" for way in ("prior", "alone", "last")), f"{whole:.4f}",
            *(f"{mean(f'accuracy, {way}') - whole:+.4f}" for way in ("prior", "alone")),
        ))  # fmt: skip
    print(grid(HEADER, rows))


PARTS = {"batches": {name: partial(compared, name) for name in CROWDS if (data_folder() / CROWDS[name].place).exists()}}

if __name__ == "__main__":
    need(*(crowd.place for crowd in CROWDS.values()), some=True)
    warnings.simplefilter("ignore")
    run(RESULTS, PARTS, __doc__, show_table, keras=False)
