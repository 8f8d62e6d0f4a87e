r"""Aggregation on Beam's engines, beside the local one: seconds, CPU seconds, differences, and bytes between steps.

    make engines                                            # brings Prism, Flink and a Python with Flink's Beam
    python benchmarks/beam_engines.py                       # what results/beam_engines.json does not have, to 1e8
    python benchmarks/beam_engines.py --rows "flink, .*1e\+05"     # the rows whose names match, again
    python benchmarks/beam_engines.py --bytes               # the bytes between Flink's steps
    python benchmarks/beam_engines.py --ten-runs            # Dawid-Skene on Flink, ten times
    python benchmarks/beam_engines.py --kill                # each method on Flink while its workers are killed
    python benchmarks/beam_engines.py --docs                # prints the tables of what is saved

Simulated votes of R = 1,000 annotators in K = 10 classes, five annotations a task, seed 0; at most 20 iterations. Each
row is a process of its own, which runs both sides in turns; an engine is started before and ended after its rows. CPU
seconds are those of all processes of an engine. `load` is the machine's load average when the row began: above its
cores, other programs ran, and CPU seconds say more than seconds.

The bytes of an iteration are what Flink's steps wrote (`write-bytes` of its REST API): of 20 iterations the second
pipeline has 8 E-steps and the third one 5, and are else the same, so that a third of the difference is one iteration's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "tests" / "engines"))
from flink_cluster import FlinkCluster, WorkerPool, flink_cluster, worker_pool
from install import FLINK_BEAM, FLINK_VERSION, PRISM, PYTHON, ROOT, SPARK_VERSION
from spark_server import spark_server

RESULTS = Path(__file__).parent / "results" / "beam_engines.json"

ANNOTATORS, CLASSES = 1000, 10
METHODS = ("majority-vote", "dawid-skene", "one-coin", "glad", "ibcc")
SIZES = (10**5, 10**6, 10**7, 10**8)
WORKERS = (1, 2, 4)
RUNS = 10  # that are to end well


class Row(NamedTuple):
    """What is run: by which engine, which method, on how much, with how many workers (0: as many as it likes)."""

    engine: str
    method: str
    annotations: int
    workers: int = 0

    @property
    def name(self) -> str:
        """As `--rows` takes it."""
        workers = f", {self.workers} workers" if self.workers else ""
        return f"{self.engine}, {self.method}, {self.annotations:.0e}{workers}"


class Running(NamedTuple):
    """An engine that runs: the Python of its Beam, Beam's options, its processes, and its cluster if it has one."""

    python: Path
    options: tuple[str, ...]
    versions: dict[str, str]
    processes: Callable[[], list[int]] = list
    cluster: FlinkCluster | None = None
    pool: WorkerPool | None = None

    def with_workers(self, workers: int) -> tuple[str, ...]:
        """Options for a number of workers."""
        if not workers:
            return self.options
        if self.cluster:
            return *self.options, f"--parallelism={workers}"
        return *self.options, "--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"


@contextlib.contextmanager
def in_memory() -> Iterator[Running]:
    """Beam's FnApiRunner, in the process that asks."""
    yield Running(Path(sys.executable), ("--runner", "FnApiRunner"), {"beam": version("apache-beam")})


@contextlib.contextmanager
def prism() -> Iterator[Running]:
    """Beam's runner in Go, started by who asks."""
    options = ("--runner", "PrismRunner", f"--prism_location={PRISM}", "--environment_type=LOOPBACK")
    yield Running(Path(sys.executable), options, {"beam": version("apache-beam")})


def _on(cluster: FlinkCluster, pool: WorkerPool | None) -> Running:
    where = "LOOPBACK" if pool is None else "EXTERNAL"
    options = ["--runner", "PortableRunner", f"--job_endpoint={cluster.address}", f"--environment_type={where}"]
    if pool is not None:
        options += [f"--environment_config={pool.address}", "--environment_cache_millis=600000"]

    def processes() -> list[int]:
        ours = [process.pid for process in cluster.processes.values()]
        return ours if pool is None else [*ours, pool.process.pid, *pool.workers()]

    versions = {"beam": FLINK_BEAM, "flink": FLINK_VERSION}
    return Running(PYTHON, tuple(options), versions, processes, cluster, pool)


