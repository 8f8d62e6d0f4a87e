"""Two more things of today's field on `ccem`: pseudo-labels of tasks that nobody labelled, and conformal sets.

    python benchmarks/reproduce/unlabelled.py            # the sets that the results do not have; needs CROWDZOO_DATA
    python benchmarks/reproduce/unlabelled.py --print    # the tables of the saved results

**Protocol**, fixed before the first run. Sets and settings are those of since_2022.py, fifths in turns, seed 0.

- **Pseudo-labels**: of the tasks that are not hidden half lose their annotations. `ccem` learns from the other half;
  then each task without annotations whose class has a probability of .95 or more (the threshold of Sohn and others:
  FixMatch. NeurIPS 2020) is labelled by the model as one more annotator, and `ccem` learns again from all. Figure:
  accuracy on the hidden tasks less that of the first `ccem`, interval by drawing the tasks again. Pseudo-labels become
  an option if the interval is above zero on a set of people and on a generated one, and below zero on none.
- **Conformal sets** of 90 % (the scores of Sadinle, Lei and Wasserman, JASA 2019: one less the probability): `ccem`
  learns from three fifths, the next one calibrates, and the hidden one is asked. Calibrated on votes (ties at random),
  on ten draws a task from the posterior of `robust` (Stutz and others: Conformal prediction under ambiguous ground
  truth. TMLR 2023), and on gold. Figure: share of hidden tasks whose gold is in the set, and mean size. They
  become a function if the draws' sets hold gold in .88 or more on ten of the twelve sets.

The results go to benchmarks/results/unlabelled.json.
"""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from deep_methods import TRAINING
from needed import need
from rows import run
from settings import LAYERS, batch_size
from since_2022 import sets

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote, Robust
from crowdzoo.comparison.intervals import bootstrap
from crowdzoo.models import TrainingSettings
from crowdzoo.training.instance_training import train

RESULTS = Path(__file__).parents[1] / "results" / "unlabelled.json"
FIFTHS, SURE, LEVEL, DRAWS = 5, 0.95, 0.9, 10


def probabilities(settings: TrainingSettings, x: np.ndarray, crowd: Annotations, kept: np.ndarray) -> np.ndarray:
    """Of all tasks, by `ccem` on the annotations of some."""
    if settings.batch_size is None:
        settings = replace(settings, batch_size=batch_size(len(kept)))
    model, _ = train(settings, x[kept], annotations=crowd.select_tasks(kept), tasks=crowd.tasks[kept])
    return np.asarray(model.predict(x, verbose=0), float)


def with_model(crowd: Annotations, tasks: np.ndarray, classes: np.ndarray, kept: np.ndarray) -> Annotations:
    """The annotations of some tasks, and what the model says of others, as one more annotator."""
    own = np.isin(crowd.task_ids, kept)
    return Annotations.from_arrays(
        np.concatenate([crowd.task_ids[own], tasks]),
        np.concatenate([crowd.annotator_ids[own], np.full(len(tasks), crowd.num_annotators)]),
        np.concatenate([crowd.labels[own], classes]),
        tasks=np.arange(crowd.num_tasks), annotators=np.arange(crowd.num_annotators + 1),
        classes=np.arange(crowd.num_classes),
    )  # fmt: skip


def fifths(crowd: Annotations) -> list[np.ndarray]:
    """Codes of the tasks, at random."""
    labelled = np.flatnonzero(crowd.redundancy > 0)
    return np.array_split(np.random.default_rng(0).permutation(labelled), FIFTHS)


def read(name: str) -> tuple[Any, ...]:
    """Instances, annotations, gold and settings of a set, its tasks called by their codes."""
    x, crowd, gold, settings = sets()[name]()
    x, gold = np.asarray(x), np.asarray(gold)
    known = np.flatnonzero(gold >= 0)
    crowd = with_model(crowd, np.empty(0, int), np.empty(0, int), np.arange(crowd.num_tasks)).select_tasks(known)
    return (
        x[known],
        crowd,
        gold[known],
        TrainingSettings(method="ccem", arguments=LAYERS["ccem"], **{**TRAINING, **settings}),
    )


def pseudo_labels(name: str) -> Any:
    """One dictionary."""
    x, crowd, gold, settings = read(name)
    parts, hits = fifths(crowd), np.zeros((2, crowd.num_tasks))
    added = 0
    for number, hidden in enumerate(parts):
        rest = np.random.default_rng([0, number]).permutation(np.concatenate(parts[:number] + parts[number + 1 :]))
        kept, bare = np.sort(rest[: len(rest) // 2]), np.sort(rest[len(rest) // 2 :])
        first = probabilities(settings, x, crowd, kept)
        sure = bare[first[bare].max(axis=1) >= SURE]
        added += len(sure)
        more = with_model(crowd, sure, first[sure].argmax(axis=1), kept)
        second = probabilities(settings, x, more, np.sort(np.concatenate([kept, sure])))
        for row, estimates in enumerate((first, second)):
            hits[row, hidden] = estimates[hidden].argmax(axis=1) == gold[hidden]
    seen = np.concatenate(parts)
    difference, low, high = bootstrap(hits[1:, seen], hits[:1, seen])
    yield {
        "ccem": hits[0, seen].mean(), "pseudo-labels": hits[1, seen].mean(), "difference": difference, "low": low,
        "high": high, "labelled by the model": added / sum(len(seen) - len(part) for part in parts),
    }  # fmt: skip


def prediction_sets(name: str) -> Any:
    """One dictionary."""
    x, crowd, gold, settings = read(name)
    parts = fifths(crowd)
    rng = np.random.default_rng(0)
    votes = MajorityVote(seed=0).fit(crowd).labels
    posterior = Robust(seed=0).fit(crowd).posteriors
    drawn = (rng.random((crowd.num_tasks, DRAWS, 1)) > np.cumsum(posterior, axis=1)[:, None]).sum(axis=2)
    drawn = np.minimum(drawn, crowd.num_classes - 1)
    truths = {"votes": votes[:, None], "draws": drawn, "gold": gold[:, None]}
    covered: dict[str, list[Any]] = {truth: [] for truth in truths}
    sizes: dict[str, list[Any]] = {truth: [] for truth in truths}
    for number, hidden in enumerate(parts):
        after = (number + 1) % FIFTHS
        kept = np.sort(np.concatenate([part for place, part in enumerate(parts) if place not in (number, after)]))
        estimates = probabilities(settings, x, crowd, kept)
        for truth, labels in truths.items():
            label_probabilities = np.take_along_axis(estimates[parts[after]], labels[parts[after]], axis=1)
            rank = int(np.ceil(label_probabilities.size * LEVEL * (1 + 1 / len(label_probabilities))))
            threshold = (
                np.sort(label_probabilities, axis=None)[::-1][rank - 1] if rank <= label_probabilities.size else 0.0
            )
            inside = estimates[hidden] >= threshold
            covered[truth] += inside[np.arange(len(hidden)), gold[hidden]].tolist()
            sizes[truth] += inside.sum(axis=1).tolist()
    yield {f"{truth}: {what}": np.mean(values[truth]) for truth in truths for what, values in
           (("holds gold", covered), ("size", sizes))}  # fmt: skip


PARTS = {
    "pseudo-labels": {name: partial(pseudo_labels, name) for name in sets()},
    "prediction sets": {name: partial(prediction_sets, name) for name in sets()},
}

if __name__ == "__main__":
    need("music-genre-amt", "bluebirds-lia", "snow2008", "medical-relation-extraction")
    sys.exit(run(RESULTS, PARTS, __doc__))
