"""Speed and memory of the local aggregators compared with crowd-kit and a SciPy-sparse form of Dawid-Skene.

Every run is a process of its own (its peak memory is its own), on the same simulated votes and for the same number of
iterations; engines take turns, so a ratio compares neighbours in time. Answers are compared, not assumed:

    python benchmarks/aggregation.py                                    # all; results/aggregation.json
    python benchmarks/aggregation.py --parts dawid-skene --rows 1e6 --again
    python benchmarks/aggregation.py --print

What is timed is the whole call on a table in memory (`fit` of an `Annotations`; a frame for crowd-kit; arrays of
codes for SciPy): sorting, iterations, posteriors and labels. Code is compiled before, by a run on a few votes.
A process repeats what takes less than a second, nine times at most, and gives the median; so does a row of its runs.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent / "reproduce"))
from rows import run
from run_alone import peak_bytes, run_alone

RESULTS = Path(__file__).parent / "results" / "aggregation.json"
REDUNDANCY = 5
GIB = 2**30
ITERATIONS = 20


@dataclass(frozen=True)
class Scenario:
    """What is run: a number of votes by some annotators in some classes, by whom, and how often."""

    annotations: int
    classes: int
    annotators: int
    engines: tuple[str, ...]
    repeats: int


OURS, SCIPY, CROWDKIT = "crowdzoo", "SciPy", "crowd-kit"
CROWDKIT_CLASSES = {
    "majority-vote": "MajorityVote", "dawid-skene": "DawidSkene", "one-coin": "OneCoinDawidSkene",
}  # fmt: skip
SCENARIOS = {
    "dawid-skene": {
        "1e6": Scenario(10**6, 10, 1000, (OURS, SCIPY, CROWDKIT), 5),
        "1e7": Scenario(10**7, 10, 1000, (OURS, SCIPY), 3),
        "1e8": Scenario(10**8, 10, 10**4, (OURS,), 2),
    },
    "one-coin": {"1e6": Scenario(10**6, 10, 1000, (OURS, CROWDKIT), 3)},
    "glad": {"1e7": Scenario(10**7, 10, 1000, (OURS,), 1)},
    "majority-vote": {"1e6": Scenario(10**6, 10, 1000, (OURS, CROWDKIT), 3)},
}

# === The votes ===


def make_votes(folder: Path, scenario: Scenario) -> None:
    """Writes task, annotator and label codes; annotators are right 40 to 90 % of the time, no pair repeats."""
    rng = np.random.default_rng(0)
    num_tasks = scenario.annotations // REDUNDANCY
    truth = rng.integers(scenario.classes, size=num_tasks, dtype=np.int32)
    skill = rng.uniform(0.4, 0.9, scenario.annotators)
    first = rng.integers(scenario.annotators, size=num_tasks)
    step = max(1, scenario.annotators // 7)
    columns = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, (num_tasks * REDUNDANCY,))
        for name, dtype in (("task", np.int64), ("annotator", np.int64), ("label", np.int64))
    }
    for begin in range(0, num_tasks, 2**20):  # in pieces, for the memory of this process
        part = slice(begin, min(begin + 2**20, num_tasks))
        rows = slice(part.start * REDUNDANCY, part.stop * REDUNDANCY)
        tasks = np.arange(part.start, part.stop)
        annotator = (first[part, None] + step * np.arange(REDUNDANCY)) % scenario.annotators
        right = rng.random(annotator.shape) < skill[annotator]
        label = np.where(right, truth[part, None], rng.integers(scenario.classes, size=annotator.shape))
        columns["task"][rows] = np.repeat(tasks, REDUNDANCY)
        columns["annotator"][rows] = annotator.ravel()
        columns["label"][rows] = label.ravel()


# === One run, in a process of its own ===


def our_run(
    method: str, scenario: Scenario, columns: dict[str, np.ndarray]
) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """`fit` of crowdzoo's aggregator: posteriors and labels."""
    from crowdzoo import Annotations
    from crowdzoo.aggregation import create

    sizes = (int(columns["task"].max()) + 1, scenario.annotators, scenario.classes)
    names = dict(zip(("tasks", "annotators", "classes"), map(np.arange, sizes), strict=True))
    annotations = Annotations("classification", *columns.values(), **names)
    # crowd-kit and SciPy count an iteration as M then E; here the first M-step makes the start
    by_hand = {"max_iter": ITERATIONS - 1, "tol": 0.0}
    settings: dict[str, dict[str, Any]] = {
        "dawid-skene": {**by_hand, "prior": 0.0, "diagonal": 0.0},
        "one-coin": {**by_hand, "right": 0.0, "wrong": 0.0, "class_prior": "estimated", "class_count": 0.0},
        "glad": {"max_iter": ITERATIONS, "tol": 0.0},
        "majority-vote": {},
    }
    aggregator = create(method, **settings[method])
    aggregator.fit(
        Annotations.from_arrays([0, 0, 1], [0, 1, 0], [0, 1, scenario.classes - 1], classes=names["classes"])
    )

    def run() -> tuple[np.ndarray, np.ndarray]:
        result = aggregator.fit(annotations)
        return result.posteriors, result.labels

    return run


