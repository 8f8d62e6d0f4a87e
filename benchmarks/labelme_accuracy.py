"""How often the base is right on held-out LabelMe images, by what it was trained on.

    python benchmarks/labelme_accuracy.py               # about 15 minutes on two busy cores

Four random splits into 750 training and 250 held-out tasks, three seeds each, and the split that ships with crowdzoo
with five; every method on the same splits with the same seeds, so that differences are paired. The settings are
`TrainingSettings()`: those of Rodrigues and Pereira (AAAI 2018) for their base (128 ReLU, dropout 0.5, Adam at 0.001,
batches of 64) and 60 epochs, for every method alike. Nothing stops early and nothing is chosen by gold.

The descriptors' codebook was learnt, without labels, from the shipped split's training images; some of them are held
out in the random splits.

The result goes to benchmarks/results/labelme_accuracy.json.
"""

import argparse
import json
import os
import platform
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from crowdzoo.datasets import load_labelme
from crowdzoo.report.comparison import COMPARED, compare
from crowdzoo.report.tables import print_table

METHODS = ("majority", "majority-soft", "dawid-skene", "dawid-skene-soft", "VW", "MW", "gold")
# Reached with plain log-Gabor descriptors: the least to expect of better ones
BARS = {"majority": 0.703, "dawid-skene": 0.732, "VW": 0.757, "MW": 0.758, "gold": 0.820}
RESULT = Path(__file__).with_name("results") / "labelme_accuracy.json"


def random_split(number, num_tasks):
    """The split of that number: "train" or "eval", str [N]; a quarter is held out."""
    order = np.random.default_rng(100 + number).permutation(num_tasks)
    split = np.full(num_tasks, "train")
    split[order[: num_tasks // 4]] = "eval"
    return split


def summary(accuracies):
    """Mean, deviation and paired differences: method -> numbers; accuracies: method -> one number a training."""
    result = {}
    for method, values in accuracies.items():
        gain = np.array(values) - accuracies["majority"]
        result[method] = {
            "mean": float(np.mean(values)),
            "std": float(np.std(values, ddof=1)),
            "against_majority_mean": float(gain.mean()),
            "against_majority_std": float(gain.std(ddof=1)),
            "better_than_majority": f"{int((gain > 0).sum())} of {len(gain)}",
        }
    return result


def show(title, figures):
    rows = [
        (
            method,
            f"{one['mean']:.3f} ± {one['std']:.3f}",
            f"{one['against_majority_mean']:+.3f} ± {one['against_majority_std']:.3f}" if method != "majority" else "",
            one["better_than_majority"] if method != "majority" else "",
            f"{BARS[method]:.3f}" if method in BARS else "",
            COMPARED[method],
        )
        for method, one in figures.items()
    ]
    print_table(title, ("trained on", "test accuracy", "against majority", "better in", "bar", "that is"), rows)


def main():
    parser = argparse.ArgumentParser(description="Accuracy on LabelMe by what the base was trained on.")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fixed-seeds", type=int, default=5, help="seeds on the split that ships")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args()

    labelme = load_labelme()

    def progress(method, seed, done, total):
        print(f"  {done}/{total} {method}, seed {seed}", flush=True)

    splits = [random_split(number, len(labelme.gold)) for number in range(args.splits)]
    results = []
    for number, split in enumerate(splits):
        print(f"split {number}", flush=True)
        results.append(compare(labelme, METHODS, range(args.seeds), split=split, progress=progress))
    print("the split that ships", flush=True)
    fixed = compare(labelme, METHODS, range(args.fixed_seeds), progress=progress)

    pooled = {method: np.concatenate([one.accuracies[method] for one in results]) for method in METHODS}
    random_figures, fixed_figures = summary(pooled), summary(fixed.accuracies)
    show(f"{args.splits} random splits, {args.seeds} seeds each", random_figures)
    show(f"the split that ships, {args.fixed_seeds} seeds", fixed_figures)
    record = {
        "random_splits": {"figures": random_figures, "comparisons": [one.to_dict() for one in results]},
        "shipped_split": {"figures": fixed_figures, "comparison": fixed.to_dict()},
        "bars": BARS,
        "versions": {
            "python": platform.python_version(),
            "keras": keras.__version__,
            "backend": keras.backend.backend(),
            "numpy": np.__version__,
        },
    }
    for comparison in [*record["random_splits"]["comparisons"], record["shipped_split"]["comparison"]]:
        del comparison["curves"]  # thousands of numbers that nobody compares
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
