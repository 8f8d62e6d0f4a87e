"""Speed and memory of the local aggregators beside crowd-kit, a SciPy-sparse form of Dawid-Skene, and each other.

Every run is a process of its own (its peak memory is its own), on the same simulated votes and for the same number of
iterations; engines take turns, so a ratio compares neighbours in time. Answers are compared, not assumed:

    python benchmarks/aggregation.py                        # all, 20 minutes on two cores; results/aggregation.json
    python benchmarks/aggregation.py --only 1e6 --no-save   # scenarios whose name contains "1e6"
    python benchmarks/aggregation.py --only robust          # `robust` beside Dawid-Skene, each until it converges
    python benchmarks/aggregation.py --list

What is timed is the whole call on a table in memory (`fit` of an `Annotations`; of a frame for crowd-kit; arrays of
codes for SciPy): sorting, iterations, posteriors and labels. Code is compiled before, by a run on a few votes.
A process repeats what takes less than a second, nine times at most, and gives the median.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "aggregation.json"
REDUNDANCY = 5
GIB = 2**30


@dataclass(frozen=True)
class Scenario:
    """What is run: votes of R annotators in K classes, a method, and who runs it."""

    name: str
    method: str
    annotations: int
    classes: int
    annotators: int
    engines: tuple[str, ...]
    iterations: int = 20  # 0: until the method converges, with its own settings
    repeats: int = 5
    prior: float = 0.0  # of Dawid-Skene; 0 leaves annotators of ten votes to chance, and to rounding


OURS, SCIPY, CROWDKIT, ROBUST = "crowdzoo", "scipy", "crowd-kit", "crowdzoo, robust"
CROWDKIT_CLASSES = {
    "majority-vote": "MajorityVote", "dawid-skene": "DawidSkene", "one-coin": "OneCoinDawidSkene", "glad": "GLAD",
}  # fmt: skip
SCENARIOS = (
    Scenario("ds 1e5, K=10", "dawid-skene", 10**5, 10, 100, (OURS, SCIPY, CROWDKIT)),
    Scenario("ds 1e6, K=2", "dawid-skene", 10**6, 2, 1000, (OURS, SCIPY, CROWDKIT), repeats=3),
    Scenario("ds 1e6, K=10", "dawid-skene", 10**6, 10, 1000, (OURS, SCIPY, CROWDKIT)),
    Scenario("ds 1e6, K=100", "dawid-skene", 10**6, 100, 1000, (OURS, SCIPY, CROWDKIT), repeats=1),
    Scenario("ds 1e7, K=10", "dawid-skene", 10**7, 10, 1000, (OURS, SCIPY), repeats=3),
    Scenario("ds 1e7, K=10, R=1e6", "dawid-skene", 10**7, 10, 10**6, (OURS, SCIPY), repeats=1, prior=0.01),
    Scenario("growth 1e6", "dawid-skene", 10**6, 10, 10**4, (OURS,), repeats=5),
    Scenario("growth 1e7", "dawid-skene", 10**7, 10, 10**4, (OURS,), repeats=3),
    Scenario("growth 1e8", "dawid-skene", 10**8, 10, 10**4, (OURS,), repeats=2),
    Scenario("ds 1e8, K=2, R=1e6", "dawid-skene", 10**8, 2, 10**6, (OURS,), repeats=1),
    Scenario("one-coin 1e5, K=10", "one-coin", 10**5, 10, 100, (OURS, CROWDKIT)),
    Scenario("one-coin 1e6, K=10", "one-coin", 10**6, 10, 1000, (OURS, CROWDKIT), repeats=3),
    Scenario("one-coin 1e7, K=10", "one-coin", 10**7, 10, 1000, (OURS,), repeats=3),
    Scenario("one-coin 1e8, K=10", "one-coin", 10**8, 10, 10**4, (OURS,), repeats=1),
    Scenario("glad 1e5, K=10", "glad", 10**5, 10, 100, (OURS, CROWDKIT), repeats=1),
    Scenario("glad 1e6, K=10", "glad", 10**6, 10, 1000, (OURS,), repeats=3),
    Scenario("glad 1e7, K=10", "glad", 10**7, 10, 1000, (OURS,), repeats=1),
    Scenario("robust 1e6, K=10, R=1e5", "dawid-skene", 10**6, 10, 10**5, (OURS, ROBUST), iterations=0, repeats=3),
    Scenario("robust 1e7, K=10, R=1e4", "dawid-skene", 10**7, 10, 10**4, (OURS, ROBUST), iterations=0, repeats=1),
    Scenario("majority 1e6, K=10", "majority-vote", 10**6, 10, 1000, (OURS, CROWDKIT), repeats=3),
    Scenario("majority 1e8, K=10", "majority-vote", 10**8, 10, 10**4, (OURS,), repeats=1),
)

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
    np.save(folder / "truth.npy", truth)


# === One run, in a process of its own ===


def our_run(
    scenario: Scenario, columns: dict[str, np.ndarray], method: str = ""
) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """`fit` of crowdzoo's aggregator, the scenario's or that of the given name: posteriors and labels."""
    from crowdzoo import Annotations
    from crowdzoo.aggregation import create

    sizes = (len(np.load("truth.npy", mmap_mode="r")), scenario.annotators, scenario.classes)
    names = dict(zip(("tasks", "annotators", "classes"), map(np.arange, sizes), strict=True))
    annotations = Annotations(
        kind="classification",
        task_ids=columns["task"],
        annotator_ids=columns["annotator"],
        labels=columns["label"],
        **names,
    )
    # crowd-kit and SciPy count an iteration as M then E; here the first M-step makes the start
    settings: dict[str, Any] = {
        "dawid-skene": {"max_iter": scenario.iterations - 1, "tol": 0.0, "prior": scenario.prior, "diagonal": 0.0},
        "one-coin": {
            "max_iter": scenario.iterations - 1,
            "tol": 0.0,
            "right": 0.0,
            "wrong": 0.0,
            "class_prior": "estimated",
            "class_count": 0.0,
        },
        "glad": {"max_iter": scenario.iterations, "tol": 0.0},
        "majority-vote": {},
    }[scenario.method]
    aggregator = create(method or scenario.method, **(settings if scenario.iterations else {}))
    few = annotations.restrict(redundancy=REDUNDANCY) if len(annotations) < 1000 else None
    tiny = Annotations.from_arrays([0, 0, 1], [0, 1, 0], [0, 1, scenario.classes - 1], classes=names["classes"])
    aggregator.fit(few or tiny)

    def run() -> tuple[np.ndarray, np.ndarray]:
        result = aggregator.fit(annotations)
        return result.posteriors, result.labels

    return run


def scipy_run(scenario: Scenario, columns: dict[str, np.ndarray]) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Dawid-Skene as two sparse products an iteration: log joint = C log pi, counts = C' q."""
    import scipy.sparse

    task, annotator, label = columns["task"], columns["annotator"], columns["label"]
    num_tasks, (R, K) = int(task.max()) + 1, (scenario.annotators, scenario.classes)

    def run() -> tuple[np.ndarray, np.ndarray]:
        votes = scipy.sparse.csr_matrix((np.ones(len(task)), (task, annotator * K + label)), (num_tasks, R * K))
        votes_of_annotators = votes.T.tocsr()
        q = np.bincount(task * K + label, minlength=num_tasks * K).reshape(num_tasks, K).astype(float)
        q /= q.sum(axis=1, keepdims=True)
        for _ in range(scenario.iterations):
            counts = (votes_of_annotators @ q).reshape(R, K, K)
            if scenario.prior:
                counts += scenario.prior
            totals = counts.sum(axis=1, keepdims=True)
            pi = np.divide(counts, totals, out=np.full_like(counts, 1 / K), where=totals > 0)
            np.log(np.maximum(pi, np.finfo(float).tiny, out=pi), out=pi)
            classes = q.sum(axis=0) + scenario.prior
            log_prior = np.log(classes / classes.sum())
            q = votes @ pi.reshape(R * K, K)
            q += log_prior
            q -= q.max(axis=1, keepdims=True)
            np.exp(q, out=q)
            q /= q.sum(axis=1, keepdims=True)
        return q, q.argmax(axis=1)

    return run


