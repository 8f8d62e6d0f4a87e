"""Accuracy of the aggregators on real crowds, beside published figures.

Reads the raw data sets below CROWDZOO_DATA (see `crowdzoo.datasets.data_folder`); sets that are not there are left out:

    python benchmarks/aggregation_quality.py              # writes results/aggregation_quality.json
    python benchmarks/aggregation_quality.py --no-save

Accuracies are those expected if ties are broken at random. Where an annotator answered a task twice, the first counts.
"""

import argparse
import csv
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo import Annotations
from crowdzoo.aggregation import ConvergenceWarning, DawidSkene, MajorityVote
from crowdzoo.datasets import data_folder

RESULTS = Path(__file__).parent / "results" / "aggregation_quality.json"

# Majority vote as expected under random ties, and crowd-kit 1.4.2's Dawid-Skene after 100 iterations (no smoothing);
# the sets and their votes are those of Li, Rubinstein and Cohn, "Exploiting worker correlation ...", ICML 2019.
PEERS = {
    "bluebird": (0.759, 0.889),
    "dog": (0.822, 0.843),
    "rte": (0.897, 0.928),
    "trec": (0.651, 0.702),
    "web": (0.731, 0.829),
    "d_sentiment": (0.934, 0.960),
    "face": (0.637, 0.640),
    "music": (0.704, 0.769),
    "labelme": (0.766, 0.792),
}

AGGREGATORS: dict[str, Any] = {
    "majority vote": MajorityVote(),
    "dawid-skene": DawidSkene(),
    "tol=1e-6": DawidSkene(tol=1e-6, max_iter=1000),
    "maximum likelihood": DawidSkene(prior=0.0),
    "prior=1": DawidSkene(prior=1.0),
    "diagonal=1": DawidSkene(diagonal=1.0),
    "best of 10 starts": DawidSkene(num_starts=10),
}


def truth_inference(folder: Path) -> tuple[Annotations, np.ndarray]:
    """Columns item,worker,label and item,truth."""
    labels = next(path for path in (folder / "label.csv", folder / "label.csv.gz") if path.exists())
    rows = np.loadtxt(labels, np.int64, delimiter=",", skiprows=1)
    annotations = Annotations.from_arrays(*rows.T, on_duplicate="first")
    truth = np.loadtxt(folder / "truth.csv", np.int64, delimiter=",", skiprows=1)
    return annotations, codes(annotations, dict(truth))


def music(folder: Path) -> tuple[Annotations, np.ndarray]:
    with open(folder / "mturk_answers.csv", newline=None) as file:  # lines end in a bare carriage return
        rows = list(csv.DictReader(file.read().splitlines()))
    columns = ([row[name] for row in rows] for name in ("Input.song", "WorkerID", "Answer.pred_label"))
    annotations = Annotations.from_arrays(*columns)
    return annotations, codes(annotations, {row["Input.song"]: row["Input.true_label"] for row in rows})


def labelme(folder: Path) -> tuple[Annotations, np.ndarray]:
    answers = np.loadtxt(folder / "clasda" / "answers.txt", np.int64)
    annotations = Annotations.from_dense(answers[:, (answers >= 0).any(axis=0)])
    return annotations, np.loadtxt(folder / "clasda" / "labels_train.txt", np.int64)


def codes(annotations: Annotations, truth: dict) -> np.ndarray:
    """Gold class codes, -1 where unknown, in the order of the tasks."""
    code = {name: code for code, name in enumerate(annotations.classes.tolist())}
    return np.array([code.get(truth.get(task), -1) for task in annotations.tasks.tolist()])


def real_sets(names: tuple[str, ...] = tuple(PEERS)) -> Iterator[tuple[str, Annotations, np.ndarray]]:
    """Name, annotations and gold codes [N] of the sets that are there."""
    readers: dict[str, tuple[str, Callable[[Path], tuple[Annotations, np.ndarray]]]] = {
        "music": ("music-genre-amt", music),
        "labelme": ("labelme-amt", labelme),
        "face": ("truth-inference/s4_Face-Sentiment-Identification", truth_inference),
    }
    for name in names:
        place, reader = readers.get(name, (f"truth-inference/{name}", truth_inference))
        if (data_folder() / place).is_dir():
            yield name, *reader(data_folder() / place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-save", action="store_true", help="print only")
    save = not parser.parse_args().no_save
    warnings.simplefilter("ignore", ConvergenceWarning)  # the table marks what did not converge with *
    print(" | ".join(["set", "N / R / K / A", "MV elsewhere", "DS elsewhere", *AGGREGATORS]))
    table = {}
    for name, annotations, gold in real_sets():
        size = (annotations.num_tasks, annotations.num_annotators, annotations.num_classes, len(annotations))
        row: dict = {"size": dict(zip(("tasks", "annotators", "classes", "annotations"), size, strict=True))}
        row["published"] = dict(zip(("majority vote", "dawid-skene"), PEERS[name], strict=True))
        cells = []
        for title, aggregator in AGGREGATORS.items():
            start = time.perf_counter()
            result = aggregator.fit(annotations)
            row[title] = {
                "accuracy": round(result.expected_accuracy(gold), 4),
                "iterations": result.num_iterations,
                "converged": result.converged,
                "seconds": round(time.perf_counter() - start, 3),
            }
            cells.append(f"{row[title]['accuracy']:.4f}{'' if result.converged else '*'}")
        table[name] = row
        print(
            " | ".join([name, " / ".join(map(str, size)), *(f"{peer:.3f}" for peer in PEERS[name]), *cells]), flush=True
        )
    if save:
        RESULTS.parent.mkdir(exist_ok=True)
        about = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}
        RESULTS.write_text(json.dumps({"about": about, "sets": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
