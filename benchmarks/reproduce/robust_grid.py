"""robust beside majority vote, Dawid-Skene and its own parts on generated crowds whose annotators are independent.

    python benchmarks/reproduce/robust_grid.py            # rows that the results do not have
    python benchmarks/reproduce/robust_grid.py --again

A row is a number of classes and of annotators; its 18 runs are crowds of 1,500 tasks: 2, 3 or 7 annotations a task;
class frequencies equal, falling by a tenth or by half from class to class; rows of the annotators' matrices drawn from
Dirichlet distributions with concentration 3 or 30. Annotators are right with a probability from Beta(4, 2), confuse
classes alike on average, and some make far more annotations than others (Pareto). Accuracies count ties by chance.
"""

import itertools
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rows import Parts, run

from crowdzoo import Annotations
from crowdzoo.aggregation import VotesWarning, create

RESULTS = Path(__file__).parents[1] / "results" / "robust_grid.json"
METHODS = ("majority-vote", "robust", "hierarchical-dawid-skene", "one-coin", "dawid-skene")
SKEWS = {"equal": 1.0, "falling": 0.9, "steep": 0.5}
TASKS = 1500


def crowd(
    seed: int, num_classes: int, num_annotators: int, redundancy: int, skew: float, concentration: float
) -> tuple[Annotations, np.ndarray]:
    """Annotations and true classes, [N]."""
    rng = np.random.default_rng(seed)
    shares = skew ** np.arange(num_classes)
    truth = rng.choice(num_classes, TASKS, p=shares / shares.sum())
    skill = rng.beta(4, 2, num_annotators)
    slips = rng.dirichlet(np.full(num_classes, 0.7), num_classes)
    np.fill_diagonal(slips, 0)
    slips /= slips.sum(axis=1, keepdims=True)
    matrices = np.empty((num_annotators, num_classes, num_classes))
    for annotator, k in itertools.product(range(num_annotators), range(num_classes)):
        mean = slips[k] * (1 - skill[annotator])
        mean[k] = skill[annotator]
        matrices[annotator, k] = rng.dirichlet(concentration * mean + 1e-3)
    tasks = np.repeat(np.arange(TASKS), redundancy)
    activity = rng.pareto(1.2, num_annotators) + 0.1
    activity /= activity.sum()
    who = np.concatenate([rng.choice(num_annotators, redundancy, replace=False, p=activity) for _ in range(TASKS)])
    limits = np.cumsum(matrices[who, truth[tasks]], axis=1)
    said = np.minimum((rng.random(tasks.size)[:, None] > limits).sum(axis=1), num_classes - 1)
    names = {"tasks": range(TASKS), "annotators": range(num_annotators), "classes": range(num_classes)}
    return Annotations.from_arrays(tasks, who, said, **names), truth


def crowds(num_classes: int, num_annotators: int) -> Iterator[tuple[dict[str, str], Annotations, np.ndarray]]:
    """What a crowd is, its annotations and its true classes."""
    cells = itertools.product((2, 3, 7), SKEWS, (3.0, 30.0))
    for seed, (redundancy, skew, concentration) in enumerate(cells):
        about = {"cell": f"{redundancy} annotations, {skew}, concentration {concentration:g}", "seed": str(seed)}
        yield about, *crowd(seed, num_classes, num_annotators, redundancy, SKEWS[skew], concentration)


def runs(num_classes: int, num_annotators: int) -> Iterator[dict[str, Any]]:
    warnings.simplefilter("ignore", VotesWarning)
    for found, annotations, truth in crowds(num_classes, num_annotators):
        results = {method: create(method).fit(annotations) for method in METHODS}
        accuracies = {method: round(result.expected_accuracy(truth), 4) for method, result in results.items()}
        margin = round(accuracies["robust"] - accuracies["majority-vote"], 4)
        yield {**found, **accuracies, "margin": margin}


ROWS = tuple(itertools.product((2, 4, 15), (15, 300)))


def main() -> None:
    parts: Parts = {"grid": {f"{k} classes, {r} annotators": partial(runs, k, r) for k, r in ROWS}}
    run(RESULTS, parts, __doc__)


if __name__ == "__main__":
    main()
