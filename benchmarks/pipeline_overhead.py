"""What the pipeline costs beside the same training called directly: wall time of whole processes, on LabelMe.

    python benchmarks/pipeline_overhead.py     # about three minutes on two cores

Three rounds; each runs, in fresh processes and one after the other: training and export called directly, the whole
pipeline from nothing, and the pipeline once more with everything cached. Medians and ratios go to
benchmarks/results/pipeline_overhead.json.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crowdzoo.report.tables import print_table

ROUNDS = 3
ROOT = Path(__file__).resolve().parents[1]
RESULT = Path(__file__).with_name("results") / "pipeline_overhead.json"
CONFIG = ROOT / "pipelines" / "configs" / "labelme.yaml"

DIRECT = """
import sys, time
import numpy as np
from crowdzoo import datasets
from crowdzoo.export.saved_model import export_model
from crowdzoo.training.instance_training import train
from crowdzoo.training.settings import TrainingSettings
dataset = datasets.load("labelme")
rows = np.flatnonzero(dataset.split == "train")
annotations = dataset.annotations.select_tasks(rows)
model, _ = train(TrainingSettings(), dataset.instances[rows], annotations=annotations, tasks=annotations.tasks)
export_model(model, sys.argv[1], classes=list(annotations.classes), annotators=list(annotations.annotators),
             warmup_instances=dataset.instances[rows[:16]])
"""


def seconds(*words):
    """Wall time of a process that has to end well."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    started = time.perf_counter()
    subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True, env=environment)
    return time.perf_counter() - started


def main():
    """Measure, print and save."""
    times = {"direct": [], "pipeline": [], "cached rerun": []}
    for number in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            run = ("-m", "crowdzoo", "run", CONFIG, "--set", f"output.root={folder}/out")
            times["direct"].append(seconds("-c", DIRECT, f"{folder}/model"))
            times["pipeline"].append(seconds(*run))
            times["cached rerun"].append(seconds(*run))
        print(f"round {number + 1} of {ROUNDS}", flush=True)
    median = {name: statistics.median(values) for name, values in times.items()}
    ratio = {
        name: statistics.median(a / b for a, b in zip(values, times["direct"], strict=True))
        for name, values in times.items()
    }
    rows = [(name, f"{median[name]:.1f}", f"{ratio[name]:.2f}") for name in times]
    print_table("LabelMe, whole processes, medians", ("", "seconds", "times direct"), rows)
    RESULT.write_text(
        json.dumps(
            {
                "seconds": times,
                "median": median,
                "ratio_to_direct": ratio,
                "rounds": ROUNDS,
                "python": platform.python_version(),
                "cores": os.cpu_count(),
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
