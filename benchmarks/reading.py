"""How fast, and in how much memory, `Annotations` reads ten million rows, beside pandas.

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
    import pyarrow.csv
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
    pyarrow.csv.write_csv(table, folder / "annotations.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
    pq.write_table(table, folder / "annotations.parquet")
    return folder / "annotations.csv", folder / "annotations.parquet"


def read(reader: str, path: str) -> dict:
    """Reads a file in this process and says what it took."""
    if reader == "crowdzoo":
        from crowdzoo.annotations import Annotations as module
    else:
        import pandas as module
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.perf_counter()
    if reader == "crowdzoo":
        table = module.read(path)
        arrays = (table.task_ids, table.annotator_ids, table.labels)
        rows, size = len(table), sum(array.nbytes for array in arrays)
    else:
        table = module.read_csv(path) if path.endswith(".csv") else module.read_parquet(path)
        if reader == "pandas-coded":  # the same end: three columns of codes and their sorted names
            columns = [module.factorize(table[name], sort=True) for name in table.columns]
            rows, size = len(table), sum(codes.nbytes for codes, _ in columns)
        else:
            rows, size = len(table), int(table.memory_usage(deep=True).sum())
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "reader": reader,
        "file": Path(path).name,
        "rows": rows,
        "seconds": round(seconds, 2),
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
                print(
                    f"{run['file']:20} {run['reader']:13} {run['seconds']:7.2f} s {run['rows_per_second']:>12,} rows/s"
                    f"  peak {run['peak_rss_mb']:>6,} MB  {run['peak_bytes_per_row']:6.1f} bytes/row over the start"
                    f" (table {run['table_bytes_per_row']:.1f})",
                    flush=True,
                )
    for name in ("annotations.csv", "annotations.parquet"):
        own, *peers = [run for run in runs if run["file"] == name]
        for peer in peers:
            print(
                f"{name}: crowdzoo takes {own['seconds'] / peer['seconds']:.2f} of the time and "
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
            "load_before": None if not hasattr(os, "getloadavg") else round(os.getloadavg()[2], 1),
        }
        RESULTS.write_text(json.dumps({"about": about, "runs": runs}, indent=1) + "\n")
        print(f"saved: {RESULTS.name}")


if __name__ == "__main__":
    main()
