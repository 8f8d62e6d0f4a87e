"""Every deep method on ImageNet features of LabelMe's and Blue Birds' photographs, five-fold.

    python benchmarks/datasets/efficientnet_lite0.py --folder build/imagenet   # once; see there
    python benchmarks/reproduce/imagenet_features.py                           # all that is missing in the results

**Protocol**, fixed before the first training on these features.

- Features: the 1,280 outputs of the global pooling layer of EfficientNet-Lite0, whose ImageNet weights stay as they
  are. No gold label of these sets chose the network, the layer or the crop.
- Splits: the fifths of one permutation of all tasks (1,000 and 108), `one_fold` of deep_methods.py; seed s, which also
  is the training's, has fifth s. Later rounds of seeds, if any, have permutations of their own.
- Network and training: what a user gets who sets nothing, `TrainingSettings()`: standardised features, one hidden layer
  of 128 units with dropout .5, Adam .001, 60 epochs and batches by the number of tasks. The methods and their
  hyperparameters are the rows of deep_methods.py; nothing is chosen anew.
- Figures: accuracy on the test fifth after the last epoch; differences against DL-MV, paired by seed, with the interval
  of Nadeau and Bengio for fifths; the share of the way from DL-MV to gold.
- If gold has less than .93 on LabelMe, that figure is kept, and a second variant is run. (It was not needed.)

Each row is saved with its stack when it is done, to benchmarks/results/imagenet_features.json.
"""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import lia
import numpy as np
from deep_methods import ROWS, SEEDS, Data, mean, mean_and_deviation, one_fold, run_of, runs_of
from intervals import shown
from needed import need
from rows import Parts, run

from crowdzoo.datasets import load_labelme

RESULTS = Path(__file__).parents[1] / "results" / "imagenet_features.json"
FEATURES = Path(__file__).parents[2] / "build" / "imagenet"  # by datasets/efficientnet_lite0.py

# Rows of deep_methods.py: all thirteen methods, floor and ceiling
TRAINED = (
    "gold", "DL-MV", "DL-DS", "DL-DS soft", "cross-fitted EM", "DL-EM (AggNet)", "CL MW", "CL VW", "CL VB", "CL VW+B",
    "CL S", "DoctorNet", "WDN", "Anno-Reg", "Max-MIG", "UnionNet", "CCEM", "Pooled", "GeoCrowdNet F", "GeoCrowdNet W",
    "CoNAL", "LIA", "WAUM",
)  # fmt: skip

# === Data ===


def features_of(name: str) -> tuple[np.ndarray, Any]:
    """Features, and the names of their tasks."""
    with np.load(FEATURES / f"imagenet_{name.partition('-')[0]}.npz") as arrays:
        return arrays["features"], arrays["task"]


@cache
def data_of(name: str) -> Data:
    """All tasks, to be split by `one_fold`; features are put into the tasks' order by name."""
    source = load_labelme() if name.startswith("labelme") else lia.bluebirds()
    x, tasks = features_of(name)
    row_of = {str(task): row for row, task in enumerate(tasks)}
    x = x[[row_of[str(task)] for task in source.annotations.tasks]]
    return Data(x.astype("float32"), source.annotations, source.gold, x[:0], source.gold[:0], {})


def runs(name: str, row: str) -> Iterator[dict[str, Any]]:
    """One training on each fold."""
    for seed in range(SEEDS):
        yield run_of(ROWS[row], one_fold(data_of(name), seed), seed)


PARTS: Parts = {
    name: {row: partial(runs, name, row) for row in TRAINED}
    for name in ("labelme-imagenet-folds", "bluebirds-imagenet-folds")
}

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


if __name__ == "__main__":
    need("bluebirds-lia")
    run(RESULTS, PARTS, __doc__, option="--data")
