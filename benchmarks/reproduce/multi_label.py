"""Several labels a task on a real set: sentences, and which of 12 relations hold between two terms.

    python benchmarks/reproduce/multi_label.py            # rows that the results do not have

Medical relation extraction (Dumitrache, Aroyo and Welty): an annotator marks any number of relations of a sentence; the
answers "none" and "other" stand for no label. Experts say of 975 sentences whether CAUSES holds and of 621 whether
TREATS does; the other labels have no gold. Where an annotator answered a sentence twice, the first counts.

A row is a method, with its defaults; nothing was chosen. `plain`: accuracy and F1 on the experts' sentences. `gold`: of
each label 200 of the experts' sentences are known, five draws at random: accuracy on the others where the method takes
them as gold, and where the label is calibrated with them; and whether the interval covers that accuracy.
"""

import csv
import gzip
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rows import Parts, run

from crowdzoo import Annotations
from crowdzoo.aggregation import MultiLabel
from crowdzoo.datasets import data_folder

RESULTS = Path(__file__).parents[1] / "results" / "multi_label.json"
METHODS = ("majority-vote", "one-coin", "dawid-skene", "hierarchical-dawid-skene", "robust", "dependent-dawid-skene")
NOT_LABELS = ("[NONE]", "[OTHER]")
LABELS = {"[CAUSES]": "cause", "[TREATS]": "treat"}
KNOWN, DRAWS = 200, 5


def medical() -> tuple[Annotations, dict[str, np.ndarray]]:
    """Answers, and of two labels 1, 0, or -1 where no expert says, int [N] each."""
    folder = data_folder() / "medical-relation-extraction"
    task, who, said = [], [], []
    seen = set()
    with gzip.open(folder / "raw_RelEx_noip.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            answer = row["sent_id"].partition("-")[0], row["_worker_id"]
            if answer in seen:
                continue
            seen.add(answer)
            labels = {*row["step_1_select_the_valid_relations"].split("\n")} - {"", *NOT_LABELS}
            for label in sorted(labels) or ["(none)"]:
                task.append(answer[0])
                who.append(answer[1])
                said.append(label)
    annotations = Annotations.from_arrays(task, who, said, on_duplicate="all")
    gold = {}
    for label, name in LABELS.items():
        with gzip.open(folder / f"ground_truth_{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
            expert = {row["SID"]: {"1": 1, "-1": 0}.get(row["expert"], -1) for row in csv.DictReader(file)}
        gold[label] = np.array([expert.get(str(name), -1) for name in annotations.tasks])
    return annotations, gold


def plain(method: str) -> Iterator[dict[str, Any]]:
    annotations, gold = medical()
    found = MultiLabel(method).fit(annotations)
    row: dict[str, Any] = {}
    for label, accuracy in found.accuracy(gold).items():
        known = gold[label] >= 0
        chosen, holds = found.chosen[known, found.label_names.tolist().index(label)], gold[label][known] == 1
        row[f"{label}, accuracy"] = round(accuracy, 4)
        row[f"{label}, F1"] = round(float(2 * (chosen & holds).sum() / (chosen.sum() + holds.sum())), 4)
    yield row


def with_gold(method: str) -> Iterator[dict[str, Any]]:
    annotations, gold = medical()
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        some, rest = {}, {}
        for label, codes in gold.items():
            drawn = rng.choice(np.flatnonzero(codes >= 0), KNOWN, replace=False)
            some[label] = np.where(np.isin(np.arange(len(codes)), drawn), codes, -1)
            rest[label] = np.where(some[label] >= 0, -1, codes)
        taken = MultiLabel(method).fit(annotations, some).accuracy(rest)
        better = MultiLabel(method).fit(annotations, some, calibrated=True)
        right = better.accuracy(rest)
        row: dict[str, Any] = {"seed": str(seed)}
        for label in gold:
            _, low, high = better.accuracy_intervals[better.label_names.tolist().index(label)]
            row[f"{label}, as gold"] = round(taken[label], 4)
            row[f"{label}, calibrated"] = round(right[label], 4)
            row[f"{label}, covered"] = float(low <= right[label] <= high)
        yield row


def parts() -> Parts:
    return {
        "plain": {method: partial(plain, method) for method in METHODS},
        "gold": {method: partial(with_gold, method) for method in ("majority-vote", "dawid-skene", "robust")},
    }


if __name__ == "__main__":
    run(RESULTS, parts(), __doc__)