def scipy_run(
    method: str, scenario: Scenario, columns: dict[str, np.ndarray]
) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Dawid-Skene as two sparse products an iteration: log joint = C log pi, counts = C' q."""
    import scipy.sparse

    task, annotator, label = columns["task"], columns["annotator"], columns["label"]
    num_tasks, (R, K) = int(task.max()) + 1, (scenario.annotators, scenario.classes)

    def run() -> tuple[np.ndarray, np.ndarray]:
        votes = scipy.sparse.csr_matrix((np.ones(len(task)), (task, annotator * K + label)), (num_tasks, R * K))
        votes_of_annotators = votes.T.tocsr()
        q = np.bincount(task * K + label, minlength=num_tasks * K).reshape(num_tasks, K).astype(float)
        q /= q.sum(axis=1, keepdims=True)
        for _ in range(ITERATIONS):
            counts = (votes_of_annotators @ q).reshape(R, K, K)
            totals = counts.sum(axis=1, keepdims=True)
            pi = np.divide(counts, totals, out=np.full_like(counts, 1 / K), where=totals > 0)
            np.log(np.maximum(pi, np.finfo(float).tiny, out=pi), out=pi)
            classes = q.sum(axis=0)
            log_prior = np.log(classes / classes.sum())
            q = votes @ pi.reshape(R * K, K)
            q += log_prior
            q -= q.max(axis=1, keepdims=True)
            np.exp(q, out=q)
            q /= q.sum(axis=1, keepdims=True)
        return q, q.argmax(axis=1)

    return run


def crowdkit_run(
    method: str, scenario: Scenario, columns: dict[str, np.ndarray]
) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """crowd-kit's class of the same method."""
    import crowdkit.aggregation
    import pandas as pd

    frame = pd.DataFrame({"task": columns["task"], "worker": columns["annotator"], "label": columns["label"]})
    settings = {} if method == "majority-vote" else {"n_iter": ITERATIONS}
    aggregator = getattr(crowdkit.aggregation, CROWDKIT_CLASSES[method])(**settings)
    if hasattr(aggregator, "tol"):
        aggregator.tol = -np.inf  # its loss may fall: 0 would stop it early
    num_tasks = int(columns["task"].max()) + 1

    def run() -> tuple[np.ndarray, np.ndarray]:
        probabilities = aggregator.fit_predict_proba(frame).reindex(
            index=range(num_tasks), columns=range(scenario.classes)
        )
        q = probabilities.fillna(0.0).to_numpy(np.float64)
        return q, q.argmax(axis=1)

    return run


ENGINES = {OURS: our_run, SCIPY: scipy_run, CROWDKIT: crowdkit_run}


def measure(engine: str, method: str, scenario: Scenario, folder: Path) -> dict[str, float]:
    """What a call takes; leaves posteriors and labels in the folder."""
    warnings.simplefilter("ignore")
    columns = {name: np.load(folder / f"{name}.npy") for name in ("task", "annotator", "label")}
    call, walls = ENGINES[engine](method, scenario, columns), []
    while sum(walls) < 1 and len(walls) < 9:  # short runs are at the mercy of whatever else the machine does
        started = time.perf_counter()
        posteriors, labels = call()
        walls.append(time.perf_counter() - started)
    took = {"seconds": statistics.median(walls), "peak GiB": peak_bytes() / GIB}
    np.save(folder / f"{engine}.posteriors.npy", posteriors)
    np.save(folder / f"{engine}.labels.npy", labels)
    return took


def row(method: str, name: str) -> Iterator[dict[str, float]]:
    """Medians of our runs, times as long as they take others (of neighbouring runs), and how far answers differ."""
    scenario = SCENARIOS[method][name]
    runs: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        make_votes(Path(folder), scenario)
        for _ in range(scenario.repeats):
            for engine in scenario.engines:
                took = run_alone(__file__, ["--worker", engine, method, name, folder], f"{engine}, {method}, {name}")
                if took is None:
                    return
                if engine == OURS:
                    ours = figures = took
                else:
                    figures = {f"{engine} takes, times": took["seconds"] / ours["seconds"]}
                for figure, value in figures.items():
                    runs.setdefault(figure, []).append(value)
        for engine in scenario.engines[1:]:
            labels, posteriors = ([np.load(Path(folder, f"{source}.{part}.npy")) for source in (engine, OURS)]
                                  for part in ("labels", "posteriors"))  # fmt: skip
            runs[f"{engine}: labels that differ"] = [float((labels[0] != labels[1]).sum())]
            runs[f"{engine}: posteriors differ by"] = [float(np.abs(np.subtract(*posteriors)).max())]
    yield {figure: statistics.median(values) for figure, values in runs.items()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        engine, method, name, folder = sys.argv[2:]
        print("RESULT" + json.dumps(measure(engine, method, SCENARIOS[method][name], Path(folder))))
    else:
        parts = {
            method: {name: functools.partial(row, method, name) for name in scenarios}
            for method, scenarios in SCENARIOS.items()
        }
        run(RESULTS, parts, __doc__, keras=False)
