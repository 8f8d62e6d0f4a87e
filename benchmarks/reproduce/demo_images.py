"""What `crowdzoo demo images` shows, with five seeds: accuracy on held-out photographs by what the base learns from.

    python benchmarks/reproduce/demo_images.py            # rows that are not in the results, each of five trainings
    python benchmarks/reproduce/demo_images.py --print    # the saved results
    python benchmarks/reproduce/demo_images.py --page     # prints their table

**Protocol**, fixed before the first row. The settings are those of the demo's configuration,
pipelines/configs/labelme-images.yaml, for every row alike: the split that ships with the data, 45 epochs, the network
after the last one. Nothing is chosen by gold here. The rows of a seed start from the same weights, so differences are
paired by seed. Intervals are Student's over the seeds: they say how much the seed matters, and nothing about other
photographs, because the 250 that are held out are the same for all seeds.

The last part is the wall time of one whole `crowdzoo demo images`, as a user starts it: the pipeline, one training of
each row, and the plots. Results go to benchmarks/results/demo_images.json.
"""

import dataclasses
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import rows
from intervals import Runs, mean_interval, shown
from rows import grid
from stack import told

RESULTS = Path(__file__).parents[1] / "results" / "demo_images.json"
SEEDS = range(5)
FLOOR = "majority vote"
ROWS = {
    FLOOR: "majority",
    "Dawid-Skene": "dawid-skene",
    "`CrowdsourcedLayer`, VW": "VW",
    "`CrowdsourcedLayer`, MW": "MW",
    "the true labels": "gold",
}


def trainings(method: str) -> Iterator[dict[str, Any]]:
    """One training per seed: on one label per task, on gold, or on all annotations by a crowd layer."""
    from crowdzoo import datasets
    from crowdzoo.aggregation import DawidSkene, MajorityVote
    from crowdzoo.metrics import accuracy
    from crowdzoo.pipelines.config.load import load_config
    from crowdzoo.pipelines.demo import CONFIGS
    from crowdzoo.training.instance_training import train

    config = load_config(CONFIGS / "labelme-images.yaml")
    assert config.data.dataset is not None
    data = datasets.load(config.data.dataset)
    training, held_out = (np.flatnonzero(data.split == part) for part in ("train", "eval"))
    crowd = data.annotations.select_tasks(training)
    for seed in SEEDS:
        labels = {
            "majority": lambda seed=seed: MajorityVote(ties="random", seed=seed).fit(crowd).labels,
            "dawid-skene": lambda: DawidSkene().fit(crowd).labels,
            "gold": lambda: data.gold[training],
        }
        settings = dataclasses.replace(config.settings, seed=seed, method="aggregated", arguments={})
        targets: dict[str, Any] = {"annotations": crowd, "tasks": crowd.tasks}
        if method in labels:
            targets = {"label_distribution": np.eye(crowd.num_classes)[labels[method]()]}
        else:
            arguments = {"connection": method, "scale": 1.0}
            settings = dataclasses.replace(settings, method="crowdsourced-layer", arguments=arguments)
        started = time.perf_counter()
        model, encoder = train(settings, data.instances[training], **targets)
        seconds = time.perf_counter() - started
        predicted = model.predict(encoder.to_numpy(data.instances[held_out]), verbose=0).argmax(axis=1)
        yield {"seed": seed, "accuracy": accuracy(data.gold[held_out], predicted), "seconds": seconds}


def whole_demo() -> Iterator[dict[str, Any]]:
    """Wall time of the command, in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        words = [sys.executable, "-m", "crowdzoo", "demo", "images", "--out", f"{folder}/out"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        yield {"minutes": (time.perf_counter() - started) / 60}


PARTS: rows.Parts = {
    "accuracy": {row: functools.partial(trainings, method) for row, method in ROWS.items()},
    "time": {"crowdzoo demo images": whole_demo},
}


def table(saved: dict[str, Any]) -> str:
    """The rows that are done as a Markdown table, and what they were computed on."""
    done = {row: saved["accuracy"][row] for row in ROWS if row in saved["accuracy"]}
    values = {row: np.array([run["accuracy"] for run in row_result["runs"]]) for row, row_result in done.items()}
    lines = [
        (row, "{:.3f} ± {:.3f}".format(*mean_interval([Runs(accuracies)])),
         "" if row == FLOOR else shown([Runs(accuracies - values[FLOOR])], digits=3),
         f"{np.mean([run['seconds'] for run in done[row]['runs']]):.0f}")
        for row, accuracies in values.items()
    ]  # fmt: skip
    heading = ["trained on", "test accuracy", f"against {FLOOR}", "seconds a training"]
    words = "Computed on: " + "; ".join(sorted({told(row_result["stack"]) for row_result in done.values()})) + "."
    if "time" in saved:
        ((row_result,),) = (part["runs"] for part in saved["time"].values())
        words += f"\nThe whole demo, with one training of each row, took {row_result['minutes']:.1f} minutes."
    return f"{grid(heading, lines, 2)}\n{words}\n"


def show_table() -> None:
    print(table(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    rows.run(RESULTS, PARTS, __doc__, show_table)
