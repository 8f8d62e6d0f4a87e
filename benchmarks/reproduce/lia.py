"""LIA's table 2: the labels of crowdsourced tasks, inferred with few and with many annotations a task.

    python benchmarks/reproduce/lia.py                           # what is missing in the saved results
    python benchmarks/reproduce/lia.py --data bluebirds --rows LIA LIA-E --draws 10
    python benchmarks/reproduce/lia.py --again                   # everything anew
    python benchmarks/reproduce/lia.py --print                   # the tables of the saved results, no training

Reads the raw data below CROWDZOO_DATA (default: shared/data beside the repository). Evaluation is transductive, as in
the paper: the share of the annotated tasks whose inferred label is right. A draw keeps r random annotations a task;
all rows see the same draws. For the rows with a network h there are two figures: "posterior" is the label given the
task and its annotations, "h" is the network's own. At a redundancy that keeps all annotations only the start differs
between draws.

What differs from the paper: VGG16 features for ResNet-101 (Blue Birds), hashed and weighted words for BERT (RTE), GloVe
(word similarity). All are rotated to their principal axes, for steps that cost less: nothing is lost by that on Blue
Birds and word similarity, which have fewer tasks than axes; of RTE's words the first 128 axes are kept. Word similarity
is yes or no: above the middle of the scale or not, gold and answers alike (the paper keeps answers as probabilities).
EM takes 5 rounds of 200 steps and not 10 of 1,000. The medical relations are not here. No hyperparameter was chosen by
gold, except that the ridge of the last row (0.1) was looked at on Blue Birds: three draws at r = 5, two at 20 and 39.

Each row of each set runs in a process of its own, which tells its peak memory. The rows of LIA run on the Keras backend
that KERAS_BACKEND names; small models are fastest on JAX. Results go to benchmarks/results/reproduce_lia.json.
"""

import argparse
import dataclasses
import json
import os
import platform
import re
import resource
import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.annotations import Annotations
from crowdzoo.datasets import data_folder
from crowdzoo.report.tables import print_table

DATA = data_folder()
RESULTS = Path(__file__).parents[1] / "results" / "reproduce_lia.json"
DRAWS = 5
REDUNDANCIES = {"bluebirds": (2, 5, 10, 20, 39), "wordsim": (2, 5, 10), "rte": (2, 5, 10)}

AGGREGATORS = {
    "majority": "majority-vote",
    "Dawid-Skene": "dawid-skene",
    "iBCC": "ibcc",
    "MMCE": "mmce",
    "label model": "label-model",
}
NETWORKS: dict[str, dict[str, Any]] = {
    "LIA-E": {"embedding": True},
    "LIA": {},
    "LIA product": {"form": "product"},
    "LIA, ridge 0.1": {"ridge": 0.1},
}
ROWS = (*AGGREGATORS, *NETWORKS)

# Steps are of the full batch, so a pass is a step
SETTINGS = {
    "rounds": 5,
    "steps_per_round": 200,
    "marginal_steps": 200,
    "learning_rate": 1e-3,
    "amsgrad": True,
    "hidden": [16, 16, 16, 16],
    "activation": "selu",
    "annotator_embedding": 16,
}

# Platanios et al. 2020, table 2, accuracy in percent, means of 50 runs: set -> row -> by redundancy
PUBLISHED = {
    "bluebirds": {
        "majority": (63.9, 71.1, 74.4, 76.4, 75.9),
        "MMCE": (66.9, 73.9, 76.5, 78.5, 79.6),
        "label model": (63.0, 71.5, 83.0, 87.0, 89.0),
        "LIA-E": (65.1, 73.0, 78.1, 77.2, 78.9),
        "LIA": (71.5, 76.2, 83.1, 90.0, 93.0),
    },
    "wordsim": {
        "majority": (82.8, 87.1, 88.6),
        "MMCE": (80.1, 87.0, 90.2),
        "label model": (76.0, 85.1, 93.1),
        "LIA-E": (87.7, 87.7, 87.7),
        "LIA": (88.7, 92.7, 96.3),
    },
    "rte": {
        "majority": (72.8, 84.8, 90.0),
        "MMCE": (75.3, 88.5, 92.7),
        "label model": (61.0, 72.4, 78.0),
        "LIA-E": (76.7, 84.3, 91.6),
        "LIA": (78.0, 89.1, 93.1),
    },
}

