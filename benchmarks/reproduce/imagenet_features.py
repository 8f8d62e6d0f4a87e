"""Every deep method on ImageNet features of LabelMe's and Blue Birds' photographs, five-fold.

    python benchmarks/datasets/efficientnet_lite0.py features --folder FOLDER   # once; see there
    python benchmarks/reproduce/imagenet_features.py --folder FOLDER            # all that is missing in the results
    python benchmarks/reproduce/imagenet_features.py --print                    # the tables of the saved results

**Protocol**, fixed before the first training on these features.

- Features: the 1,280 outputs of the global pooling layer of EfficientNet-Lite0, whose ImageNet weights stay as they
  are. No gold label of these sets chose the network, the layer or the crop. Beside them, on the same folds: LabelMe's
  512 shipped descriptors (learnt from 750 of the photographs, without labels), and the 4,096 VGG16 features of Blue
  Birds that the authors of LIA publish (not rotated).
- Splits: the fifths of one permutation of all tasks (1,000 and 108), `one_fold` of deep_methods.py; seed s, which also
  is the training's, has fifth s. Later rounds of seeds, if any, have permutations of their own.
- Network and training: what a user gets who sets nothing, `TrainingSettings()`: standardised features, one hidden layer
  of 128 units with dropout .5, Adam .001, 60 epochs and batches by the number of tasks. The methods and their
  hyperparameters are the rows of deep_methods.py; nothing is chosen anew.
- Figures: accuracy on the test fifth after the last epoch; differences against DL-MV, paired by seed, with the interval
  of Nadeau and Bengio for fifths; the share of the way from DL-MV to gold.
- If gold has less than .93 on LabelMe, that figure stands. A second variant is then run, whose network the annotations
  choose: of `CANDIDATES` the one whose model, trained on the majority votes of nine tenths of the training tasks,
  agrees best with the annotations of the other tenth, by the mean of the five fifths.

Rows are trained one after the other in one process, so that the library is loaded once; each is saved with its stack
when it is done. Results go to benchmarks/results/imagenet_features.json.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lia
import numpy as np
from deep_methods import ROWS, SEEDS, Data, mean, mean_and_deviation, one_fold, runs_of, trained
from deep_methods import task_posteriors as posteriors_of
from intervals import shown
from stack import same_stack, stack

from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parents[1] / "results" / "imagenet_features.json"

# Rows of deep_methods.py: all thirteen methods, floor and ceiling
TRAINED = (
    "gold", "DL-MV", "DL-DS", "DL-DS soft", "cross-fitted EM", "DL-EM (AggNet)", "CL MW", "CL VW", "CL VB", "CL VW+B",
    "CL S", "DoctorNet", "WDN", "Anno-Reg", "Max-MIG", "UnionNet", "CCEM", "Pooled", "GeoCrowdNet F", "GeoCrowdNet W",
    "CoNAL", "LIA", "WAUM",
)  # fmt: skip
CANDIDATES: tuple[dict[str, Any], ...] = (
    {},
    {"hidden": ()},
    {"hidden": (512,)},
    {"dropout": 0.0},
    {"batch_normalization": True},
    {"learning_rate": 3e-4},
)

# === Data ===


def labelme(x: np.ndarray, tasks: Any) -> Data:
    from crowdzoo.datasets import load_labelme

    data = load_labelme()
    return _data(data.instances if x is None else x, data.annotations, data.gold, tasks)


def bluebirds(x: np.ndarray, tasks: Any) -> Data:
    data = lia.bluebirds()
    return _data(x, data.annotations, data.gold, tasks)


def _data(x: np.ndarray, annotations: Any, gold: np.ndarray, tasks: Any) -> Data:
    """All tasks, to be split by `one_fold`; features are put into the tasks' order by name."""
    if tasks is not None:
        row_of = {str(task): row for row, task in enumerate(tasks)}
        x = x[[row_of[str(task)] for task in annotations.tasks]]
    return Data(x.astype("float32"), annotations, gold, x[:0], gold[:0], {}, selecting=False)


def _imagenet(name: str, folder: Path) -> tuple[np.ndarray, Any]:
    with np.load(folder / f"imagenet_{name}.npz") as arrays:
        return arrays["features"], arrays["task"]


