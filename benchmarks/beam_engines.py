"""Aggregation on Beam's engines and on the local one: how many times as long it takes, and how answers differ.

    make engines                                            # brings Prism, Flink, Spark, Python with their Beam
    python benchmarks/beam_engines.py                           # what results/beam_engines.json does not have, to 1e8
    python benchmarks/beam_engines.py --parts flink --rows "one-coin, 1e+05" --again
    python benchmarks/beam_engines.py --print                   # the tables of what is saved

Simulated votes of R = 1,000 annotators, K = 10 classes, five annotations per task, seed 0; at most 20 iterations. Each
row is a process of its own, `beam.py`, which runs both sides one after the other; an engine is started before a row and
ended after it. A row whose sides differ fails. `load` is the machine's load average when the row began.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1] / "tests" / "engines"), str(Path(__file__).parent / "reproduce")]
from flink_cluster import flink_cluster, worker_pool
from install import FLINK_BEAM, FLINK_VERSION, PRISM, PYTHON, ROOT, SPARK_VERSION
from rows import run
from spark_server import spark_server

RESULTS = Path(__file__).parent / "results" / "beam_engines.json"
ANNOTATORS, CLASSES = 1000, 10
ROWS = [(method, 10**5) for method in ("majority-vote", "dawid-skene", "one-coin")]
ROWS += [("dawid-skene", size) for size in (10**6, 10**7, 10**8)]


@contextmanager
def flink(pool: bool) -> Iterator[tuple[str, ...]]:
    """A Flink cluster whose workers are processes of a pool, or in the process that asks."""
    with (
        tempfile.TemporaryDirectory() as name,
        flink_cluster(Path(name, "cluster")) as cluster,
        worker_pool(Path(name)) if pool else nullcontext() as workers,
    ):
        yield by_job_server(cluster.address, None if workers is None else workers.address)


@contextmanager
def spark() -> Iterator[tuple[str, ...]]:
    """Spark in its job server, with workers in the process that asks."""
    with tempfile.TemporaryDirectory() as name, spark_server(Path(name, "server")) as (address, _):
        yield by_job_server(address)


def by_job_server(address: str, pool: str | None = None) -> tuple[str, ...]:
    """Options of a portable runner."""
    if pool is None:
        where: tuple[str, ...] = ("--environment_type=LOOPBACK",)
    else:
        where = ("--environment_type=EXTERNAL", f"--environment_config={pool}", "--environment_cache_millis=600000")
    return "--runner", "PortableRunner", f"--job_endpoint={address}", *where


OURS = f"Beam {version('apache-beam')}"
PRISM_OPTIONS = ("--runner", "PrismRunner", f"--prism_location={PRISM}", "--environment_type=LOOPBACK")
# by name: what starts it and gives Beam's options, the Python of its Beam, versions
ENGINES: dict[str, tuple[Any, Path | str, str]] = {
    "in memory": (lambda: nullcontext(("--runner", "FnApiRunner")), sys.executable, OURS),
    "prism": (lambda: nullcontext(PRISM_OPTIONS), sys.executable, OURS),
    "flink": (functools.partial(flink, False), PYTHON, f"Beam {FLINK_BEAM}, Flink {FLINK_VERSION}"),
    "flink, pool": (functools.partial(flink, True), PYTHON, f"Beam {FLINK_BEAM}, Flink {FLINK_VERSION}"),
    "spark": (spark, PYTHON, f"Beam {FLINK_BEAM}, Spark {SPARK_VERSION}"),
}


def measure(engine: str, method: str, annotations: int) -> Iterator[dict[str, Any]]:
    """Both sides of a row."""
    start, python, versions = ENGINES[engine]
    load = os.getloadavg()[0]
    with start() as options, tempfile.TemporaryDirectory() as name:
        command = [
            python, ROOT / "benchmarks" / "beam.py", "--no-save", "--out", Path(name, "found.json"), "--repeats", "1",
            "--annotators", str(ANNOTATORS), "--classes", str(CLASSES), "--method", method,
            "--annotations", str(annotations), *options,
        ]  # fmt: skip
        places = {"PYTHONPATH": str(ROOT), "PATH": f"{Path(python).parent}:{os.environ['PATH']}"}
        if subprocess.run(command, env={**os.environ, **places}).returncode:
            print(f"{engine}, {method}, {annotations:,}: FAILED", file=sys.stderr)
            return
        (measurement,) = json.loads(Path(name, "found.json").read_text())
    yield {
        "seconds": measurement["seconds"]["beam"], "local seconds": measurement["seconds"]["local"],
        "times as long": measurement["times_as_long"], "posteriors differ by": measurement["posteriors_differ_by"],
        "load": round(load, 1), "versions": versions,
    }  # fmt: skip


if __name__ == "__main__":
    parts = {
        engine: {f"{method}, {size:.0e}": functools.partial(measure, engine, method, size) for method, size in ROWS}
        for engine in ENGINES
    }
    run(RESULTS, parts, __doc__, keras=False)
