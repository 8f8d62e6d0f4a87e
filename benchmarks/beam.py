r"""The same aggregation on Apache Beam and on the local engine: do they agree, and what does Beam cost?

    python benchmarks/beam.py                                  # in memory, 1e7 annotations; results/beam.json
    python benchmarks/beam.py --annotations 1e5 --no-save      # smaller
    python benchmarks/beam.py --method mean median             # ratings

On another runner every argument that is not known here goes to Beam, and the folder must be one that workers see:

    python benchmarks/beam.py --runner FlinkRunner --folder s3://bucket/crowdzoo --no-save \
        --flink_master=host:8081 --environment_type=LOOPBACK

Both engines run in one process, in turns, on the same table and for the same number of iterations; the ratio is the
median of neighbours. It ends with an error if posteriors (of ratings estimates and their errors, in units of the
ratings' deviation) differ by more than 1e-6 or a label differs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
from aggregation import REDUNDANCY, Scenario, make_votes
from apache_beam.options.pipeline_options import PipelineOptions
from stack import stack

import crowdzoo.large.beam as on_beam
from crowdzoo import Annotations
from crowdzoo.aggregation import create

RESULTS = Path(__file__).parent / "results" / "beam.json"
MOST = 1e-6  # that posteriors may differ by


# Name of a run -> kind of labels, name of the method
METHODS = {
    **{name: ("classification", name) for name in ("majority-vote", "dawid-skene", "one-coin", "robust")},
    **{name: ("regression", name) for name in ("mean", "median")},
}
ONE_PASS = ("majority-vote", "mean", "median")


def table(annotations: int, classes: int, annotators: int, kind: str = "classification") -> Annotations:
    """Simulated labels.

    Args:
        annotations: about how many.
        classes: of classification.
        annotators: how many.
        kind: of the labels.
    """
    return ratings(annotations, annotators) if kind == "regression" else votes(annotations, classes, annotators)


def ratings(annotations: int, annotators: int) -> Annotations:
    """Ratings with a bias and a deviation of each annotator; each task has five."""
    rng = np.random.default_rng(0)
    tasks = np.repeat(np.arange(annotations // REDUNDANCY), REDUNDANCY)
    who = rng.integers(annotators, size=len(tasks))
    truth, bias = rng.normal(5, 2, annotations // REDUNDANCY), rng.normal(0, 0.7, annotators)
    ratings = truth[tasks] + bias[who] + rng.normal(size=len(tasks)) * rng.uniform(0.2, 2, annotators)[who]
    tasks_of, annotators_of = np.arange(len(truth)), np.arange(annotators)
    return Annotations("regression", tasks, who, ratings, tasks_of, annotators_of, None, repeats=True)


def votes(annotations: int, classes: int, annotators: int) -> Annotations:
    """Simulated votes, as in `benchmarks/aggregation.py`."""
    scenario = Scenario(annotations, classes, annotators, (), 1)
    with tempfile.TemporaryDirectory() as name:
        make_votes(Path(name), scenario)
        columns = [np.load(Path(name) / f"{column}.npy") for column in ("task", "annotator", "label")]
    return Annotations(
        kind="classification",
        task_ids=columns[0],
        annotator_ids=columns[1],
        labels=columns[2],
        tasks=np.arange(annotations // REDUNDANCY),
        annotators=np.arange(annotators),
        classes=np.arange(classes),
    )


def settings_of(method: str, iterations: int) -> dict[str, Any]:
    """As many iterations, until nothing but rounding is left: with `tol=0` that decides when to stop."""
    return {} if method in (*ONE_PASS, "robust") else {"max_iter": iterations, "tol": 1e-12}


def compare(
    arguments: argparse.Namespace, annotations: Annotations, method: str, iterations: int, repeats: int
) -> dict[str, Any]:
    """Runs both engines in turns."""
    kind, name = METHODS[method]
    aggregator = create(name, kind=kind, **settings_of(method, iterations))
    aggregator.fit(table(1000, arguments.classes, 10, kind))  # compiles
    options = [f"--runner={arguments.runner}", *arguments.options]
    seconds: dict[str, list[float]] = {"local": [], "beam": []}
    pipelines: list[None] = []

    def make_pipeline() -> beam.Pipeline:
        pipelines.append(None)
        return beam.Pipeline(options=PipelineOptions(options))

    for _ in range(repeats):
        started = time.perf_counter()
        local = aggregator.fit(annotations)
        seconds["local"].append(time.perf_counter() - started)
        with tempfile.TemporaryDirectory() as name:
            started = time.perf_counter()
            result = on_beam.aggregate(
                annotations,
                aggregator,
                make_pipeline=make_pipeline,
                folder=arguments.folder or name,
                iterations_per_pipeline=arguments.iterations_per_pipeline,
                retries=arguments.retries,
                timeout=arguments.timeout,
            )
            seconds["beam"].append(time.perf_counter() - started)
    return {
        "runner": arguments.runner,
        "method": method,
        "annotations": len(annotations),
        "classes": annotations.num_classes if annotations.label_kind.has_classes else None,
        "annotators": annotations.num_annotators,
        "pipelines": len(pipelines) // repeats,
        "seconds": {name: round(statistics.median(values), 3) for name, values in seconds.items()},
        "times_as_long": round(statistics.median(b / a for a, b in zip(*seconds.values(), strict=True)), 3),
        "posteriors_differ_by": difference(local, result, annotations),
        "labels_that_differ": 0 if kind == "regression" else int((local.labels != result.labels).sum()),
        "iterations_done": [local.num_iterations, result.num_iterations],
        "runs": repeats,
    }


def difference(local: Any, result: Any, annotations: Annotations) -> float:
    """The greatest difference of posteriors, or of estimates and their errors."""
    if local.kind == "regression":
        pairs = (local.estimates, result.estimates), (local.standard_errors, result.standard_errors)
        return float(max(np.abs(ours - other).max() for ours, other in pairs) / annotations.labels.std())
    return float(np.abs(local.posteriors - result.posteriors).max())


def line(row: dict[str, Any]) -> str:
    """A run in words."""
    return (
        f"{row['method']}, {row['annotations']:,} annotations, "
        f"K={row['classes'] or '-'}, R={row['annotators']:,}, "
        f"{row['iterations_done'][1]} iterations, {row['pipelines']} pipelines on {row['runner']}: "
        f"local {row['seconds']['local']} s, Beam {row['seconds']['beam']} s, {row['times_as_long']} times; "
        f"posteriors differ by {row['posteriors_differ_by']:.1e}, {row['labels_that_differ']} labels"
    )


def name_of(row: dict[str, Any]) -> str:
    """What was run."""
    return f"{row['method']}, {row['annotations']:,} annotations, R={row['annotators']:,}, {row['runner']}"


def agrees(row: dict[str, Any]) -> bool:
    """Whether both engines found the same."""
    return row["posteriors_differ_by"] <= MOST and row["labels_that_differ"] == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", default="FnApiRunner", help="a Beam runner")
    parser.add_argument("--folder", help="for blocks and checkpoints, seen by all workers; default: a temporary one")
    parser.add_argument("--method", nargs="+", choices=METHODS, help="default: all with a form on Beam")
    parser.add_argument("--annotations", type=lambda text: int(float(text)), default=10**7)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--annotators", nargs="+", type=lambda text: int(float(text)), default=[10**3, 10**4])
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--iterations-per-pipeline", type=int, help="default: as the runner likes")
    parser.add_argument("--retries", type=int, default=0, help="times a failed pipeline is run again")
    parser.add_argument("--timeout", type=float, help="seconds after which a pipeline has failed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-save", action="store_true", help="print only")
    parser.add_argument("--out", type=Path, help="a file for what was found, as JSON")
    arguments, arguments.options = parser.parse_known_args()
    warnings.simplefilter("ignore")
    rows = []
    for annotators in arguments.annotators:
        for method in arguments.method or METHODS:
            annotations = table(arguments.annotations, arguments.classes, annotators, METHODS[method][0])
            iterations = 1 if method in ONE_PASS else arguments.iterations
            rows.append(compare(arguments, annotations, method, iterations, arguments.repeats))
            print(line(rows[-1]), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(rows))
    if not arguments.no_save:
        saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        here = stack(keras=False) | {"apache-beam": beam.__version__}
        saved |= {name_of(row): {**row, "stack": here} for row in rows}
        RESULTS.write_text(json.dumps(saved, indent=1) + "\n")
    return 0 if all(map(agrees, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
