"""Memory of a whole `crowdzoo run` on many instances: how much the processes hold at most above their start.

    python benchmarks/pipeline_memory.py                              # 100,000 images, both kinds of label
    python benchmarks/pipeline_memory.py --number 1000 --labels ratings
    python benchmarks/pipeline_memory.py --instances vectors texts --number 200000 --labels classes
    python benchmarks/pipeline_memory.py --instances crowd --number 1000000 --labels classes
    python benchmarks/pipeline_memory.py --instances crowd --labels classes --flink      # after `make engines`

Images are JPEG files of 64 x 64 pixels of noise, 300 different ones, each a file of its own in folders of 1,000;
vectors are 512 numbers each, in one Parquet file; texts have 300 words, in one CSV file. Three annotators label each.
"crowd" has vectors of 32 numbers, and 100 of 10,000 annotators label each, in a Parquet file.
The network is small and learns for one epoch: its memory is not the question, and that of a batch does not depend on
the number of images. The pipeline is a process of its own; every second the proportional share of memory (PSS) of it
and of all its children is added up, and so is the part that is not backed by files: pages of files that are mapped
are given back when memory is short. Its start is what it holds when the first component begins: Python with TFX and
TensorFlow loaded. Peaks are also given by component. With --flink the steps on Beam run on Flink with two TaskManagers
of 3 GiB each, which are not counted; their Python is the pipeline's process, which is. Results go to
benchmarks/results/pipeline_memory.json.
"""

import argparse
import csv
import io
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from crowdzoo.report.tables import print_table

sys.path.append(str(Path(__file__).parents[1] / "tests" / "engines"))
from flink_cluster import flink_cluster

RESULTS = Path(__file__).with_name("results") / "pipeline_memory.json"
DIFFERENT, SIDE, IN_FOLDER, ANNOTATORS, EVERY = 300, 64, 1000, 30, 1.0
LENGTH, WORDS = 512, 300  # of a vector, of a text
MANY, REDUNDANCY = 10_000, 100  # of a crowd
BAR = 1.5  # GiB above the start, of 100,000 images
LABELS = {"classes": "classification", "ratings": "regression"}
SHARE = re.compile(r"^(Pss\w*): +(\d+) kB", re.MULTILINE)
STARTS = re.compile(r"\[\d+/\d+\] (\w+) …")


def write_inputs(folder: Path, instances: str, number: int, kind: str) -> Path:
    """Writes the instances, the annotations and a configuration.

    Returns:
        The configuration's path.
    """
    rng = np.random.default_rng(0)
    names = [f"{row // IN_FOLDER:04}/{row:07}" for row in range(number)]
    file, model = WRITE[instances](folder, names, rng)
    answers = (_write_crowd if instances == "crowd" else _write_answers)(folder, names, kind, rng)
    config = {
        "name": "many", "task": kind,
        "data": {"annotations": answers, "instances": file},
        "aggregation": {"method": "majority-vote" if kind == "classification" else "mean"},
        "model": model,
        "training": {"epochs": 1, "batch_size": 64}, "evaluation": {}, "output": {"root": "out"},
    }  # fmt: skip
    (folder / "many.yaml").write_text(json.dumps(config))
    return folder / "many.yaml"


def _write_answers(folder: Path, names: list[str], kind: str, rng: np.random.Generator) -> str:
    with open(folder / "answers.csv", "w", newline="") as answers:
        writer = csv.writer(answers)
        writer.writerow(("task", "annotator", "label"))
        for name in names:
            for annotator in rng.choice(ANNOTATORS, 3, replace=False):
                label = rng.integers(0, 8) if kind == "classification" else round(10 * rng.random(), 2)
                writer.writerow((name, f"a{annotator}", label))
    return "answers.csv"


