"""Time and size of the page of `crowdzoo report`, as the number of annotators grows.

    CROWDZOO_THREADS=1 python benchmarks/report_page.py                       # a minute
    python benchmarks/report_page.py --rows "10 annotators"                   # only this one is run again
    python benchmarks/report_page.py --method robust --rows "100,000 annotators"    # another method, not saved
    python benchmarks/report_page.py --print                                  # the table of the saved results

Ten classes, four annotations a task. Annotators are right in 75 of 100 cases on average, and how many annotations each
has follows Zipf's law. Measured are the method that `crowdzoo report` takes for so many annotations, and page and
numbers with 200 bootstrap samples, written to disk. The first run, in which Numba compiles, does not count. Seconds of
the processor are those of all threads.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo import Annotations
from crowdzoo.aggregation import create
from crowdzoo.commands.report import MOST_BY_DEFAULT, QUICK
from crowdzoo.report.report_page import report_page
from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parent / "results" / "report_page.json"
# row -> annotations, annotators
ROWS = {"10 annotators": (10_000, 10), "100,000 annotators": (1_000_000, 100_000)}
SEED = 0


def crowd(num_annotations: int, num_annotators: int, num_classes: int = 10) -> Annotations:
    """Four annotations a task; every annotator has one at least."""
    rng = np.random.default_rng(SEED)
    num_tasks = num_annotations // 4
    tasks = np.arange(num_annotations) % num_tasks
    weights = 1 / np.arange(1, num_annotators + 1)
    who = rng.choice(num_annotators, num_annotations, p=weights / weights.sum())
    who[rng.choice(num_annotations, num_annotators, replace=False)] = np.arange(num_annotators)
    _, rows = np.unique(tasks * num_annotators + who, return_index=True)  # nobody twice
    tasks, who = tasks[rows], who[rows]
    truth, right = rng.integers(0, num_classes, num_tasks), rng.beta(6, 2, num_annotators)
    labels = np.where(rng.random(len(tasks)) < right[who], truth[tasks], rng.integers(0, num_classes, len(tasks)))
    return Annotations.from_arrays(tasks, who, labels)


def measure(annotations: Annotations, method: str | None = None) -> dict[str, Any]:
    """Seconds and bytes of one page; `method` is that of the command where none is given."""
    method = method or (QUICK if len(annotations) > MOST_BY_DEFAULT else "robust")
    with tempfile.TemporaryDirectory() as folder:
        wall, processor = time.perf_counter(), time.process_time()
        page = report_page(annotations, create(method).fit(annotations), seed=SEED)
        path = page.write(Path(folder) / "report.html")
        return {
            "method": method,
            "annotations": len(annotations),
            "annotators": annotations.num_annotators,
            "tasks": annotations.num_tasks,
            "seconds": round(time.perf_counter() - wall, 2),
            "processor_seconds": round(time.process_time() - processor, 2),
            "page_bytes": path.stat().st_size,
            "numbers_bytes": path.with_suffix(".json").stat().st_size,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--method", help="measure this one, and only print what it took")
    parser.add_argument("--print", action="store_true", help="only print the saved results")
    options = parser.parse_args()
    table = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"rows": {}}
    if options.method:
        for method in (options.method, QUICK):
            measure(crowd(2000, 20), method)
        for name in options.rows:
            print(json.dumps(measure(crowd(*ROWS[name]), options.method)))
        return
    if not options.print:
        for method in ("robust", QUICK):
            measure(crowd(2000, 20), method)
        table |= {
            "seed": SEED,
            "python": platform.python_version(),
            "versions": {name: version(name) for name in ("crowdzoo", "numpy", "numba", "pyarrow")},
            "machine": platform.machine(),
        }
        for name in options.rows:
            table["rows"][name] = measure(crowd(*ROWS[name]))
            RESULTS.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    head = (
        "method",
        "annotations",
        "annotators",
        "tasks",
        "seconds",
        "processor_seconds",
        "page_bytes",
        "numbers_bytes",
    )
    rows = [[row["method"], *(f"{row[name]:,}" for name in head[1:])] for row in table["rows"].values()]
    print_table("crowdzoo report", [name.replace("_", " ") for name in head], rows)


if __name__ == "__main__":
    main()
