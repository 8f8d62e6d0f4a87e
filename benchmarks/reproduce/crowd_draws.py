"""Real crowds whole and thinned, and generated ones, for scripts that compare methods of aggregation.

- `whole`: the 15 crowds of aggregation_quality.py. `thinned`: those of them whose median task has four annotations or
  more, thinned at random to two and three a task, three draws each (seeds 10 to 12).
- `generated`: four sorts of crowds: independent, tasks that draw annotators to one wrong class, a quarter of annotators
  who share answers, three groups of annotators who share answers.
- `development`: three more real crowds, whole and thinned to 2, 3 and 5.
"""

import csv
import gzip
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from robust_grid import crowd
from rows import Parts

sys.path.insert(0, str(Path(__file__).parents[1]))
from aggregation_quality import MORE_SETS, SETS, real_sets

from crowdzoo import Annotations
from crowdzoo.datasets import data_folder

REDUNDANCIES, DRAWS, FIRST_DRAW = (2, 3), 3, 10
LEAST_MEDIAN = 4
SORTS = ("independent", "misleading tasks", "a ring", "three groups")
Crowd = tuple[Annotations, np.ndarray]
Score = Callable[..., dict[str, Any]]  # of annotations and gold, and of texts that say which run it is


def one_of(name: str) -> Crowd:
    """A set of aggregation_quality.py."""
    ((_, annotations, gold),) = real_sets((name,))
    return annotations, gold


def draws(
    score: Score, load: Callable[[], Crowd], redundancy: int | None, number: int = 1, first: int = 0
) -> Iterator[dict]:
    """A run for each draw of so many annotations a task; one of all annotations where `redundancy` is None."""
    annotations, gold = load()
    for seed in range(first, first + number):
        some = annotations if redundancy is None else annotations.restrict(redundancy=redundancy, seed=seed)
        yield score(some, gold, draw=str(seed))


def ducks() -> Crowd:
    """Photographs; a duck is a mallard or an American black duck."""
    folder = data_folder() / "bluebirds-ducks-cubam" / "demo" / "ducks"
    text = (folder / "classes.yaml").read_text(encoding="utf-8")
    species = {int(task): int(code) for task, code in re.findall(r"(\d+): (\d+)", text.partition("}")[0])}
    rows = np.loadtxt(folder / "labels.txt", np.int64, skiprows=1)
    annotations = Annotations.from_arrays(*rows.T, classes=(0, 1), on_duplicate="first")
    return annotations, np.array([int(species[int(task)] in (0, 2)) for task in annotations.tasks])


def medical(relation: str, tag: str) -> Crowd:
    """Sentences; whether one of two terms causes (treats) the other, with the gold of experts."""
    folder = data_folder() / "medical-relation-extraction"
    with gzip.open(folder / "raw_RelEx_noip.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with gzip.open(folder / f"ground_truth_{relation}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        expert = {row["SID"]: {"1": 1, "-1": 0}.get(row["expert"], -1) for row in csv.DictReader(file)}
    columns = zip(
        *(
            (
                row["sent_id"].partition("-")[0],
                row["_worker_id"],
                int(f"[{tag}]" in row["step_1_select_the_valid_relations"]),
            )
            for row in rows
        ),
        strict=True,
    )
    annotations = Annotations.from_arrays(*columns, classes=(0, 1), on_duplicate="first")
    return annotations, np.array([expert.get(str(task), -1) for task in annotations.tasks])


def generated(sort: str, num_classes: int, num_annotators: int, redundancy: int, seed: int) -> Crowd:
    """A crowd of robust_grid.py whose annotators depend on each other."""
    rng = np.random.default_rng(1000 + seed)
    skew, concentration = (1.0, 0.9, 0.5)[seed % 3], (3.0, 30.0)[seed % 2]
    annotations, truth = crowd(5000 + seed, num_classes, num_annotators, redundancy, skew, concentration)
    tasks, who, said = annotations.task_ids, annotations.annotator_ids, annotations.labels.copy()
    num_tasks = annotations.num_tasks
    if sort == "misleading tasks":
        hit = (rng.random(num_tasks) < 0.25)[tasks] & (rng.random(len(tasks)) < 0.5)
        said[hit] = rng.integers(num_classes, size=num_tasks)[tasks[hit]]
    elif sort == "a ring":
        shared = np.where(rng.random(num_tasks) < 0.45, truth, rng.integers(num_classes, size=num_tasks))
        hit = (rng.random(num_annotators) < 0.25)[who] & (rng.random(len(tasks)) < 0.9)
        said[hit] = shared[tasks[hit]]
    elif sort == "three groups":
        group = rng.integers(3, size=num_annotators)
        shared = np.where(rng.random((3, num_tasks)) < 0.6, truth, rng.integers(num_classes, size=(3, num_tasks)))
        hit = rng.random(len(tasks)) < 0.5
        said[hit] = shared[group[who[hit]], tasks[hit]]
    names = {"tasks": range(num_tasks), "annotators": range(num_annotators), "classes": range(num_classes)}
    return Annotations.from_arrays(tasks, who, said, **names), truth


def generated_runs(score: Score, sort: str) -> Iterator[dict[str, Any]]:
    cells = itertools.product((2, 4, 8), (15, 60, 300), (3, 6), SORTS)
    for seed, (num_classes, num_annotators, redundancy, other) in enumerate(cells, 1):
        if other == sort:
            about = f"{num_classes} classes, {num_annotators} annotators, {redundancy} annotations"
            yield score(*generated(sort, num_classes, num_annotators, redundancy, seed), cell=about)


def parts(score: Score) -> Parts:
    """All rows whose data are there; `score` gives the figures of a run."""
    sizes = {name: np.median(one.redundancy[one.redundancy > 0]) for name, one, _ in real_sets((*SETS, *MORE_SETS))}
    many = [name for name, median in sizes.items() if median >= LEAST_MEDIAN]
    three = {
        "ducks": ducks,
        "causes": partial(medical, "cause", "CAUSES"),
        "treats": partial(medical, "treat", "TREATS"),
    }
    return {
        "whole": {name: partial(draws, score, partial(one_of, name), None) for name in sizes},
        "thinned": {
            f"{name}, {few}": partial(draws, score, partial(one_of, name), few, DRAWS, FIRST_DRAW)
            for name in many
            for few in REDUNDANCIES
        },
        "development": {
            name if few is None else f"{name}, {few}": partial(draws, score, load, few, 1 if few is None else 2)
            for name, load in three.items()
            for few in (None, 2, 3, 5)
        },
        "generated": {sort: partial(generated_runs, score, sort) for sort in SORTS},
    }


# === The table ===
