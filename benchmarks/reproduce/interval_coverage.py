"""How often 95 % intervals hold the true value, on generated crowds: calibration and effective votes.

    python benchmarks/reproduce/interval_coverage.py              # rows that the results do not have
    python benchmarks/reproduce/interval_coverage.py --parts calibration

Protocol, fixed before the first run. Seeds are 10,000 and up, which no test and no development has used.

- `calibration`: 50, 100 or 200 gold tasks of 1,200; 100 crowds a cell. True value: the accuracy of the calibrated
  labels on the tasks without gold. Sorts: `judges` (10 graders of four ordered grades, in two families that misread the
  same tasks; majority vote), `independent` (four classes, 30 annotators, three
  annotations per task; robust).
- `effective votes`: 100, 300 or 1,000 tasks; 100 crowds a cell. The shares of a task's votes are drawn from a Dirichlet
  distribution around the shares of its class, so the number of independent votes that they are worth is known; without
  a concentration the votes are independent. (Written after a pilot of 30 crowds a cell with other seeds.)
- bias: mean of the estimates less the true values. width: mean width of the intervals. A share of 100 crowds has a
  standard error of .022 at .95.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rows import Parts, run
from settings import aggregator

from crowdzoo import Annotations
from crowdzoo.aggregation import VotesWarning, calibrate
from crowdzoo.quality import effective_votes_interval

RESULTS = Path(__file__).parents[1] / "results" / "interval_coverage.json"
FIRST = 10_000
CROWDS = 100
TASKS = 1200
DRAWN = 1500  # of which the first are kept
GOLD = (50, 100, 200)
Crowd = tuple[Annotations, np.ndarray]


def judges(seed: int) -> Crowd:
    """Graders of an ordered scale of four, in two families that misread the same tasks; and the true grades."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, TASKS, p=[0.45, 0.3, 0.15, 0.1])
    family = rng.normal(0, 0.5, (TASKS, 2))[:, np.arange(10) % 2]
    seen = truth[:, None] + rng.normal(0.4, 0.8, TASKS)[:, None] + family
    seen += rng.normal(0, 0.5, 10) + rng.normal(0, 0.5, (TASKS, 10))
    return Annotations.from_dense(np.clip(np.rint(seen), 0, 3).astype(int), classes=range(4)), truth


def independent(seed: int, num_classes: int = 4, num_annotators: int = 30, redundancy: int = 3) -> Crowd:
    """Annotators whose matrices are drawn around one pattern of confusions; some label far more than others."""
    rng = np.random.default_rng(seed)
    shares = 0.9 ** np.arange(num_classes)
    truth = rng.choice(num_classes, DRAWN, p=shares / shares.sum())
    skill = rng.beta(4, 2, num_annotators)
    slips = rng.dirichlet(np.full(num_classes, 0.7), num_classes)
    np.fill_diagonal(slips, 0)
    slips /= slips.sum(axis=1, keepdims=True)
    matrices = np.empty((num_annotators, num_classes, num_classes))
    for annotator, k in itertools.product(range(num_annotators), range(num_classes)):
        mean = slips[k] * (1 - skill[annotator])
        mean[k] = skill[annotator]
        matrices[annotator, k] = rng.dirichlet(30.0 * mean + 1e-3)
    tasks = np.repeat(np.arange(DRAWN), redundancy)
    activity = rng.pareto(1.2, num_annotators) + 0.1
    activity /= activity.sum()
    who = np.concatenate([rng.choice(num_annotators, redundancy, replace=False, p=activity) for _ in range(DRAWN)])
    limits = np.cumsum(matrices[who, truth[tasks]], axis=1)
    labels = np.minimum((rng.random(tasks.size)[:, None] > limits).sum(axis=1), num_classes - 1)
    names = {"tasks": range(DRAWN), "annotators": range(num_annotators), "classes": range(num_classes)}
    annotations = Annotations.from_arrays(tasks, who, labels, **names)
    return annotations.select_rows(annotations.task_ids < TASKS), truth


CALIBRATED: dict[str, tuple[Callable[[int], Crowd], str]] = {
    "judges": (judges, "majority-vote"),
    "independent": (independent, "robust"),
}


def calibrations(sort: str, number: int) -> Iterator[dict[str, Any]]:
    make, method = CALIBRATED[sort]
    warnings.simplefilter("ignore", VotesWarning)
    for seed in range(FIRST, FIRST + CROWDS):
        annotations, truth = make(seed)
        annotated = np.flatnonzero(annotations.redundancy > 0)
        known = np.random.default_rng(seed).permutation(annotated)[:number]
        gold = np.full(annotations.num_tasks, -1)
        gold[known] = truth[known]
        calibrated = calibrate(aggregator(method).fit(annotations), annotations, gold, seed=seed)
        unknown = np.setdiff1d(annotated, known)
        assert calibrated.accuracy_interval is not None
        yield figures(*calibrated.accuracy_interval, float((calibrated.labels[unknown] == truth[unknown]).mean()))


def figures(value: float, low: float, high: float, truth: float) -> dict[str, Any]:
    return {"covered": float(low <= truth <= high), "bias": round(value - truth, 5), "width": round(high - low, 5)}


WORTHS = (  # classes, votes per task, share of right ones, concentration
    (2, 3, 0.95, None), (2, 3, 0.8, None), (2, 5, 0.7, None), (2, 5, 0.9, None), (4, 3, 0.85, None),
    (4, 5, 0.85, None), (2, 3, 0.8, 2.0), (2, 5, 0.8, 3.0), (2, 7, 0.8, 10.0), (4, 5, 0.75, 3.0), (4, 5, 0.75, 10.0),
    (3, 10, 0.7, 3.0),
)  # fmt: skip


def worths(classes: int, votes: int, right: float, concentration: float | None, tasks: int) -> Iterator[dict[str, Any]]:
    number = float(votes) if concentration is None else votes * (1 + concentration) / (votes + concentration)
    for seed in range(FIRST, FIRST + CROWDS):
        rng = np.random.default_rng(seed)
        shares = np.where(np.eye(classes) > 0, right, (1 - right) / (classes - 1))[rng.integers(classes, size=tasks)]
        if concentration is not None:
            shares = np.stack([rng.dirichlet(concentration * row) for row in shares])
        labels = np.minimum((rng.random((tasks, votes, 1)) > shares.cumsum(axis=1)[:, None]).sum(axis=2), classes - 1)
        who = np.argsort(rng.random((tasks, 12)), axis=1)[:, :votes]
        crowd = Annotations.from_arrays(
            np.repeat(np.arange(tasks), votes), who.ravel(), labels.ravel(), classes=range(classes)
        )
        interval = effective_votes_interval(crowd)
        assert interval is not None
        yield figures(*interval, number)


PARTS: Parts = {
    "effective votes": {
        f"{k} classes, {n} votes, {right:g} right, concentration {c}, {tasks} tasks": partial(
            worths, k, n, right, c, tasks
        )
        for k, n, right, c in WORTHS
        for tasks in (100, 300, 1000)
    },
    "calibration": {f"{sort}, {n} gold": partial(calibrations, sort, n) for sort in CALIBRATED for n in GOLD},
}


if __name__ == "__main__":
    run(RESULTS, PARTS, __doc__)
