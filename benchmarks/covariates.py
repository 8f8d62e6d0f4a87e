"""Effects of covariates in annotator-bradley-terry: how often the interval of 95 % holds them.

    python benchmarks/covariates.py            # simulated judgments; five minutes
    python benchmarks/covariates.py --print    # the table of the saved results

**Simulated.** Models of normal scores are compared by five judges with log-normal slopes (.3), normal position biases
(.3) and a common effect of length per standard deviation of the length of one model's answers. The usual length of a
model correlates with its score. 300 crowds a cell, seeds 40,000 and up, written before the first run of this file (a
pilot on other seeds had 200 crowds a cell). "covered" has a standard error of .013 at .95.

Cells: 10 models with 40, 80 and 160 comparisons each, 60 with 27; effect 0 and .5; correlation 0, .5 and .9; and with
equal answers, drawn and fitted by Davidson's form, and by that of Rao and Kupper. (The first run drew them by Rao and
Kupper's and fitted Davidson's, in which the unit of scores and effects is another one: .47 covered.)
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent / "reproduce"))
from rows import Parts, run

from crowdzoo import Annotations
from crowdzoo.aggregation import AnnotatorBradleyTerry

RESULTS = Path(__file__).parent / "results" / "covariates.json"
SEED, CROWDS = 40_000, 300
USUAL = {"models": 10, "each": 160, "effect": 0.5, "correlation": 0.5, "ties": "none"}
CELLS: tuple[dict[str, Any], ...] = (
    {}, {"each": 80}, {"each": 40}, {"models": 60, "each": 27}, {"effect": 0.0}, {"correlation": 0.0},
    {"correlation": 0.9}, {"ties": "davidson"}, {"ties": "rao-kupper"},
)  # fmt: skip


def crowd(seed: int, models: int, each: int, effect: float, correlation: float, ties: str) -> Any:
    """Judgments, and the lengths of both answers, [A, 2]."""
    rng, number = np.random.default_rng(seed), models * each // 2
    scores = rng.normal(size=models)
    usual = correlation * scores + np.sqrt(1 - correlation**2) * rng.normal(size=models)
    left, who = rng.integers(0, models, number), rng.integers(0, 5, number)
    right = (left + rng.integers(1, models, number)) % models
    length = np.stack([usual[left], usual[right]], axis=1) + rng.normal(size=(number, 2))
    slopes, biases = np.exp(rng.normal(0, 0.3, 5)), rng.normal(0, 0.3, 5)
    lead = slopes[who] * (scores[left] - scores[right]) + biases[who] + effect * (length[:, 0] - length[:, 1])
    if ties == "davidson":
        odds = np.exp(np.stack([lead / 2, -lead / 2, np.zeros(number)], axis=1))
        answers = (rng.random((number, 1)) * odds.sum(axis=1, keepdims=True) > odds.cumsum(axis=1)).sum(axis=1)
        label = np.array(["left", "right", "equal"])[answers]
    else:
        lead = lead + rng.logistic(size=number)
        label = np.where(np.abs(lead) < 0.6 * (ties == "rao-kupper"), "equal", np.where(lead > 0, "left", "right"))
    return Annotations.from_arrays(left, who, label, right=right, kind="preference", on_duplicate="all"), length


def cell(place: int, changed: dict[str, float]) -> Iterator[dict[str, Any]]:
    """Coverage, mean error and mean standard error of the effect."""
    settings: Any = USUAL | changed
    pairs = []
    for number in range(CROWDS):
        judgments, length = crowd(SEED + 1000 * place + number, **settings)
        aggregator = AnnotatorBradleyTerry(ties="davidson" if settings["ties"] == "none" else settings["ties"])
        pairs.append(aggregator.fit(judgments, covariates={"length": length}).effects["length"])
    effects, errors = np.array(pairs).T
    off = effects - settings["effect"]
    yield {
        "covered": float((np.abs(off) < 1.96 * errors).mean()),
        "off": float(off.mean()),
        "spread": float(off.std()),
        "error": float(errors.mean()),
    }


PARTS: Parts = {
    "effect of length": {
        ", ".join(f"{name} {value}" for name, value in (USUAL | changed).items()): partial(cell, place, changed)
        for place, changed in enumerate(CELLS)
    }
}

if __name__ == "__main__":
    run(RESULTS, PARTS, __doc__, keras=False)
