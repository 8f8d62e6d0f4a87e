"""WAUM (Lefort, Charlier, Joly and Salmon, TMLR 2024) on circles and on the Music genres: ranking, and training.

    python benchmarks/reproduce/waum.py                     # everything; about a quarter of an hour on one free core
    python benchmarks/reproduce/waum.py --parts ranking     # of: circles, ranking, training
    python benchmarks/reproduce/waum.py --print             # runs nothing, shows what was saved

Circles: 250 points a class, network 30-20-20, alpha .1, tested on 1,000 fresh points a class. The source does not say
how its annotators were simulated; those here are made up (see the functions before CROWDS), so that only the order of
the methods could be expected to agree. Data, crowd and weights are drawn anew for each seed. "Spammers left out" drops
a tenth of the annotators, rounded down: of three, nobody.

Music: the songs and annotations of Rodrigues et al. below CROWDZOO_DATA (see `crowdzoo.datasets.data_folder`), CoNAL's
network. Accuracies of the vote are those expected if ties are broken at random. Nothing is chosen by gold.

The result goes to benchmarks/results/waum.json, as soon as each table is done, with its stack. Seconds are the CPU time
of a row's runs together, the first of which compiles the network; peak memory is that of the process, Keras included.
"""

import argparse
import contextlib
import csv
import functools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import sklearn
from needed import need
from simulated_crowds import ask_annotators, make_circles, neighbour_annotators
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from stack import stack
from waum_pruning import waum

from crowdzoo import Annotations
from crowdzoo.aggregation import GLAD, DawidSkene, MajorityVote
from crowdzoo.aggregation.engine.labels import tied_classes
from crowdzoo.datasets import data_folder
from crowdzoo.layers import WAUM
from crowdzoo.metrics import accuracy, expected_calibration_error
from crowdzoo.models import CrowdModel, FeatureClassifier
from crowdzoo.quality import spammer_scores, task_table
from crowdzoo.training.recipes.waum import TrainingStart

RESULT = Path(__file__).parents[1] / "results" / "waum.json"
SEEDS = range(5)
PARTS = ("circles", "ranking", "training")

CIRCLES = {"per_class": 250, "noise": 0.12, "alpha": 0.1, "epochs": 40, "margin_epochs": 40, "learning_rate": 0.01}
FRESH = 1000  # test points a class
MUSIC = {"epochs": 100, "margin_epochs": 50, "learning_rate": 0.001}
BATCH_SIZE = 64
ALPHAS = (0.0, 0.01, 0.05, 0.1, 0.2)
WORST = (0.05, 0.1, 0.2)
# three circles, one run: printed in the authors' slides
PRINTED = {"majority vote": 0.727, "naive soft": 0.697, "Dawid-Skene": 0.753, "GLAD": 0.578, "WAUM": 0.806}
BARS = {"worst 10 %, at most": 0.40, "the rest, at least": 0.74}

# === What a row costs ===


class Cost:
    """CPU seconds and peak memory of what runs within."""

    def __enter__(self) -> "Cost":
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self._start = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.process_time() - self._start
        lines = Path("/proc/self/status").read_text().splitlines()
        self.peak_mib = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def added(row: dict[str, Any], cost: Cost, **figures: Any) -> None:
    """Adds one seed's figures to a row."""
    for name, value in figures.items():
        row.setdefault(name, []).append(round(float(value), 5))
    row["cpu_seconds"] = round(row.get("cpu_seconds", 0.0) + cost.seconds, 2)
    row["peak_mib"] = round(max(row.get("peak_mib", 0.0), cost.peak_mib))


def _made_by() -> dict[str, Any]:
    """What a table was computed on."""
    return {"stack": stack(), "scikit-learn": sklearn.__version__}


# === Training ===


class Trainer:
    """Trains one network again and again, each time from fresh weights: compiling it takes longer than training it.

    Args:
        make_base: makes the network.
        crowd: its crowd layer, or None for training on given targets.
        learning_rate: of Adam.
    """

    def __init__(self, make_base: Callable[[], FeatureClassifier], crowd: WAUM | None, learning_rate: float):
        self.make_base = make_base
        self.model = CrowdModel(make_base(), crowd)
        self.model.compile(keras.optimizers.Adam(learning_rate))
        self.start = TrainingStart(self.model)

    def fit(self, x: np.ndarray, targets: Any, epochs: int, seed: int) -> CrowdModel:
        """As if weights, dropout and optimizer were new and made with that seed."""
        keras.utils.set_random_seed(seed)
        self.start.restore()
        for variable, fresh in zip(self.model.base.variables, self.make_base().variables, strict=True):
            variable.assign(fresh)
        tasks = targets.tasks if isinstance(targets, Annotations) else None
        self.model.fit(x, targets, tasks=tasks, epochs=epochs, batch_size=BATCH_SIZE, seed=seed, verbose=0)
        return self.model


# === Circles ===


