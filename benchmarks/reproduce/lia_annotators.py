"""What LIA makes of annotators who are always right or always wrong.

    python benchmarks/reproduce/lia_annotators.py                      # what is missing in the saved results
    python benchmarks/reproduce/lia_annotators.py --parts "added, wordsim"
    python benchmarks/reproduce/lia_annotators.py --print              # the saved results, no training

**Protocol**, fixed before the first run. Sets, features, draws and settings are those of lia.py, and nothing is chosen
by gold.

- added: r = 5 annotations per task of Blue Birds and of word similarity, draws 0 to 2 of lia.py. Two annotators are
  added who answer every task: one by gold, one against it. Rows: majority vote, Dawid-Skene, LIA ("ours" of lia.py) and
  LIA with ridge .1. "accuracy" is that of the labels (LIA: the posterior's); the two cancel each other in a vote, so
  majority vote should stay where it was. "right" and "wrong" are the mean diagonals of the two annotators' confusion
  matrices as the method learnt them, and "told apart" is 1 where the one is the highest and the other the lowest of all
  annotators.
- Bar of the claim that LIA finds annotators who are always right or wrong: "told apart" in every draw of both sets, by
  "ours".
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from lia import SETS, SETTINGS, CrowdSet, fitted_lia
from needed import need
from rows import Parts, run
from settings import aggregator

from crowdzoo.data.annotations import Annotations

__all__ = ["RESULTS", "with_two_added"]

RESULTS = Path(__file__).parents[1] / "results" / "lia_annotators.json"
DRAWS = range(3)
REDUNDANCY = 5
AGGREGATORS = {"majority": "majority-vote", "Dawid-Skene": "dawid-skene"}


def with_two_added(annotations: Annotations, gold: np.ndarray) -> Annotations:
    """The annotations, and those of two annotators more: the last but one says gold of every task, the last the other.

    Args:
        annotations: of two classes.
        gold: class codes of all tasks, [N].
    """
    tasks, number = np.arange(annotations.num_tasks), annotations.num_annotators
    return Annotations(
        annotations.kind,
        np.concatenate([annotations.task_ids, tasks, tasks]),
        np.concatenate([annotations.annotator_ids, np.repeat([number, number + 1], len(tasks))]),
        np.concatenate([annotations.labels, gold, 1 - gold]),
        annotations.tasks,
        np.arange(number + 2),
        annotations.classes,
    )


def added(name: str, row: str) -> Iterator[dict[str, Any]]:
    """Labels, and what is learnt of the two."""
    data: CrowdSet = SETS[name]()
    for seed in DRAWS:
        annotations = with_two_added(data.annotations.restrict(redundancy=REDUNDANCY, seed=seed), data.gold)
        if row in AGGREGATORS:
            result = aggregator(AGGREGATORS[row]).fit(annotations)
            figures, confusions = {"accuracy": float(result.accuracy(data.gold))}, result.confusions
        else:
            fitted = fitted_lia(row, annotations, data, seed, SETTINGS[name])
            posteriors = fitted.model.posteriors(fitted.x, annotations, tasks=annotations.tasks, batch_size=2048)
            figures = {"accuracy": float((posteriors.argmax(axis=1) == data.gold).mean())}
            confusions = fitted.model.annotator_confusions()
        if confusions is not None:
            answering = np.unique(annotations.annotator_ids)
            skills = np.diagonal(confusions, axis1=1, axis2=2).mean(axis=1)[answering]
            figures |= {
                "right": float(skills[-2]),
                "wrong": float(skills[-1]),
                "told apart": float(skills.argmax() == len(answering) - 2 and skills.argmin() == len(answering) - 1),
            }
        yield {"seed": seed, **figures}


PARTS: Parts = {
    f"added, {name}": {row: partial(added, name, row) for row in (*AGGREGATORS, "LIA", "LIA, ridge 0.1")}
    for name in ("wordsim", "bluebirds")
}


if __name__ == "__main__":
    need("bluebirds-lia", "snow2008", "wordsim-lia")
    run(RESULTS, PARTS, __doc__)