def _vgg16() -> tuple[np.ndarray, Any]:
    with np.load(lia.DATA / "bluebirds-lia" / "vgg16_features.npz") as arrays:
        return arrays["arr_1"], arrays["arr_0"]


# name, which ends in "-folds" -> all tasks, from the folder of features
DATA: dict[str, Callable[[Path], Data]] = {
    "labelme-imagenet-folds": lambda folder: labelme(*_imagenet("labelme", folder)),
    "labelme-descriptors-folds": lambda _: labelme(None, None),
    "bluebirds-imagenet-folds": lambda folder: bluebirds(*_imagenet("bluebirds", folder)),
    "bluebirds-vgg16-folds": lambda _: bluebirds(*_vgg16()),
}

# === One row ===


def work(row: str, data: Data, seeds: int) -> dict[str, Any]:
    """Trains one row on every fold."""
    cpu = time.process_time()
    runs = []
    for seed in range(seeds):
        fold = one_fold(data, seed)
        curve, model = trained(ROWS[row], fold, np.arange(len(fold.x)), np.array([], int), seed)
        runs.append({"seed": seed, "last": curve["test"][-1], "best": max(curve["test"]), "ece": curve["ece"]})
        inferred = posteriors_of(model, fold)
        if inferred is not None:
            runs[-1]["tasks"] = float((inferred.argmax(axis=1) == fold.gold).mean())
    return {
        "runs": runs,
        "cpu_seconds_a_training": (time.process_time() - cpu) / seeds,
        "row": dataclasses.asdict(ROWS[row]),
        "stack": stack(),
    }


def measure(names: list[str], rows: list[str], seeds: int, folder: Path, again: bool, out: Path) -> None:
    """Trains what the results do not have, or not on this stack."""
    for name in names:
        data = DATA[name](folder)
        for row in rows:
            saved = _read(out)
            old = saved.get(name, {}).get(row, {"runs": []})
            if not again and len(old["runs"]) >= seeds and same_stack(old.get("stack"), stack()):
                continue
            one = work(row, data, seeds)
            saved = _read(out)
            saved.setdefault(name, {})[row] = one
            out.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
            print(f"{name}, {row}: {100 * mean(one, 'last'):.2f}", flush=True)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


# === Tables ===

TITLES = {
    "labelme-imagenet-folds": "LabelMe, ImageNet features",
    "labelme-descriptors-folds": "LabelMe, shipped descriptors",
    "bluebirds-imagenet-folds": "Blue Birds, ImageNet features",
    "bluebirds-vgg16-folds": "Blue Birds, the published VGG16 features",
}
HEADER = ("trained by", "accuracy", "own tasks", "against DL-MV", "of the gap", "ECE", "CPU s")


def tables(results: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, header and rows of one table for each set and its features."""
    for name in (name for name in DATA if name in results):
        rows = results[name]
        floor, ceiling = (mean(rows[row], "last") if row in rows else np.nan for row in ("DL-MV", "gold"))
        lines = []
        for row in (row for row in TRAINED if row in rows):
            one = rows[row]
            gap = "" if row in ("gold", "DL-MV") else f"{100 * (mean(one, 'last') - floor) / (ceiling - floor):.0f} %"
            lines.append((
                row, mean_and_deviation(one, "last"), mean_and_deviation(one, "tasks"),
                "" if row == "DL-MV" else shown([runs_of(name, one, rows["DL-MV"])]), gap, f"{mean(one, 'ece'):.3f}",
                f"{one['cpu_seconds_a_training']:.1f}",
            ))  # fmt: skip
        yield TITLES[name], HEADER, lines


def show(results: dict[str, Any]) -> None:
    """Prints the tables."""
    for title, header, rows in tables(results):
        print_table(title, header, rows)
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description="Every deep method on ImageNet features of photographs.")
    parser.add_argument("--folder", type=Path, help="where the features are")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), metavar="NAME")
    parser.add_argument("--rows", nargs="+", choices=TRAINED, default=list(TRAINED), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="a multiple of five, for whole rounds of fifths")
    parser.add_argument("--again", action="store_true", help="also rows that are in the results")
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    if not args.only_print:
        if args.folder is None:
            parser.error("--folder says where the features are; benchmarks/datasets/efficientnet_lite0.py writes them")
        measure(args.data, args.rows, args.seeds, args.folder, args.again, args.out)
    show(_read(args.out))


if __name__ == "__main__":
    main()