# === The sets ===


@dataclasses.dataclass(frozen=True)
class CrowdSet:
    """Features [N, D], annotations of two classes, gold class codes [N]."""

    x: np.ndarray
    annotations: Annotations
    gold: np.ndarray


def bluebirds() -> CrowdSet:
    folder = DATA / "bluebirds-lia"
    with np.load(folder / "vgg16_features.npz") as arrays:
        images, x = arrays["arr_0"].tolist(), arrays["arr_1"]
    gold = _yes_or_no((folder / "gt.yaml").read_text())
    answers = [
        (image, int(annotator), said)
        for annotator, block in re.findall(r"(\d+): \{([^}]*)\}", (folder / "labels.yaml").read_text())
        for image, said in _yes_or_no(block).items()
    ]
    return CrowdSet(_rotated(x), _annotations(answers, images), np.array([gold[image] for image in images]))


def _yes_or_no(text: str) -> dict[int, int]:
    return {int(name): int(said == "true") for name, said in re.findall(r"(\d+): (true|false)", text)}


def wordsim() -> CrowdSet:
    rows = _table(DATA / "snow2008" / "all_collected_data" / "wordsim.standardized.tsv")
    gold = {row["orig_id"]: int(float(row["gold"]) > 2) for row in rows}  # 0 to 4
    answers = [(row["orig_id"], row["!amt_worker_ids"], int(float(row["response"]) > 5)) for row in rows]  # 0 to 10
    lines = (DATA / "wordsim-lia" / "glove_features.txt").read_text().splitlines()
    vectors = {words: np.array(numbers.split(), "float32") for words, numbers in (line.split("\t") for line in lines)}
    pairs = list(gold)
    x = np.stack([vectors[pair] for pair in pairs])
    return CrowdSet(_rotated(x), _annotations(answers, pairs), np.array(list(gold.values())))


def rte() -> CrowdSet:
    rows = _table(DATA / "snow2008" / "all_collected_data" / "rte.standardized.tsv")
    gold = {row["orig_id"]: int(row["gold"]) for row in rows}
    answers = [(row["orig_id"], row["!amt_worker_ids"], int(row["response"])) for row in rows]
    folder = DATA / "snow2008" / "snow2008_mturk_data_with_orig_files_assembled_201904"
    texts = {row["id"]: (row["text"], row["hypothesis"]) for row in _table(folder / "rte" / "rte1.tsv")}
    tasks = list(gold)
    x = np.concatenate([_hashed_words([texts[task][part] for task in tasks]) for part in (0, 1)], axis=1)
    return CrowdSet(_rotated(x), _annotations(answers, tasks), np.array(list(gold.values())))


def _table(path: Path) -> list[dict[str, str]]:
    head, *lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return [dict(zip(head.split("\t"), line.split("\t"), strict=False)) for line in lines]


def _annotations(answers: list[tuple[Any, Any, int]], tasks: list[Any]) -> Annotations:
    return Annotations.from_arrays(*zip(*answers, strict=True), tasks=tasks, classes=[0, 1], on_duplicate="first")


def _hashed_words(texts: list[str], size: int = 1024) -> np.ndarray:
    """Counts of hashed words, weighted by their rarity, rows of length one: [texts, size]."""
    counts = np.zeros((len(texts), size))
    for row, text in enumerate(texts):
        for word in re.findall(r"\w+", text.lower()):
            counts[row, zlib.crc32(word.encode()) % size] += 1
    weighted = counts * (1 + np.log((1 + len(texts)) / (1 + (counts > 0).sum(axis=0))))
    return weighted / np.linalg.norm(weighted, axis=1, keepdims=True)


