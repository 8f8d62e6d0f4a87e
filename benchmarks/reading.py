"""How fast, and in how much memory, `Annotations` reads ten million rows, compared with pandas.

Each reading happens in a process of its own, so that its peak memory is its own:

    python benchmarks/reading.py                       # 10 million rows, writes results/reading.json
    python benchmarks/reading.py --rows 1000000 --no-save
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NUM_ANNOTATORS = 100_000
NUM_CLASSES = 10
ANNOTATIONS_PER_TASK = 5
RESULTS = Path(__file__).parent / "results" / "reading.json"


def make_files(folder: Path, num_rows: int, seed: int) -> tuple[Path, Path]:
    """Writes the same rows, in random order, as CSV and as Parquet."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    generator = np.random.default_rng(seed)
    num_tasks = max(1, num_rows // ANNOTATIONS_PER_TASK)
    task = np.arange(num_rows) % num_tasks
    # each round of all tasks gets annotators shifted by another amount, so no pair repeats
    first = generator.integers(0, NUM_ANNOTATORS, num_tasks)
    annotator = (first[task] + (np.arange(num_rows) // num_tasks) * 7919) % NUM_ANNOTATORS
    order = generator.permutation(num_rows)
    label = generator.integers(0, NUM_CLASSES, num_rows)
    table = pa.table(
        {
            "task": pa.array(task[order]).cast(pa.string()),
            "annotator": pa.array(np.char.add("w", annotator[order].astype("U6"))),
            "label": pa.array([f"class{k}" for k in range(NUM_CLASSES)]).take(pa.array(label)),
        }
    )
    with open(folder / "annotations.csv", "w") as file:
        file.write("task,annotator,label\n")
        for batch in table.to_batches(max_chunksize=1 << 20):
            file.write("\n".join(pc.binary_join_element_wise(*batch.columns, ",").to_pylist()) + "\n")
    pq.write_table(table, folder / "annotations.parquet")
    return folder / "annotations.csv", folder / "annotations.parquet"


def read(reader: str, path: str) -> dict:
    """Reads a file in this process and says what it took."""
    if reader == "crowdzoo":
        from crowdzoo.data.annotations import Annotations
    else:
        import pandas as pd
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start, cpu_start = time.perf_counter(), time.process_time()
    if reader == "crowdzoo":
        annotations = Annotations.read(path)
        rows = len(annotations)
        size = annotations.task_ids.nbytes + annotations.annotator_ids.nbytes + annotations.labels.nbytes
    else:
        frame = pd.read_csv(path) if path.endswith(".csv") else pd.read_parquet(path)
        rows = len(frame)
        if reader == "pandas-coded":  # the same end: three columns of codes and their sorted names
            columns = [pd.factorize(frame[name], sort=True) for name in frame.columns]
            size = sum(codes.nbytes for codes, _ in columns)
        else:
            # strings' own bytes are counted on a sample, since counting them all would raise the peak
            size = int(frame.head(10_000).memory_usage(index=False, deep=True).sum()) * rows // min(rows, 10_000)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "reader": reader,
        "file": Path(path).name,
        "rows": rows,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "rows_per_second": round(rows / seconds),
        "peak_rss_mb": round(peak / 1e6),
        "rss_before_mb": round(before / 1e6),
        "peak_bytes_per_row": round((peak - before) / rows, 1),
        "table_bytes_per_row": round(size / rows, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--read", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        print(json.dumps(read(*arguments.read)))
        return
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        # in a process of its own too: the files' making must not slow the readings
        maker = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import reading; "
        maker += "reading.make_files(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))"
        here = str(Path(__file__).parent)
        subprocess.run(
            [sys.executable, "-c", maker, here, folder, str(arguments.rows), str(arguments.seed)], check=True
        )
        sizes = {entry.name: entry.stat().st_size for entry in Path(folder).iterdir()}
        for name in ("annotations.csv", "annotations.parquet"):
            for reader in ("crowdzoo", "pandas", "pandas-coded"):
                command = [sys.executable, __file__, "--read", reader, os.path.join(folder, name)]
                runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
                run = runs[-1]
                place = f"{run['file']:20} {run['reader']:13}"
                speed = f"{run['seconds']:7.2f} s (CPU {run['cpu_seconds']:6.2f}) {run['rows_per_second']:>10,} rows/s"
                memory = (
                    f"peak {run['peak_rss_mb']:>6,} MB, {run['peak_bytes_per_row']:5.1f} bytes a row more than before"
                )
                print(f"{place} {speed}  {memory} (table {run['table_bytes_per_row']:.1f})", flush=True)
    for name in ("annotations.csv", "annotations.parquet"):
        own, *peers = [run for run in runs if run["file"] == name]
        for peer in peers:
            print(
                f"{name}: crowdzoo takes {own['seconds'] / peer['seconds']:.2f} of the time, "
                f"{own['cpu_seconds'] / peer['cpu_seconds']:.2f} of the CPU time and "
                f"{own['peak_rss_mb'] / peer['peak_rss_mb']:.2f} of the peak memory of {peer['reader']}"
            )
    if not arguments.no_save:
        RESULTS.parent.mkdir(exist_ok=True)
        about = {
            "rows": arguments.rows,
            "seed": arguments.seed,
            "file_bytes": sizes,
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "load_average": [round(load, 1) for load in os.getloadavg()],
        }
        RESULTS.write_text(json.dumps({"about": about, "runs": runs}, indent=1) + "\n")
        print(f"saved: {RESULTS.name}")


if __name__ == "__main__":
    main()
