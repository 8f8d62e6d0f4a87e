r"""Dawid-Skene on annotations in memory and on blocks on disk: time of an iteration, and memory.

    python benchmarks/out_of_core.py                        # what results/out_of_core.json does not have
    python benchmarks/out_of_core.py --parts blocks --rows "1e+07"   # one row of it
    python benchmarks/out_of_core.py --print

Simulated votes of R = 10,000 annotators in K = 10 classes, five annotations a task, seed 0. Each row is a process of
its own. The blocks stand in the folder that TMPDIR names and are removed: 6.6 bytes an annotation.

Memory is what the process had more than before: `anonymous_mb` belongs to it, `mapped_mb` are pages of files, which the
system drops where others need memory. CPU seconds say more than seconds where other programs run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo import Annotations
from crowdzoo.aggregation import ConvergenceWarning, DawidSkene, StoredBlocks, aggregate_blocks
from crowdzoo.large.forms.forms import method_of
from crowdzoo.large.stored.fit_blocks import fit_blocks
from crowdzoo.large.stored.write_blocks import write_parts
from crowdzoo.reading.tables.spilled_table import Part, SpilledTable

sys.path.append(str(Path(__file__).parent / "reproduce"))
from rows import run

RESULTS = Path(__file__).parent / "results" / "out_of_core.json"
ANNOTATORS, CLASSES, REDUNDANCY, SEED = 10_000, 10, 5, 0
PART = 5 * 2**20
ROWS = {  # part -> number of annotations -> most iterations
    "memory": {1e7: 20, 1e8: 3},
    "blocks": {1e7: 20, 1e8: 20, 1e9: 20},
}


def parts_of(number: int) -> Iterator[Part]:
    """Votes of annotators who are right with a probability of their own, else name any class."""
    rng = np.random.default_rng(SEED)
    skill = rng.uniform(0.4, 0.9, ANNOTATORS).astype(np.float32)
    for begin in range(0, number, PART):
        rows = min(PART, number - begin)
        first, tasks = begin // REDUNDANCY, rows // REDUNDANCY
        who = (
            rng.integers(ANNOTATORS, size=tasks, dtype=np.int32)[:, None] + np.arange(REDUNDANCY, dtype=np.int32) * 1999
        )
        annotators = (who % ANNOTATORS).ravel()
        truth = np.repeat(rng.integers(CLASSES, size=tasks, dtype=np.uint8), REDUNDANCY)
        right = rng.random(rows, np.float32) < skill[annotators]
        labels = np.where(right, truth, rng.integers(CLASSES, size=rows, dtype=np.uint8))
        yield Part(first, first + tasks, np.repeat(np.arange(first, first + tasks), REDUNDANCY), annotators, labels)


def write(number: int, folder: Path) -> StoredBlocks:
    """The votes as blocks."""
    counts = np.zeros(ANNOTATORS, np.int64)

    def parts() -> Iterator[Part]:
        for part in parts_of(number):
            counts[:] += np.bincount(part.annotator_ids, minlength=ANNOTATORS)
            yield part

    names = np.arange(number // REDUNDANCY), np.arange(ANNOTATORS), np.arange(CLASSES)
    write_parts(SpilledTable(*names, counts, number, 0, False, parts), folder)
    return StoredBlocks.open(folder)


def table(number: int) -> Annotations:
    """The votes in memory."""
    columns = [np.empty(number, np.int64) for _ in range(3)]
    begin = 0
    for part in parts_of(number):
        for column, values in zip(columns, (part.task_ids, part.annotator_ids, part.labels), strict=True):
            column[begin : begin + len(values)] = values
        begin += len(part.labels)
    names = np.arange(number // REDUNDANCY), np.arange(ANNOTATORS), np.arange(CLASSES)
    return Annotations("classification", *columns, *names)


class Memory:
    """The most memory that this process has had since the last look, by kind, MB; looked at 20 times a second."""

    def __init__(self) -> None:
        self.most = dict.fromkeys(("RssAnon", "RssFile"), 0)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
            for name in self.most:
                kilobytes = int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])
                self.most[name] = max(self.most[name], kilobytes)
            time.sleep(0.05)

    def take(self) -> dict[str, int]:
        """It, which is then forgotten."""
        time.sleep(0.1)
        found = {
            "anonymous_mb": self.most["RssAnon"] * 1024 // 10**6,
            "mapped_mb": self.most["RssFile"] * 1024 // 10**6,
        }
        self.most = dict.fromkeys(self.most, 0)
        return found


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a function gives, its seconds, and CPU seconds of all threads."""
    start, cpu = time.perf_counter(), time.process_time()
    return function(), time.perf_counter() - start, time.process_time() - cpu


def measure(part: str, number: int, iterations: int) -> dict[str, Any]:
    """One row, in this process."""
    aggregator = DawidSkene(max_iter=iterations, tol=0.0)
    warnings.simplefilter("ignore", ConvergenceWarning)
    aggregator.fit(table(10_000))  # compiles
    memory = Memory()
    before = memory.take()
    found: dict[str, Any] = {"iterations": iterations, "seed": SEED}
    with tempfile.TemporaryDirectory(prefix="crowdzoo-out-of-core-") as name:
        if part == "memory":
            annotations = table(number)
            memory.take()
            result, seconds, cpu = timed(lambda: aggregator.fit(annotations))
            passes = result.num_iterations + 2  # the first counts, and the last posteriors
        else:
            blocks = write(number, Path(name))
            found["gb_on_disk"] = round(sum(path.stat().st_size for path in Path(name).iterdir()) / 1e9, 2)
            method = method_of(aggregator, blocks.num_annotators, blocks.num_classes)
            memory.take()
            (run, _), seconds, cpu = timed(lambda: fit_blocks(method, blocks, Path(name)))
            passes = run.num_iterations + 2
        found |= {"seconds_a_pass": round(seconds / passes, 2), "cpu_seconds_a_pass": round(cpu / passes, 2)}
        found |= {key: value - before[key] for key, value in memory.take().items()}
        if part == "blocks" and number <= 1e7:
            _, seconds, cpu = timed(lambda: aggregate_blocks(blocks, aggregator, Path(name) / "out.parquet"))
            found |= {"whole_seconds": round(seconds, 1), "whole_cpu_seconds": round(cpu, 1)}
            found |= {f"whole_{key}": value - before[key] for key, value in memory.take().items()}
    found["load"] = round(os.getloadavg()[0], 1)
    return found


def in_a_process(part: str, number: float, iterations: int) -> Callable[[], Iterator[dict[str, Any]]]:
    """A row, in a process of its own."""
    command = [sys.executable, __file__, "--measure", part, str(int(number)), str(iterations)]
    return lambda: iter([json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        run(
            RESULTS,
            {
                part: {f"{number:.0e}": in_a_process(part, number, most) for number, most in rows.items()}
                for part, rows in ROWS.items()
            },
            __doc__,
        )