def _rotated(x: np.ndarray, axes: int = 128) -> np.ndarray:
    """The features along their (at most 128) principal axes, divided by the largest absolute value."""
    left, scale, _ = np.linalg.svd(x / np.abs(x).max(), full_matrices=False)
    x = (left * scale)[:, :axes]
    return (x / np.abs(x).max()).astype("float32")


SETS: dict[str, Callable[[], CrowdSet]] = {"bluebirds": bluebirds, "wordsim": wordsim, "rte": rte}

# === Rows ===


def measure(name: str, row: str, wanted: dict[int, list[int]]) -> tuple[dict[int, dict[int, dict[str, float]]], int]:
    """Accuracies of a row: redundancy -> seed -> figures; and the peak memory of this process in MiB."""
    data = SETS[name]()
    found: dict[int, dict[int, dict[str, float]]] = {}
    for redundancy, seeds in wanted.items():
        for seed in seeds:
            annotations = data.annotations.restrict(redundancy=redundancy, seed=seed)
            start = time.perf_counter()
            figures = _aggregated(row, annotations, data) if row in AGGREGATORS else _lia(row, annotations, data, seed)
            seconds = round(time.perf_counter() - start, 2)
            found.setdefault(redundancy, {})[seed] = {**figures, "seconds": seconds}
            print(f"{name:10} {row:15} r={redundancy:<3} seed {seed}: {found[redundancy][seed]}", flush=True)
    return found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _aggregated(row: str, annotations: Annotations, data: CrowdSet) -> dict[str, float]:
    from crowdzoo.aggregation import create

    return {"posterior": round(create(AGGREGATORS[row]).fit(annotations).expected_accuracy(data.gold), 4)}


def _lia(row: str, annotations: Annotations, data: CrowdSet, seed: int) -> dict[str, float]:
    import keras

    from crowdzoo.layers.lia import LIA
    from crowdzoo.models import CrowdModel
    from crowdzoo.models.training_data import ArrayData

    class OneBatch(keras.utils.PyDataset):
        """The full batch, again and again: an epoch of many steps costs Keras less than as many epochs."""

        def __init__(self, batches: Any, steps: int):
            super().__init__()
            self.batches = batches
            self.steps = steps

        @property
        def num_batches(self) -> int:
            return self.steps

        def on_epoch_begin(self) -> None:
            self.batch = self.batches[0]

        def __getitem__(self, index: int) -> Any:
            return self.batch

    class Repeated(ArrayData):
        def batches(self, *args: Any, inputs: tuple[str, ...] = ("annotators",), **kwargs: Any) -> Any:
            batches = super().batches(*args, inputs=inputs, **kwargs)
            return batches if "tasks" in inputs else OneBatch(batches, STEPS)

    arguments = dict(NETWORKS[row])
    embedding = arguments.pop("embedding", False)
    x = np.arange(len(data.x), dtype="int32") if embedding else data.x
    keras.utils.set_random_seed(seed)
    instances = keras.Input(x.shape[1:], dtype=x.dtype.name)
    hidden = keras.layers.Embedding(len(x), 16, name="task")(instances) if embedding else instances
    for units in SETTINGS["hidden"]:
        hidden = keras.layers.Dense(units, activation=SETTINGS["activation"])(hidden)
    base = keras.Model(instances, keras.layers.Dense(2, activation="softmax")(hidden))
    layer = LIA(
        annotations.num_annotators,
        hidden=SETTINGS["hidden"],
        activation=SETTINGS["activation"],
        annotator_embedding=SETTINGS["annotator_embedding"],
        epochs_per_round=SETTINGS["steps_per_round"] // STEPS,
        marginal_epochs=SETTINGS["marginal_steps"] // STEPS,
        **arguments,
    )
    model = CrowdModel(base, layer, features="task" if embedding else None)
    model.compile(keras.optimizers.Adam(SETTINGS["learning_rate"], amsgrad=SETTINGS["amsgrad"]))
    epochs = SETTINGS["rounds"] * SETTINGS["steps_per_round"] // STEPS
    model.fit(Repeated(x, annotations), epochs=epochs, batch_size=len(x), shuffle=False, verbose=0)
    right = {
        "posterior": model.posteriors(x, annotations).argmax(axis=1) == data.gold,
        "h": model.predict(x, verbose=0).argmax(axis=1) == data.gold,
    }
    return {name: round(float(each.mean()), 4) for name, each in right.items()}