@contextlib.contextmanager
def flink() -> Iterator[Running]:
    """A Flink cluster whose workers are in the process that asks."""
    with tempfile.TemporaryDirectory() as name, flink_cluster(Path(name, "cluster")) as cluster:
        yield _on(cluster, None)


@contextlib.contextmanager
def flink_with_pool() -> Iterator[Running]:
    """A Flink cluster whose workers are processes of a pool."""
    with (
        tempfile.TemporaryDirectory() as name,
        flink_cluster(Path(name, "cluster")) as cluster,
        worker_pool(Path(name)) as pool,
    ):
        yield _on(cluster, pool)


@contextlib.contextmanager
def spark() -> Iterator[Running]:
    """Spark in its job server, with workers in the process that asks."""
    with tempfile.TemporaryDirectory() as name, spark_server(Path(name, "server")) as (address, process):
        options = ("--runner", "PortableRunner", f"--job_endpoint={address}", "--environment_type=LOOPBACK")
        yield Running(PYTHON, options, {"beam": FLINK_BEAM, "spark": SPARK_VERSION}, lambda: [process])


ENGINES = {"in memory": in_memory, "prism": prism, "flink": flink, "flink, pool": flink_with_pool, "spark": spark}
ROWS = (
    *(Row(engine, method, 10**5) for engine in ENGINES for method in METHODS),
    *(Row(engine, "dawid-skene", size) for engine in ENGINES for size in SIZES[1:]),
    *(Row(engine, "dawid-skene", 10**6, n) for engine in ("in memory", "flink", "flink, pool") for n in WORKERS),
)