def _write_crowd(folder: Path, names: list[str], kind: str, rng: np.random.Generator) -> str:
    columns = {"task": pa.string(), "annotator": pa.int64(), "label": pa.int64()}
    with pq.ParquetWriter(folder / "answers.parquet", pa.schema(columns)) as writer:
        for start in range(0, len(names), IN_FOLDER):
            own = np.repeat(names[start : start + IN_FOLDER], REDUNDANCY)
            first = rng.integers(MANY, size=(len(own) // REDUNDANCY, 1))
            who = (first + 97 * np.arange(REDUNDANCY)) % MANY
            label = (first % 8 + (rng.random(who.shape) < 0.4) * rng.integers(8, size=who.shape)) % 8
            writer.write_table(pa.table({"task": own, "annotator": who.ravel(), "label": label.ravel()}))
    return "answers.parquet"


def _write_images(folder: Path, names: list[str], rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    contents = []
    for _ in range(DIFFERENT):
        stream = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (SIDE, SIDE, 3), dtype="uint8")).save(stream, "JPEG")
        contents.append(stream.getvalue())
    for row, name in enumerate(names):
        path = folder / "photos" / f"{name}.jpg"
        if row % IN_FOLDER == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(contents[row % DIFFERENT])
    return "photos", {"height": 16, "width": 16, "stages": [4], "augment": False}


def _write_vectors(
    folder: Path, names: list[str], rng: np.random.Generator, length: int = LENGTH
) -> tuple[str, dict[str, Any]]:
    schema = pa.schema({"task": pa.string(), "features": pa.list_(pa.float32(), length)})
    with pq.ParquetWriter(folder / "vectors.parquet", schema) as writer:
        for start in range(0, len(names), 20_000):
            own = names[start : start + 20_000]
            values = rng.normal(size=len(own) * length).astype("float32")
            lists = pa.FixedSizeListArray.from_arrays(pa.array(values), length)
            writer.write_table(pa.table([pa.array(own), lists], schema=schema))
    return "vectors.parquet", {"hidden": [16]}


def _write_texts(folder: Path, names: list[str], rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    words = np.array([f"word{number}" for number in range(5000)])
    with open(folder / "texts.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("task", "text"))
        writer.writerows((name, " ".join(rng.choice(words, WORDS))) for name in names)
    return "texts.csv", {"hidden": [16]}


WRITE = {
    "images": _write_images, "vectors": _write_vectors, "texts": _write_texts,
    "crowd": partial(_write_vectors, length=32),
}  # fmt: skip


class Watched:
    """Memory of a process and its children, by the component that runs.

    Attributes:
        peaks: component -> most bytes, in all and without files; "start" is the last value before the first one.
    """

    def __init__(self, process: subprocess.Popen):
        self.peaks = {"start": (0, 0)}
        self._component = "start"
        self._process = psutil.Process(process.pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def begins(self, component: str) -> None:
        """A component has begun."""
        if self._component == "start":
            self.peaks["start"] = self._bytes()
        self._component = component

    def ends(self) -> None:
        """Stops watching."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            name, now = self._component, self._bytes()
            if name != "start":
                before = self.peaks.get(name, (0, 0))
                self.peaks[name] = max(before[0], now[0]), max(before[1], now[1])

    def _bytes(self) -> tuple[int, int]:
        total = without_files = 0
        try:
            for process in (self._process, *self._process.children(recursive=True)):
                shares = dict(SHARE.findall(Path(f"/proc/{process.pid}/smaps_rollup").read_text()))
                total += 1024 * int(shares["Pss"])
                without_files += 1024 * (int(shares["Pss_Anon"]) + int(shares["Pss_Shmem"]))
        except (psutil.Error, OSError, KeyError):  # one that has ended meanwhile
            pass
        return total, without_files


def measure(instances: str, number: int, kind: str, flink: bool) -> dict[str, Any]:
    """Runs the pipeline once."""
    with (
        tempfile.TemporaryDirectory() as name,
        flink_cluster(Path(name, "flink"), "3g", "1g") if flink else nullcontext() as cluster,
    ):
        config = write_inputs(Path(name), instances, number, kind)
        if cluster is not None:
            options = [f"--job_endpoint={cluster.address}", "--environment_type=LOOPBACK"]
            beam = {"runner": "PortableRunner", "options": options}
            config.write_text(json.dumps({**json.loads(config.read_text()), "beam": beam}))
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "crowdzoo", "run", str(config)], cwd=name, text=True, bufsize=1,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )  # fmt: skip
        watched, output = Watched(process), ""
        assert process.stderr is not None
        while piece := process.stderr.read(1):  # a component's line ends when it does: not to be waited for
            output += piece
            print(piece, end="", flush=True)
            if (match := STARTS.search(output)) is not None:
                watched.begins(match[1])
                output = ""
        watched.ends()
        if process.wait():
            print({part: round(peak / 2**30, 3) for part, (peak, _) in watched.peaks.items()})
            raise SystemExit(f"the pipeline ended with {process.returncode}")
    start = watched.peaks["start"]
    above, without_files = (
        {part: round((peak[at] - start[at]) / 2**30, 3) for part, peak in watched.peaks.items() if part != "start"}
        for at in (0, 1)
    )
    return {
        "number": number,
        "start, GiB": round(start[0] / 2**30, 3),
        "most above the start, GiB": max(above.values()),
        "most above the start without files, GiB": max(without_files.values()),
        "above the start by component, GiB": above,
        "above the start without files by component, GiB": without_files,
        "seconds": round(time.perf_counter() - started),
        "python": platform.python_version(),
        **{package: version(package) for package in ("tensorflow", "keras", "tfx")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", nargs="+", choices=WRITE, default=["images"])
    parser.add_argument("--number", type=int, default=100_000, help="of instances")
    parser.add_argument("--labels", nargs="+", choices=LABELS, default=list(LABELS))
    parser.add_argument("--flink", action="store_true", help="the steps on Beam on Flink with two workers")
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    args = parser.parse_args()
    saved = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    for instances, labels in [] if args.only_print else itertools.product(args.instances, args.labels):
        name = f"{args.number} {instances}, {labels}" + ", Flink" * args.flink
        saved[name] = measure(instances, args.number, LABELS[labels], args.flink)
        RESULTS.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
    rows = [
        (name, row["start, GiB"], row["most above the start, GiB"],
         row.get("most above the start without files, GiB", ""), row["seconds"],
         max(row["above the start by component, GiB"].items(), key=lambda pair: pair[1])[0])
        for name, row in saved.items()
    ]  # fmt: skip
    title = f"Memory of `crowdzoo run`; at most {BAR} GiB above the start with 100,000 images"
    print_table(title, ("", "start, GiB", "most above it, GiB", "without files", "seconds", "most in"), rows)


if __name__ == "__main__":
    main()
