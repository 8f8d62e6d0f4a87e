"""Posteriors corrected by 50, 200 or 500 gold tasks, compared with other uses of the same gold tasks.

    python benchmarks/reproduce/calibration.py                     # all rows that the results do not have

Reads `llm-judges` below CROWDZOO_DATA. A row is a method and a number of gold
tasks; a run is one draw of the gold tasks, the same for all rows of a number. What is measured is measured on
the tasks of known class that are not gold: `raw`, the method's accuracy; `accuracy` after `calibrate`; `judge`, of the
annotator who is right most often on the gold tasks (with 20 of them at least; where the annotator said nothing, the
majority vote); `trees`, of 500 extremely randomised trees on the annotators' labels (one-hot), fitted on the gold;
`probability`, the mean probability of the calibrated labels; `ece`, their expected calibration error in ten bins of
equal width; `covered`, 1 if the interval has the accuracy.

The form of `calibrate` was chosen on other sets and on generated judges. Its prior is that of `benchmarks/gold.py`
without the families of the set's fold. (The weights of `robust` that ship were trained on these sets, too.)
"""

import json
import sys
import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from needed import need
from rows import Parts, run
from settings import aggregator
from sklearn.ensemble import ExtraTreesClassifier

sys.path.insert(0, str(Path(__file__).parents[1]))
from real_crowds import CROWDS, fold_of, real_sets

from crowdzoo import Annotations
from crowdzoo.aggregation import Aggregation, VotesWarning, calibrate

module = sys.modules["crowdzoo.aggregation.calibration"]
RESULTS = Path(__file__).parents[1] / "results" / "calibration.json"
PRIORS = json.loads((RESULTS.parent / "gold.json").read_text(encoding="utf-8"))["prior"]
METHODS = ("majority-vote", "one-coin", "dawid-skene", "robust")
NUMBERS = (50, 200, 500)
DRAWS = 20
BINS = 10
LEAST_SEEN = 20


@cache
def read(name: str) -> tuple[Annotations, np.ndarray]:
    _, annotations, gold = next(real_sets((name,)))
    return annotations, gold


@cache
def fitted(name: str, method: str) -> Aggregation:
    warnings.simplefilter("ignore", VotesWarning)
    return aggregator(method).fit(read(name)[0])


def table_of(annotations: Annotations) -> np.ndarray:
    """Labels, [N, R], -1 where missing."""
    table = np.full((annotations.num_tasks, annotations.num_annotators), -1)
    table[annotations.task_ids, annotations.annotator_ids] = annotations.labels
    return table


@cache
def peers(name: str, number: int, seed: int) -> dict[str, float]:
    """Accuracies of the annotator and of the trees that the gold tasks choose."""
    annotations, gold = read(name)
    inside, outside = draw(gold, number, seed)
    table = table_of(annotations)[np.concatenate([inside, outside])]
    seen, right = table[:number] >= 0, table[:number] == gold[inside][:, None]
    share = np.where(seen.sum(axis=0) >= LEAST_SEEN, right.sum(axis=0) / np.maximum(seen.sum(axis=0), 1), -1)
    best = table[number:, share.argmax()]
    votes = aggregator("majority-vote").fit(annotations).labels[outside]
    chosen = np.where(best >= 0, best, votes) if share.max() >= 0 else votes
    hot = (table[:, :, None] == np.arange(annotations.num_classes)).reshape(len(table), -1)
    trees = ExtraTreesClassifier(500, random_state=seed).fit(hot[:number], gold[inside])
    return {
        "judge": float((chosen == gold[outside]).mean()),
        "trees": float((trees.predict(hot[number:]) == gold[outside]).mean()),
    }


def draw(gold: np.ndarray, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Gold tasks, and the others of known class."""
    known = np.random.default_rng(seed).permutation(np.flatnonzero(gold >= 0))
    return known[:number], known[number:]


def calibration_error(probability: np.ndarray, right: np.ndarray) -> float:
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, probability - right, BINS)
    return float(np.abs(gaps).sum() / len(right))


def runs(name: str, method: str, number: int) -> Iterator[dict[str, Any]]:
    annotations, gold = read(name)
    raw = fitted(name, method)
    candidates = module._candidates(raw, annotations, 0)  # the same in every draw
    prior = PRIORS[str(fold_of(CROWDS[name].family))]
    for seed in range(DRAWS):
        inside, outside = draw(gold, number, seed)
        known_gold = np.full(len(gold), -1)
        known_gold[inside] = gold[inside]
        with patch.multiple(module, _candidates=lambda *_: candidates, PRIOR=prior):
            result = calibrate(raw, annotations, known_gold, seed=seed)
        probability = result.posteriors[outside].max(axis=1)
        right = result.labels[outside] == gold[outside]
        assert result.accuracy_interval is not None
        _, low, high = result.accuracy_interval
        row = {
            "seed": str(seed),
            "raw": raw.accuracy(np.where(known_gold >= 0, -1, gold)),
            "accuracy": float(right.mean()),
            **peers(name, number, seed),
            "probability": float(probability.mean()),
            "gap": float(abs(probability.mean() - right.mean())),
            "ece": calibration_error(probability, right),
            "covered": float(low <= right.mean() <= high),
        }
        yield {key: value if isinstance(value, str) else round(value, 4) for key, value in row.items()}


PARTS: Parts = {
    "llm-judges": {
        f"{method}, {number}": partial(runs, "llm-judges", method, number) for number in NUMBERS for method in METHODS
    }
}


if __name__ == "__main__":
    need(CROWDS["llm-judges"].place)
    run(RESULTS, PARTS, __doc__)
