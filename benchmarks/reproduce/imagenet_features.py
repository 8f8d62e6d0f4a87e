"""Every deep method on ImageNet features of LabelMe's and Blue Birds' photographs, five-fold.

    python benchmarks/datasets/efficientnet_lite0.py features --folder FOLDER   # once; see there
    python benchmarks/reproduce/imagenet_features.py --folder FOLDER            # all that is missing in the results

**Protocol**, fixed before the first training on these features.

- Features: the 1,280 outputs of the global pooling layer of EfficientNet-Lite0, whose ImageNet weights stay as they
  are. No gold label of these sets chose the network, the layer or the crop. Beside them, on the same folds, the 4,096
  VGG16 features of Blue Birds that the authors of LIA publish (not rotated). (Amended: LabelMe's 512 shipped
  descriptors were to be trained on the same folds. There was no time for it, so the page has the saved rows of
  reproduce_deep.json: ten fifths of 750 of the photographs.)
- Splits: the fifths of one permutation of all tasks (1,000 and 108), `one_fold` of deep_methods.py; seed s, which also
  is the training's, has fifth s. Later rounds of seeds, if any, have permutations of their own.
- Network and training: what a user gets who sets nothing, `TrainingSettings()`: standardised features, one hidden layer
  of 128 units with dropout .5, Adam .001, 60 epochs and batches by the number of tasks. The methods and their
  hyperparameters are the rows of deep_methods.py; nothing is chosen anew.
- Figures: accuracy on the test fifth after the last epoch; differences against DL-MV, paired by seed, with the interval
  of Nadeau and Bengio for fifths; the share of the way from DL-MV to gold.
- If gold has less than .93 on LabelMe, that figure is kept, and a second variant is run. (It was not needed.)

Rows are trained one after the other in one process, so that the library is loaded once; each is saved with its stack
when it is done. Results go to benchmarks/results/imagenet_features.json.
"""

import argparse
import dataclasses
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lia
import numpy as np
from deep_methods import ROWS, SEEDS, Data, mean, mean_and_deviation, one_fold, runs_of, trained
from deep_methods import task_posteriors as posteriors_of
from intervals import shown
from needed import need
from rows import add_again, save
from settings import recorded
from stack import same_stack, stack

RESULTS = Path(__file__).parents[1] / "results" / "imagenet_features.json"

# Rows of deep_methods.py: all thirteen methods, floor and ceiling
TRAINED = (
    "gold", "DL-MV", "DL-DS", "DL-DS soft", "cross-fitted EM", "DL-EM (AggNet)", "CL MW", "CL VW", "CL VB", "CL VW+B",
    "CL S", "DoctorNet", "WDN", "Anno-Reg", "Max-MIG", "UnionNet", "CCEM", "Pooled", "GeoCrowdNet F", "GeoCrowdNet W",
    "CoNAL", "LIA", "WAUM",
)  # fmt: skip

# === Data ===


def labelme(x: np.ndarray, tasks: Any) -> Data:
    from crowdzoo.datasets import load_labelme

    data = load_labelme()
    return data_of(x, data.annotations, data.gold, tasks)


def bluebirds(x: np.ndarray, tasks: Any) -> Data:
    data = lia.bluebirds()
    return data_of(x, data.annotations, data.gold, tasks)


def data_of(x: np.ndarray, annotations: Any, gold: np.ndarray, tasks: Any) -> Data:
    """All tasks, to be split by `one_fold`; features are put into the tasks' order by name."""
    row_of = {str(task): row for row, task in enumerate(tasks)}
    x = x[[row_of[str(task)] for task in annotations.tasks]]
    return Data(x.astype("float32"), annotations, gold, x[:0], gold[:0], {})


def _imagenet(name: str, folder: Path) -> tuple[np.ndarray, Any]:
    with np.load(folder / f"imagenet_{name}.npz") as arrays:
        return arrays["features"], arrays["task"]


def _vgg16() -> tuple[np.ndarray, Any]:
    with np.load(lia.DATA / "bluebirds-lia" / "vgg16_features.npz") as arrays:
        return arrays["arr_1"], arrays["arr_0"]


# name, which ends in "-folds" -> all tasks, from the folder of features
DATA: dict[str, Callable[[Path], Data]] = {
    "labelme-imagenet-folds": lambda folder: labelme(*_imagenet("labelme", folder)),
    "bluebirds-imagenet-folds": lambda folder: bluebirds(*_imagenet("bluebirds", folder)),
    "bluebirds-vgg16-folds": lambda _: bluebirds(*_vgg16()),
}

# === One row ===


def work(row: str, data: Data, seeds: int) -> dict[str, Any]:
    """Trains one row on every fold, and says with which settings."""
    cpu = time.process_time()
    with recorded() as settings:
        runs = [run_of(row, data, seed) for seed in range(seeds)]
    return {
        "runs": runs,
        "cpu_seconds_a_training": (time.process_time() - cpu) / seeds,
        "row": dataclasses.asdict(ROWS[row]),
        "stack": stack(),
        "settings": settings,
    }


def run_of(row: str, data: Data, seed: int) -> dict[str, Any]:
    """Trains one row on one fold."""
    fold = one_fold(data, seed)
    curve, model = trained(ROWS[row], fold, seed)
    run = {"seed": seed, "last": curve["test"][-1], "best": max(curve["test"]), "ece": curve["ece"]}
    inferred = posteriors_of(model, fold)
    if inferred is not None:
        run["tasks"] = float((inferred.argmax(axis=1) == fold.gold).mean())
    return run


def measure(args: argparse.Namespace) -> None:
    """Trains what the results do not have, or not on this stack."""
    out, seeds = args.out, args.seeds
    data = {name: DATA[name](args.folder) for name in args.data}
    for row, name in itertools.product(args.rows, args.data):
        old = _read(out).get(name, {}).get(row, {"runs": []})
        if not args.again and len(old["runs"]) >= seeds and same_stack(old.get("stack"), stack()):
            continue
        result = work(row, data[name], seeds)
        save(args, out, _read(out), (name, row), result)
        print(f"{name}, {row}: {100 * mean(result, 'last'):.2f}", flush=True)


def checks(folder: Path) -> dict[str, Any]:
    """What shows that the network is the published one."""
    return {"compared": json.loads((folder / "compare.json").read_text(encoding="utf-8")), "stack": stack()}


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


# === Figures ===


def figures(name: str, rows: dict[str, Any], row: str) -> tuple[str, str, str]:
    """Accuracy, its difference to DL-MV, and the share of the way from DL-MV to gold."""
    against = "" if row == "DL-MV" else shown([runs_of(name, rows[row], rows["DL-MV"])])
    return mean_and_deviation(rows[row], "last"), against, _share(rows, row)


def _share(rows: dict[str, Any], row: str) -> str:
    """Share of the way from DL-MV to gold."""
    if row in ("gold", "DL-MV"):
        return ""
    floor, ceiling = (mean(rows[name], "last") for name in ("DL-MV", "gold"))
    return f"{100 * (mean(rows[row], 'last') - floor) / (ceiling - floor):.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description="Every deep method on ImageNet features of photographs.")
    parser.add_argument("--folder", type=Path, required=True, help="of datasets/efficientnet_lite0.py's features")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), metavar="NAME")
    parser.add_argument("--rows", nargs="+", choices=TRAINED, default=list(TRAINED), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="a multiple of five, for whole rounds of fifths")
    add_again(parser)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    save(args, args.out, _read(args.out), ("network",), checks(args.folder))
    measure(args)


if __name__ == "__main__":
    need("bluebirds-lia")
    main()