def cpu_of(processes: list[int]) -> float:
    """CPU seconds of processes, and of those that they have started and that have ended."""
    ticks = 0
    for process in processes:
        with contextlib.suppress(FileNotFoundError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def comparing(
    engine: Running, row: Row, *more: str
) -> Iterator[tuple[subprocess.Popen[str], Callable[[], tuple[dict[str, Any], str]]]]:
    """Both sides of a row, in a process; gives it, and what waits for its end and fails if the sides differ."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name, "found.json")
        command = [
            engine.python, ROOT / "benchmarks" / "beam.py", "--no-save", "--out", out, "--repeats", "1",
            "--annotators", str(ANNOTATORS), "--classes", str(CLASSES), "--method", row.method,
            "--annotations", str(row.annotations), *more, *engine.with_workers(row.workers),
        ]  # fmt: skip
        path = f"{engine.python.parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def end() -> tuple[dict[str, Any], str]:
            printed, said = process.communicate()
            if process.returncode:
                raise RuntimeError(f"{row.name}: {printed[-500:]}{said[-1500:]}")
            (found,) = json.loads(out.read_text())
            return found, said

        try:
            yield process, end
        finally:
            process.kill()
            process.wait()


def run(engine: Running, row: Row, *more: str) -> dict[str, Any]:
    """Both sides of a row. Ends with an error if they differ."""
    load, before = os.getloadavg()[0], cpu_of(engine.processes())
    with comparing(engine, row, *more) as (_, end):
        found, _ = end()
    cpu = found["cpu_seconds"]["beam"] + cpu_of(engine.processes()) - before
    return {
        **row._asdict(),
        "annotators": ANNOTATORS,
        "classes": CLASSES,
        "seconds": found["seconds"]["beam"],
        "local_seconds": found["seconds"]["local"],
        "times_as_long": found["times_as_long"],
        "cpu_seconds": round(cpu, 2),
        "local_cpu_seconds": found["cpu_seconds"]["local"],
        "posteriors_differ_by": found["posteriors_differ_by"],
        "labels_that_differ": found["labels_that_differ"],
        "iterations": found["iterations_done"][1],
        "pipelines": found["pipelines"],
        "load": round(load, 1),
        "cores": len(os.sched_getaffinity(0)),
        "versions": {"python": platform.python_version(), **engine.versions},
    }


def bytes_between_steps(engine: Running, row: Row) -> int:
    """What Flink's steps write in an iteration, all together; what each one wrote in a pipeline is printed."""
    assert engine.cluster is not None
    earlier = {job["jid"] for job in engine.cluster.jobs()}
    run(engine, row)
    jobs = [job for job in engine.cluster.jobs() if job["jid"] not in earlier]
    _, longer, shorter = sorted(jobs, key=lambda job: job["start-time"])  # the first one begins otherwise
    for step in longer["vertices"]:
        print(f"{step['metrics']['write-bytes']:12,}  {step['metrics']['write-records']:8,}  {step['name'][:300]}")
    written = [sum(step["metrics"]["write-bytes"] for step in job["vertices"]) for job in (longer, shorter)]
    iterations = [sum("/ParDo(Expect)" in step["name"] for step in job["vertices"]) for job in (longer, shorter)]
    return round((written[0] - written[1]) / (iterations[0] - iterations[1]))


def all_bytes(engine: Running) -> list[dict[str, Any]]:
    """Measured and counted bytes of an iteration, by the number of workers."""
    rows = [Row("flink", "dawid-skene", 10**5, workers) for workers in WORKERS]
    return [
        {
            **row._asdict(),
            "measured": bytes_between_steps(engine, row),
            "formula": formula(row.workers),
            "versions": engine.versions,
        }
        for row in rows
    ]


def formula(workers: int, classes: int = CLASSES) -> int:
    """Bytes an iteration: rows to each worker, and counts from each bundle."""
    return 2 * workers * 8 * ANNOTATORS * classes**2


def ten_runs(engine: Running) -> dict[str, Any]:
    """Dawid-Skene ten times, each a process of its own: how often it ended well, without a retry."""
    row, rows, failed = Row("flink", "dawid-skene", 10**5), [], []
    for number in range(RUNS):
        try:
            rows.append(run(engine, row))
            print(f"run {number + 1} of {RUNS}: {rows[-1]['seconds']} s", flush=True)
        except RuntimeError as error:
            failed.append(str(error)[-300:])
            print(f"run {number + 1} of {RUNS}: failed", flush=True)
    return {
        "engine": row.engine,
        "method": row.method,
        "annotations": row.annotations,
        "runs": RUNS,
        "ended_well": len(rows),
        "errors": failed,
        "pipelines": sum(each["pipelines"] for each in rows),
        "posteriors_differ_by": max((each["posteriors_differ_by"] for each in rows), default=None),
        "seconds": [each["seconds"] for each in rows],
        "versions": {"python": platform.python_version(), **engine.versions},
    }


def killed(engine: Running, method: str) -> dict[str, Any]:
    """A method while all its workers are killed: in the second pipeline, or as soon as there are some if it has one."""
    assert engine.cluster is not None
    assert engine.pool is not None
    row = Row("flink, pool", method, 10**5)
    earlier = {*engine.pool.workers()}
    with tempfile.TemporaryDirectory() as folder:

        def is_under_way() -> bool:
            if method == "majority-vote":
                return bool({*engine.pool.workers()} - earlier)
            return Path(folder, "checkpoint-000001.manifest").exists() and engine.cluster.finished_steps() > 3

        settings = ("--folder", folder, "--iterations-per-pipeline", "3", "--iterations", "8")
        with comparing(engine, row, *settings, "--retries", "6", "--timeout", "400") as (process, end):
            while not is_under_way():
                if process.poll() is not None:
                    end()
                    raise RuntimeError(f"{row.name}: it ended before its workers could be killed")
                time.sleep(0.1)
            workers = engine.pool.workers()
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            found, said = end()
    return {
        "engine": row.engine,
        "method": method,
        "annotations": row.annotations,
        "workers_killed": len(workers),
        "pipelines_run_again": said.count("It is run again"),
        "labels_that_differ": found["labels_that_differ"],
        "posteriors_differ_by": found["posteriors_differ_by"],
        "versions": {"python": platform.python_version(), **engine.versions},
    }


def load_saved() -> dict[str, Any]:
    """The saved results."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": [], "bytes": [], "ten_runs": None}


def save(found: dict[str, Any]) -> None:
    """Writes the results."""
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")


def row_of(saved: dict[str, Any]) -> Row:
    """What a saved row is of."""
    return Row(*(saved[name] for name in Row._fields))


def put(saved: list[dict[str, Any]], new: dict[str, Any]) -> None:
    """Adds a row, in place of an older one of the same."""
    saved[:] = sorted(
        [each for each in saved if row_of(each) != row_of(new)] + [new],
        key=lambda each: ROWS.index(row_of(each)) if row_of(each) in ROWS else len(ROWS),
    )


def tables(found: dict[str, Any]) -> str:
    """The saved results as Markdown."""
    lines = [
        "| engine | method | annotations | workers | s | local, s | times | CPU s | local, CPU s | differ by | load |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in found["rows"]:
        size = f"10{str(len(str(row['annotations'])) - 1).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
        lines.append(
            f"| {row['engine']} | {row['method']} | {size} | {row['workers'] or ''} | {row['seconds']:.3g} "
            f"| {row['local_seconds']:.3g} | {row['times_as_long']:.3g} | {row['cpu_seconds']:.3g} "
            f"| {row['local_cpu_seconds']:.2g} | {row['posteriors_differ_by']:.0e} | {row['load']:.0f} |"
        )
    if found["bytes"]:
        lines += ["", "| Flink, Dawid-Skene | bytes an iteration | by the formula |", "|---|---:|---:|"]
    for row in found["bytes"]:
        lines.append(f"| {row['workers']} workers | {row['measured']:,} | {row['formula']:,} |")
    if found["ten_runs"]:
        ten = found["ten_runs"]
        lines += ["", f"Dawid-Skene on Flink, 10⁵ annotations: {ten['ended_well']} of {ten['runs']} runs ended well."]
    if found.get("killed"):
        lines += [
            "",
            "| all workers killed in mid-run | workers | pipelines run again | labels that differ | differ by |",
            "|---|---:|---:|---:|---:|",
        ]
    for row in found.get("killed", []):
        lines.append(
            f"| {row['engine']}, {row['method']} | {row['workers_killed']} | {row['pipelines_run_again']} "
            f"| {row['labels_that_differ']} | {row['posteriors_differ_by']:.0e} |"
        )
    return "\n".join(["", *lines, "", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help="only those whose name matches this expression, also if they are saved")
    parser.add_argument("--bytes", action="store_true", help="only the bytes between Flink's steps")
    parser.add_argument("--ten-runs", action="store_true", help="only Dawid-Skene on Flink ten times")
    parser.add_argument("--kill", action="store_true", help="only the methods on Flink whose workers are killed")
    parser.add_argument("--list", action="store_true", help="the names of the rows")
    parser.add_argument("--docs", action="store_true", help="prints the tables of what is saved")
    given = parser.parse_args()
    found = load_saved()
    if given.list:
        print("\n".join(row.name for row in ROWS))
        return 0
    if given.docs:
        print(tables(found))
        return 0
    if given.bytes or given.ten_runs:
        with flink() as engine:
            new = {"bytes": all_bytes(engine)} if given.bytes else {"ten_runs": ten_runs(engine)}
        save({**load_saved(), **new})
        return 0
    failed = 0
    if given.kill:
        with flink_with_pool() as engine:
            for method in (each for each in METHODS if re.search(given.rows or "", each)):
                try:
                    new_row = killed(engine, method)
                except RuntimeError as error:
                    failed += 1
                    print(error, file=sys.stderr)
                    continue
                found = load_saved()
                others = [each for each in found.get("killed", []) if each["method"] != method]
                found["killed"] = sorted([*others, new_row], key=lambda each: METHODS.index(each["method"]))
                save(found)
                print(new_row, flush=True)
        return 1 if failed else 0
    saved = {row_of(each) for each in found["rows"]}
    wanted = [row for row in ROWS if (re.search(given.rows, row.name) if given.rows else row not in saved)]
    for name, start in ENGINES.items():
        rows = [row for row in wanted if row.engine == name]
        if not rows:
            continue
        with start() as engine:
            for row in rows:
                try:
                    new = run(engine, row)
                except RuntimeError as error:
                    failed += 1
                    print(error, file=sys.stderr)
                    continue
                found = load_saved()
                put(found["rows"], new)
                save(found)
                print(row.name, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