def crowdkit_run(scenario: Scenario, columns: dict[str, np.ndarray]) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """crowd-kit's class of the same method."""
    import crowdkit.aggregation
    import pandas as pd

    frame = pd.DataFrame({"task": columns["task"], "worker": columns["annotator"], "label": columns["label"]})
    settings = {} if scenario.method == "majority-vote" else {"n_iter": scenario.iterations}
    aggregator = getattr(crowdkit.aggregation, CROWDKIT_CLASSES[scenario.method])(**settings)
    if hasattr(aggregator, "tol"):
        aggregator.tol = -np.inf  # its loss may fall: 0 would stop it early
    num_tasks = int(columns["task"].max()) + 1

    def run() -> tuple[np.ndarray, np.ndarray]:
        found = aggregator.fit_predict_proba(frame).reindex(index=range(num_tasks), columns=range(scenario.classes))
        q = found.fillna(0.0).to_numpy(np.float64)
        return q, q.argmax(axis=1)

    return run


ENGINES = {OURS: our_run, SCIPY: scipy_run, CROWDKIT: crowdkit_run, ROBUST: partial(our_run, method="robust")}


def peak_bytes() -> int:
    """Peak memory of this process (getrusage's figure begins with the parent's)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def child(engine: str, scenario: Scenario) -> None:
    """Runs in the current folder; prints what it took as JSON, and leaves posteriors or labels there."""
    warnings.simplefilter("ignore")
    columns = {name: np.load(f"{name}.npy") for name in ("task", "annotator", "label")}
    run = ENGINES[engine](scenario, columns)
    table, walls, cpus = peak_bytes(), [], []
    while sum(walls) < 1 and len(walls) < 9:  # short runs are at the mercy of whatever else the machine does
        wall, cpu = time.perf_counter(), time.process_time()
        posteriors, labels = run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    took = {"seconds": statistics.median(walls), "cpu_seconds": statistics.median(cpus)}
    took["peak_bytes"] = peak_bytes()
    took["bytes_with_table_only"] = table
    took["accuracy"] = float((labels == np.load("truth.npy")).mean())
    if len(labels) * scenario.classes <= 2 * 10**7:
        np.save(f"{engine}.posteriors.npy", posteriors)
    np.save(f"{engine}.labels.npy", labels.astype(np.int32))
    print(json.dumps(took))


# === All runs ===


def measure(scenario: Scenario) -> dict[str, Any]:
    """Runs the engines in turns, `repeats` times."""
    runs: dict[str, list[dict[str, float]]] = {engine: [] for engine in scenario.engines}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_votes(folder, scenario)
        for _ in range(scenario.repeats):
            for engine in scenario.engines:
                if engine in failed:
                    continue
                place = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
                done = subprocess.run(
                    [sys.executable, __file__, "--child", engine, "--only", scenario.name],
                    cwd=folder,
                    env={**os.environ, "PYTHONPATH": place},
                    capture_output=True,
                    text=True,
                )
                if done.returncode:
                    failed[engine] = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
                else:
                    runs[engine].append(json.loads(done.stdout.splitlines()[-1]))
        return {**summary(scenario, runs, folder), **({"failed": failed} if failed else {})}


def summary(scenario: Scenario, runs: dict[str, list[dict[str, float]]], folder: Path) -> dict[str, Any]:
    """Medians of each engine, ratios to ours (of neighbouring runs, then the median), and how far answers differ."""
    result: dict[str, Any] = {
        "method": scenario.method,
        "annotations": scenario.annotations,
        "classes": scenario.classes,
        "annotators": scenario.annotators,
        "iterations": scenario.iterations,
        "engines": {},
    }
    ours = runs[OURS]
    for engine, done in runs.items():
        if not done:
            continue
        median = {key: statistics.median(run[key] for run in done) for key in done[0]}
        row: dict[str, Any] = {
            "seconds": round(median["seconds"], 4),
            "cpu_seconds": round(median["cpu_seconds"], 4),
            "peak_gib": round(median["peak_bytes"] / GIB, 3),
            "peak_gib_before": round(median["bytes_with_table_only"] / GIB, 3),
            "accuracy": round(median["accuracy"], 5),
            "runs": len(done),
        }
        if engine != OURS:
            pairs = list(zip(done, ours, strict=False))
            row["times_as_long"] = round(statistics.median(a["seconds"] / b["seconds"] for a, b in pairs), 2)
            row["times_as_much_cpu"] = round(
                statistics.median(a["cpu_seconds"] / b["cpu_seconds"] for a, b in pairs), 2
            )
            row["labels_that_differ"] = int(
                (np.load(folder / f"{engine}.labels.npy") != np.load(folder / f"{OURS}.labels.npy")).sum()
            )
            files = [folder / f"{name}.posteriors.npy" for name in (engine, OURS)]
            if all(file.exists() for file in files):
                row["posteriors_differ_by"] = float(np.abs(np.subtract(*map(np.load, files))).max())
        result["engines"][engine] = row
    if scenario.iterations:
        per_step = result["engines"][OURS]["seconds"] / scenario.annotations / scenario.iterations
        result["nanoseconds_per_annotation_and_iteration"] = round(per_step * 1e9, 2)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="name of the scenario to run, or part of the names of several")
    parser.add_argument("--no-save", action="store_true", help="print only")
    parser.add_argument("--list", action="store_true", help="names of the scenarios")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child, next(scenario for scenario in SCENARIOS if scenario.name == given.only))
    chosen = [scenario for scenario in SCENARIOS if given.only == scenario.name]
    chosen = chosen or [scenario for scenario in SCENARIOS if given.only in scenario.name]
    if given.list:
        return print("\n".join(scenario.name for scenario in chosen))
    saved = json.loads(RESULTS.read_text())["scenarios"] if RESULTS.exists() else {}
    for scenario in chosen:
        saved[scenario.name] = found = measure(scenario)
        for engine, row in found["engines"].items():
            cells = [f"{key}={value}" for key, value in row.items()]
            print(f"{scenario.name} | {engine} | " + " ".join(cells), flush=True)
        for engine, reason in found.get("failed", {}).items():
            print(f"{scenario.name} | {engine} | failed: {reason}", flush=True)
        if not given.no_save:
            write({item.name: saved[item.name] for item in SCENARIOS if item.name in saved})


def write(scenarios: dict[str, Any]) -> None:
    """Saves after each scenario, with versions and growth from 1e6 to 1e8."""
    import numba
    import scipy

    steps = [
        scenarios.get(f"growth {size}", {}).get("nanoseconds_per_annotation_and_iteration") for size in ("1e6", "1e8")
    ]
    about = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scipy": scipy.__version__,
        "crowd-kit": "1.4.2",
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
    }
    growth = round(steps[1] / steps[0], 3) if all(steps) else None
    RESULTS.parent.mkdir(exist_ok=True)
    result = {"about": about, "cost_growth_1e6_to_1e8_over_linear": growth, "scenarios": scenarios}
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