def neighbours(x: np.ndarray, gold: np.ndarray, seed: int) -> Annotations:
    """Twenty annotators who know 10 to 60 points and say the nearest one's class; five answer each task."""
    known = np.random.default_rng([seed, 1]).integers(10, 61, size=20)
    return ask_annotators(x, neighbour_annotators(x, gold, 20, known, seed), gold.max() + 1, redundancy=5, seed=seed)


def small_classifiers(x: np.ndarray, gold: np.ndarray, seed: int) -> Annotations:
    """Ten decision trees and ten RBF SVMs, each fitted to 20 to 90 points; five answer each task."""
    rng = np.random.default_rng([seed, 2])
    annotators = []
    for number in range(20):
        seen = rng.choice(len(x), size=rng.integers(20, 91), replace=False)
        depth = int(rng.integers(3, 7))
        model = SVC() if number % 2 else DecisionTreeClassifier(max_depth=depth, random_state=number)
        annotators.append(model.fit(x[seen], gold[seen]).predict)
    return ask_annotators(x, annotators, gold.max() + 1, redundancy=5, seed=seed)


def three_classifiers(x: np.ndarray, gold: np.ndarray, seed: int) -> Annotations:
    """A linear SVM (which cannot see circles), an RBF SVM and five rounds of boosted stumps; all answer every task."""
    models = [
        LinearSVC(max_iter=1000, random_state=seed),
        SVC(),
        GradientBoostingClassifier(n_estimators=5, max_depth=1, random_state=seed),
    ]
    return ask_annotators(x, [model.fit(x, gold).predict for model in models], gold.max() + 1)


CROWDS: tuple[tuple[int, Callable[[np.ndarray, np.ndarray, int], Annotations]], ...] = (
    (3, neighbours),
    (2, neighbours),
    (3, small_classifiers),
    (3, three_classifiers),
)


def without_spammers(annotations: Annotations, drop: float = 0.1) -> np.ndarray:
    """Posteriors of Dawid-Skene without the share of the annotators with the lowest spammer scores."""
    first = DawidSkene().fit(annotations)
    here = np.flatnonzero(first.annotations_per_annotator > 0)
    gone = here[np.argsort(spammer_scores(first)[here], kind="stable")[: int(drop * len(here))]]
    return DawidSkene().fit(annotations.select_rows(~np.isin(annotations.annotator_ids, gone))).posteriors


AGGREGATED: dict[str, Callable[[Annotations], np.ndarray]] = {
    "majority vote": lambda annotations: MajorityVote(voting="hard").fit(annotations).posteriors,
    "naive soft": lambda annotations: MajorityVote().fit(annotations).posteriors,
    "Dawid-Skene": lambda annotations: DawidSkene().fit(annotations).posteriors,
    "Dawid-Skene, spammers left out": without_spammers,
    "GLAD": lambda annotations: GLAD().fit(annotations).posteriors,
}


def measure_circles(table: dict[str, Any]) -> Iterator[None]:
    settings = CIRCLES
    for circles, simulate in CROWDS:
        rows: dict[str, dict[str, Any]] = {}
        make_base = functools.partial(FeatureClassifier, 2, circles, hidden=(30, 20, 20), dropout=0.0)
        on_targets = Trainer(make_base, None, settings["learning_rate"])
        by_waum: Trainer | None = None
        for seed in SEEDS:
            x, gold = make_circles(circles, settings["per_class"], settings["noise"], seed)
            fresh, truth = make_circles(circles, FRESH, settings["noise"], 1000 + seed)
            annotations = simulate(x, gold, seed)
            if by_waum is None:
                crowd = WAUM(annotations.num_annotators, settings["alpha"], settings["margin_epochs"])
                by_waum = Trainer(make_base, crowd, settings["learning_rate"])
            vote = MajorityVote().fit(annotations).expected_accuracy(gold)
            rows.setdefault("the vote itself", {}).setdefault("accuracy", []).append(round(vote, 5))
            for method in ("gold", *AGGREGATED, "WAUM"):
                with Cost() as cost:
                    trainer, targets = on_targets, np.eye(circles)[gold]
                    if method == "WAUM":
                        trainer, targets = by_waum, annotations
                    elif method != "gold":
                        targets = AGGREGATED[method](annotations)
                    said = trainer.fit(x, targets, settings["epochs"], seed).predict(fresh, verbose=0)
                added(
                    rows.setdefault(method, {}), cost,
                    accuracy=accuracy(truth, said.argmax(axis=1)), ece=expected_calibration_error(truth, said),
                )  # fmt: skip
            print(f"  {circles} circles, {simulate.__name__}, seed {seed}", flush=True)
        name = f"{circles} circles, {simulate.__name__.replace('_', ' ')}"
        table.setdefault("circles", {})[name] = {"crowd": str(simulate.__doc__), "rows": rows, **_made_by()}
        yield


# === Music ===


