"""CROWDLAB and ActiveLab beside cleanlab, in one process: seconds, and the largest difference of their numbers.

    uv venv build/cleanlab --python 3.11
    uv pip install --python build/cleanlab/bin/python . cleanlab==2.9.0
    build/cleanlab/bin/python benchmarks/consensus.py

Each row is a random crowd: N tasks, R annotators, labels a task, four classes. Ours and cleanlab's runs alternate,
three times; the fastest of each counts (processor time). cleanlab takes a dense frame [N, R], which is made
beforehand and not counted. Its ActiveLab searches a temperature of its own (see `active_scores`); ours is given that
one, and so has less to do.
"""

import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crowdzoo import Annotations
from crowdzoo.quality import active_scores, crowdlab

RESULTS = Path(__file__).parent / "results" / "consensus.json"
CROWDS = ((1_000, 50, 5), (10_000, 200, 5), (20_000, 400, 5))
CLASSES = 4
ROUNDS = 3


def crowd(tasks: int, annotators: int, labels: int) -> tuple[Annotations, pd.DataFrame, np.ndarray]:
    """Annotations, the same as a dense frame, and a classifier's probabilities [N, K]."""
    rng = np.random.default_rng(0)
    truth = rng.integers(CLASSES, size=tasks)
    skill = rng.uniform(0.5, 0.95, annotators)
    who = np.argsort(rng.random((tasks, annotators)), axis=1)[:, :labels]
    right = rng.random(who.shape) < skill[who]
    said = np.where(right, truth[:, None], rng.integers(CLASSES, size=who.shape))
    dense = np.full((tasks, annotators), np.nan)
    np.put_along_axis(dense, who, said.astype(float), axis=1)
    task = np.repeat(np.arange(tasks), labels)
    annotations = Annotations.from_arrays(
        task, who.ravel(), said.ravel(), tasks=np.arange(tasks), annotators=np.arange(annotators),
        classes=np.arange(CLASSES),
    )  # fmt: skip
    odds = np.exp(rng.normal(size=(tasks, CLASSES)) + 2 * np.eye(CLASSES)[truth])
    return annotations, pd.DataFrame(dense), odds / odds.sum(axis=1, keepdims=True)


def fastest(*calls: Callable[[], Any]) -> tuple[list[float], list[Any]]:
    """Processor seconds of the fastest round of each call, and what each gave."""
    seconds, found = [np.inf] * len(calls), [None] * len(calls)
    for _ in range(ROUNDS):
        for place, call in enumerate(calls):
            started = time.process_time()
            found[place] = call()
            seconds[place] = min(seconds[place], time.process_time() - started)
    return seconds, found


def row(tasks: int, annotators: int, labels: int) -> dict[str, Any]:
    """Times and differences of one crowd."""
    from cleanlab import multiannotator
    from cleanlab.internal.multiannotator_utils import find_best_temp_scaler

    annotations, frame, probabilities = crowd(tasks, annotators, labels)
    quality, (ours, theirs) = fastest(
        lambda: crowdlab(annotations, probabilities),
        lambda: multiannotator.get_label_quality_multiannotator(frame, probabilities, verbose=False),
    )
    gap = np.abs(ours.quality - theirs["label_quality"]["consensus_quality_score"].to_numpy()).max()
    temperature = float(find_best_temp_scaler(frame.to_numpy(), probabilities))
    scores, (mine, other) = fastest(
        lambda: active_scores(annotations, probabilities, temperature=temperature),
        lambda: multiannotator.get_active_learning_scores(frame, probabilities)[0],
    )
    return {
        "tasks": tasks, "annotators": annotators, "labels a task": labels,
        "crowdlab": round(quality[0], 4), "cleanlab": round(quality[1], 3), "times": round(quality[1] / quality[0], 1),
        "difference": float(gap),
        "active_scores": round(scores[0], 4), "cleanlab's": round(scores[1], 3),
        "times as fast": round(scores[1] / scores[0], 1),
        "difference of scores": float(np.abs(mine - other).max()),
    }  # fmt: skip


if __name__ == "__main__":
    rows = []
    for sizes in CROWDS:
        rows.append(row(*sizes))
        print(rows[-1], flush=True)
    names = ("crowdzoo", "cleanlab", "numpy", "pandas")
    stack = {**{name: version(name) for name in names}, "python": platform.python_version()}
    RESULTS.write_text(json.dumps({"rows": rows, "stack": stack}, indent=1) + "\n", encoding="utf-8")
