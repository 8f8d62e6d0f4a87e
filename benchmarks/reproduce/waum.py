"""WAUM (Lefort, Charlier, Joly and Salmon, TMLR 2024) on circles and on the Music genres: training.

    python benchmarks/reproduce/waum.py                     # what is missing in the saved results
    python benchmarks/reproduce/waum.py --parts training    # on Music
    python benchmarks/reproduce/waum.py --print             # runs nothing, shows what was saved

Circles: 250 points a class, network 30-20-20, alpha .1, tested on 1,000 fresh points a class. The source does not say
how its annotators were simulated; those here are made up, so that only the order of the methods could be expected to
agree. Data, crowd and weights are drawn anew for each seed.

Music: the songs and annotations of Rodrigues et al. below CROWDZOO_DATA (see `crowdzoo.datasets.data_folder`), CoNAL's
network. Nothing is chosen by gold.
"""

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import baselines  # noqa: F401 - so that crowd_baselines is found
import deep_methods
import keras
import numpy as np
from crowd_baselines.without_spammers import DawidSkeneWithoutSpammers
from needed import need
from rows import Parts, run
from settings import LAYERS, aggregator
from simulated_crowds import ask_annotators, make_circles, neighbour_annotators
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from crowdzoo import Annotations
from crowdzoo.layers import WAUM
from crowdzoo.metrics import accuracy, expected_calibration_error
from crowdzoo.models import CrowdModel, FeatureClassifier
from crowdzoo.training.training_state import restore_variables, variables_of

RESULTS = Path(__file__).parents[1] / "results" / "waum.json"
SEEDS = range(5)
CIRCLES = {"per_class": 250, "noise": 0.12, "alpha": 0.1, "epochs": 40, "margin_epochs": 40, "learning_rate": 0.01}
FRESH = 1000  # test points a class
MUSIC = {"epochs": 100, "margin_epochs": 50, "learning_rate": 0.001}
BATCH_SIZE = 64
ALPHAS = (0.0, 0.01, 0.05, 0.1, 0.2)

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
        self.start = variables_of(self.model)

    def fit(self, x: np.ndarray, targets: Any, epochs: int, seed: int) -> CrowdModel:
        """As if weights, dropout and optimizer were new and made with that seed."""
        keras.utils.set_random_seed(seed)
        restore_variables(self.model, self.start)
        for variable, fresh in zip(self.model.base.variables, self.make_base().variables, strict=True):
            variable.assign(fresh)
        tasks = targets.tasks if isinstance(targets, Annotations) else None
        self.model.fit(x, targets, tasks=tasks, epochs=epochs, batch_size=BATCH_SIZE, seed=seed, verbose=0)
        return self.model


AGGREGATED: dict[str, Callable[[Annotations], np.ndarray]] = {
    "majority vote": lambda annotations: aggregator("majority-vote", voting="hard").fit(annotations).posteriors,
    "naive soft": lambda annotations: aggregator("majority-vote").fit(annotations).posteriors,
    "Dawid-Skene": lambda annotations: aggregator("dawid-skene").fit(annotations).posteriors,
    "GLAD": lambda annotations: aggregator("glad").fit(annotations).posteriors,
}

SPAM = "Dawid-Skene, spammers left out"
AGGREGATED[SPAM] = lambda annotations: DawidSkeneWithoutSpammers(0.1, 0.01).fit(annotations).posteriors


def one_run(
    trainer: Trainer, method: str, x: np.ndarray, annotations: Annotations, epochs: int, seed: int,
    fresh: np.ndarray, truth: np.ndarray,
) -> dict[str, Any]:  # fmt: skip
    """Figures on test points; a method that is not in `AGGREGATED` learns from the annotations."""
    targets = AGGREGATED[method](annotations) if method in AGGREGATED else annotations
    predicted = trainer.fit(x, targets, epochs, seed).predict(fresh, verbose=0)
    return {
        "seed": seed, "accuracy": float(accuracy(truth, predicted.argmax(axis=1))),
        "ece": float(expected_calibration_error(truth, predicted)),
    }  # fmt: skip


def waum(annotations: Annotations, settings: dict[str, Any], alpha: float) -> WAUM:
    """The layer, which leaves out the share alpha."""
    own = {"prune": alpha, "margin_epochs": settings["margin_epochs"]}
    return WAUM(annotations.num_annotators, **{**LAYERS["waum"], **own})


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


def on_circles(simulate: Callable[[np.ndarray, np.ndarray, int], Annotations], method: str) -> Iterator[dict[str, Any]]:
    trainer: Trainer | None = None
    for seed in SEEDS:
        x, gold = make_circles(3, CIRCLES["per_class"], CIRCLES["noise"], seed)
        annotations = simulate(x, gold, seed)
        if trainer is None:
            crowd = waum(annotations, CIRCLES, CIRCLES["alpha"])
            make_base = functools.partial(FeatureClassifier, 2, 3, hidden=(30, 20, 20), dropout=0.0)
            trainer = Trainer(make_base, None if method in AGGREGATED else crowd, CIRCLES["learning_rate"])
        test = make_circles(3, FRESH, CIRCLES["noise"], 1000 + seed)
        yield one_run(trainer, method, x, annotations, CIRCLES["epochs"], seed, *test)


# === Music ===


def load_music() -> tuple[np.ndarray, np.ndarray, Annotations, np.ndarray, np.ndarray]:
    """Features and classes of 700 songs, their annotations, and features and classes of 300 test songs."""
    data = deep_methods.music()
    return data.x, data.gold, data.annotations, data.x_test, data.gold_test


def music_base(x: np.ndarray) -> FeatureClassifier:
    base = FeatureClassifier(x.shape[1], 10, hidden=(128,), dropout=0.5, batch_normalization=True)
    base.adapt(x)
    return base


def on_music(method: str, alpha: float = 0.0) -> Iterator[dict[str, Any]]:
    x, _, annotations, *test = load_music()
    crowd = None if method in AGGREGATED else waum(annotations, MUSIC, alpha)
    trainer = Trainer(functools.partial(music_base, x), crowd, MUSIC["learning_rate"])
    for seed in SEEDS:
        yield one_run(trainer, method, x, annotations, MUSIC["epochs"], seed, *test)


PARTS: Parts = {
    f"circles, {simulate.__name__.replace('_', ' ')}": {
        method: functools.partial(on_circles, simulate, method) for method in (*AGGREGATED, "WAUM")
    }
    for simulate in (neighbours, small_classifiers, three_classifiers)
}
PARTS["training"] = {
    method: functools.partial(on_music, method) for method in ("majority vote", "naive soft", "Dawid-Skene", SPAM)
} | {f"WAUM, alpha {alpha:g}": functools.partial(on_music, "WAUM", alpha) for alpha in ALPHAS}

if __name__ == "__main__":
    need("music-genre-amt", flag="--parts", values=("training",))
    run(RESULTS, PARTS, __doc__)