def load_music() -> tuple[np.ndarray, np.ndarray, Annotations, np.ndarray, np.ndarray]:
    """Features and classes of 700 songs, their annotations, and features and classes of 300 test songs."""
    folder = data_folder() / "music-genre-amt"

    def read(name: str) -> list[dict[str, str]]:
        with open(folder / name, encoding="utf-8", newline="") as text:
            return list(csv.DictReader(text))

    train, test, answers = (read(f"music_genre_{part}.csv") for part in ("gold", "test", "mturk"))
    columns = [column for column in train[0] if column.startswith("feature")]
    classes = sorted({row["class"] for row in train})
    annotations = Annotations.from_arrays(
        [row["id"] for row in answers],
        [row["annotator"] for row in answers],
        [row["class"] for row in answers],
        tasks=[row["id"] for row in train],
        classes=classes,
    )

    def arrays(rows: list[dict[str, str]]) -> tuple[np.ndarray, np.ndarray]:
        features = np.array([[float(row[column]) for column in columns] for row in rows], "float32")
        return features, np.array([classes.index(row["class"]) for row in rows])

    return *arrays(train), annotations, *arrays(test)


def music_base(x: np.ndarray) -> FeatureClassifier:
    base = FeatureClassifier(x.shape[1], 10, batch_normalization=True)
    base.adapt(x)
    return base


def measure_ranking(table: dict[str, Any]) -> Iterator[None]:
    x, gold, annotations, *_ = load_music()
    tied = tied_classes(MajorityVote().fit(annotations).posteriors)
    right = tied[np.arange(len(gold)), gold] / tied.sum(axis=1)  # of the vote, expected
    rows: dict[str, dict[str, Any]] = {}

    def ranked(name: str, badness: np.ndarray, cost: Cost) -> None:
        figures = {}
        for share in WORST:
            chosen = chosen_as_worst(badness, round(share * len(gold)))
            figures[f"worst {share:.0%}"] = chosen @ right / chosen.sum()
            figures[f"rest after {share:.0%}"] = (1 - chosen) @ right / (1 - chosen).sum()
        added(rows.setdefault(name, {}), cost, **figures)

    for margin, name in (("top-2", "WAUM, top-2 margin"), ("pleiss", "WAUM, Pleiss margin")):
        for seed in SEEDS:
            with Cost() as cost:
                found = waum(
                    lambda: music_base(x), x, annotations, tasks=annotations.tasks,
                    epochs=MUSIC["margin_epochs"], batch_size=BATCH_SIZE, margin=margin, seed=seed,
                )  # fmt: skip
            ranked(name, -found.waum, cost)
            print(f"  {name}, seed {seed}", flush=True)
    with Cost() as cost:
        entropy = np.round(task_table(annotations)["entropy"].to_numpy(), 9)
    ranked("vote entropy", entropy, cost)
    table["ranking"] = {"all tasks": round(float(right.mean()), 5), "rows": rows, **_made_by()}
    yield


def chosen_as_worst(badness: np.ndarray, number: int) -> np.ndarray:
    """P(a task is among the worst `number`), [N], if ties are broken at random."""
    cut = np.sort(badness)[-number]
    surely, tied = badness > cut, badness == cut
    return surely + tied * (number - surely.sum()) / tied.sum()


def measure_training(table: dict[str, Any]) -> Iterator[None]:
    x, _, annotations, fresh, truth = load_music()
    make_base = functools.partial(music_base, x)
    on_targets = Trainer(make_base, None, MUSIC["learning_rate"])
    methods = {name: (on_targets, AGGREGATED[name]) for name in ("majority vote", "naive soft", "Dawid-Skene")}
    for alpha in ALPHAS:
        crowd = WAUM(annotations.num_annotators, alpha, MUSIC["margin_epochs"])
        methods[f"WAUM, alpha {alpha:g}"] = (Trainer(make_base, crowd, MUSIC["learning_rate"]), lambda given: given)
    rows: dict[str, dict[str, Any]] = {}
    for seed in SEEDS:
        for name, (trainer, aggregate) in methods.items():
            with Cost() as cost:
                said = trainer.fit(x, aggregate(annotations), MUSIC["epochs"], seed).predict(fresh, verbose=0)
            added(
                rows.setdefault(name, {}), cost,
                accuracy=accuracy(truth, said.argmax(axis=1)), ece=expected_calibration_error(truth, said),
            )  # fmt: skip
            print(f"  {name}, seed {seed}: {rows[name]['accuracy'][-1]:.4f}", flush=True)
    table["training"] = {"rows": rows, **_made_by()}
    yield


def save(table: dict[str, Any]) -> None:
    table |= {
        "seeds": list(SEEDS),
        "settings": {"circles": CIRCLES, "fresh points a class": FRESH, "music": MUSIC, "batch size": BATCH_SIZE},
        "printed": PRINTED,
        "bars": BARS,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    table = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    measures = {"circles": measure_circles, "ranking": measure_ranking, "training": measure_training}
    for part in options.parts:
        print(part, flush=True)
        for _ in measures[part](table):
            save(table)


if __name__ == "__main__":
    need("music-genre-amt", flag="--parts", values=("ranking", "training"))
    main()