STEPS = 200  # in an epoch of `Repeated`

# === Runs and tables ===


def about(row: str) -> dict[str, Any]:
    if row in AGGREGATORS:
        return {"python": platform.python_version(), "numpy": version("numpy"), "cores": os.cpu_count()}
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    packages = {name: version(name) for name in ("numpy", "keras", backend)}
    return {"python": platform.python_version(), "backend": backend, **packages, "cores": os.cpu_count()}


def run(table: dict[str, Any], sets: list[str], rows: list[str], draws: int, again: bool) -> None:
    """Fills the table and saves it after each row."""
    table["settings"] = SETTINGS
    for name in sets:
        for row in rows:
            cell = table.setdefault("sets", {}).setdefault(name, {}).setdefault(row, {})
            if again:
                cell.clear()
            known = cell.setdefault("draws", {})
            wanted = {
                redundancy: [seed for seed in range(draws) if str(seed) not in known.get(str(redundancy), {})]
                for redundancy in REDUNDANCIES[name]
            }
            if not any(wanted.values()):
                continue
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                found, memory = pool.submit(measure, name, row, wanted).result()
            for redundancy, figures in found.items():
                known.setdefault(str(redundancy), {}).update({str(seed): each for seed, each in figures.items()})
            cell["peak_mib"] = max(memory, cell.get("peak_mib", 0))
            cell["about"] = about(row)
            save(table)


def save(table: dict[str, Any]) -> None:
    """Puts the table into the file, beside what another run may have written there in the meantime."""
    saved = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name, rows in table["sets"].items():
        saved.setdefault("sets", {}).setdefault(name, {}).update({row: cell for row, cell in rows.items() if cell})
    saved["settings"] = table["settings"]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


def tables(table: dict[str, Any]) -> Iterator[tuple[str, list[str], list[list[Any]]]]:
    """Title, header and rows of one table for each set."""
    for name, rows in table.get("sets", {}).items():
        redundancies = REDUNDANCIES[name]
        head = ["row", "label by", *(f"r={r}" for r in redundancies), "seconds", "MiB"]
        lines = []
        for row in (each for each in ROWS if each in rows):
            cells = rows[row]
            draws = {r: list(cells["draws"].get(str(r), {}).values()) for r in redundancies}
            every = [draw for each in draws.values() for draw in each]
            seconds = f"{statistics.median(draw['seconds'] for draw in every):.1f}" if every else ""
            for figure in ("posterior", "h") if row in NETWORKS else ("posterior",):
                shown = [_mean([100 * draw[figure] for draw in draws[r]]) for r in redundancies]
                lines.append([row, figure, *shown, seconds, cells.get("peak_mib", "")])
            published = PUBLISHED[name].get(row)
            if published:
                lines.append(["", "published", *(f"{value:.1f}" for value in published), "", ""])
        count = max(len(each) for cells in rows.values() for each in cells["draws"].values())
        yield f"{name}: accuracy in percent, mean ± sd of up to {count} draws", head, lines


def show(table: dict[str, Any]) -> None:
    """Prints the tables."""
    for title, header, rows in tables(table):
        print_table(title, header, rows)
        print()


def _mean(values: list[float]) -> str:
    if not values:
        return "–"
    return f"{statistics.mean(values):.1f}" + (f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--again", action="store_true", help="also what is in the saved results already")
    parser.add_argument("--print", action="store_true", help="only print the saved results")
    options = parser.parse_args()
    table = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if not options.print:
        run(table, options.data, options.rows, options.draws, options.again)
    show(table)


if __name__ == "__main__":
    main()
