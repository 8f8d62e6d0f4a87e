"""Preferences between arguments: what methods predict of held-out judgments.

    python benchmarks/reproduce/preferences.py             # all that is missing in the results
    python benchmarks/reproduce/preferences.py --print     # the tables of the saved results

Data: Habernal and Gurevych, "Which argument is more convincing?", ACL 2016; the 24 topics in `convincing-arguments` of
the folder that CROWDZOO_DATA names. Five annotators judged each pair of arguments as left, right or equal.

**Protocol**, fixed before the first run. A fifth of the judgments, drawn at random (seeds 0 to 4), is held out; methods
with their default settings are fitted to the others. Figures are the mean log-likelihood of a held-out judgment, in
nats, given its pair and its annotator, and the share of held-out judgments that are the most probable answer. Rows to
compare with: "frequencies" gives every judgment the shares of the three answers among the others; "votes" the votes on
the pair, with as many pseudo-votes as three, spread by those shares. Topics with even numbers decide the default method
(the highest log-likelihood); topics with odd numbers are what is reported.
"""

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from needed import need
from rows import Parts, run

from crowdzoo.aggregation import create
from crowdzoo.datasets import data_folder
from crowdzoo.tables import Annotations

RESULTS = Path(__file__).parents[1] / "results" / "preferences.json"
SEEDS = range(5)
HALVES = ("even", "odd")
COMMON = {"max_iter": 1000, "tol": 1e-4, "ties": "davidson", "prior": 0.5}
METHODS: dict[str, dict[str, Any]] = {
    "bradley-terry": {**COMMON, "position_bias": False},
    "noisy-bradley-terry": {**COMMON, "right": 2.0, "wrong": 1.0, "guess": 1.0},
    "crowd-bt": {**COMMON, "right": 4.0, "wrong": 1.0},
    "annotator-bradley-terry": {**COMMON, "slope_variance": 0.25, "bias_variance": 0.25, "tie_variance": 1.0},
}


def rows_of(name: str) -> list[dict[str, str]]:
    """Rows of a file of the data set."""
    with open(data_folder() / "convincing-arguments" / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def judgments() -> Annotations:
    """All judgments, kind preference; an annotator who judged a pair twice keeps both."""
    pairs = {row["task"]: row for row in rows_of("pairs")}
    rows = [(pairs[row["task"]], row) for row in rows_of("annotations")]
    return Annotations.from_arrays(
        [pair["left"] for pair, _ in rows],
        [int(row["annotator"]) for _, row in rows],
        [row["label"] for _, row in rows],
        right=[pair["right"] for pair, _ in rows],
        kind="preference",
        tasks=[row["argument"] for row in rows_of("arguments")],
    )


@cache
def topics() -> np.ndarray:
    """Topic of each argument, int64 [N]."""
    return np.array([int(row["topic"]) for row in rows_of("arguments")])


def only(chosen: np.ndarray) -> Annotations:
    """Judgments of the arguments with these topics, all annotators."""
    return judgments().select_tasks(np.flatnonzero(np.isin(topics(), chosen)))


def shares(crowd: Annotations) -> np.ndarray:
    """Shares of the three answers, [3]."""
    return np.bincount(crowd.labels, minlength=3) / len(crowd)


def vote_table(crowd: Annotations, num_tasks: int) -> dict[int, np.ndarray]:
    """Votes of each pair, by its key."""
    pairs, table = crowd.pairs()
    votes = np.zeros((len(pairs), 3))
    np.add.at(votes, (table.task_ids, table.labels), 1)
    return dict(zip((pairs[:, 0] * num_tasks + pairs[:, 1]).tolist(), votes, strict=True))


def held_out(method: str, half: str) -> Iterator[dict[str, Any]]:
    """One run a seed."""
    numbers = np.unique(topics())
    crowd = only(numbers[numbers % 2 == HALVES.index(half)])
    for seed in SEEDS:
        held = np.random.default_rng(seed).random(len(crowd)) < 0.2
        train, test = crowd.select_rows(~held), crowd.select_rows(held)
        common = shares(train)
        if method == "frequencies":
            probabilities = np.tile(common, (len(test), 1))
        elif method == "votes":
            votes, keys = vote_table(train, len(crowd.tasks)), test.task_ids * len(crowd.tasks) + test.right_ids
            counts = np.array([votes.get(key, np.zeros(3)) for key in keys.tolist()]) + 3 * common
            probabilities = counts / counts.sum(axis=1, keepdims=True)
        else:
            probabilities = create(method, kind="preference", **METHODS[method]).fit(train).answer_probabilities(test)
        likelihoods = probabilities[np.arange(len(test)), test.labels]
        right = float((probabilities.argmax(axis=1) == test.labels).mean())
        yield {"seed": str(seed), "log-likelihood": float(np.log(likelihoods).mean()), "share right": right}


PARTS: Parts = {
    f"held-out, {half} topics": {
        row: (lambda row=row, half=half: held_out(row, half)) for row in ("frequencies", "votes", *METHODS)
    }
    for half in HALVES
}

if __name__ == "__main__":
    need("convincing-arguments")
    run(RESULTS, PARTS, __doc__)
