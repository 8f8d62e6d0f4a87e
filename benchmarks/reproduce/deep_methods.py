"""Every deep method on the same data, network, seeds and splits, between a majority floor and a gold ceiling.

    python benchmarks/reproduce/deep_methods.py                        # all that is missing in the saved results
    python benchmarks/reproduce/deep_methods.py --data music --rows "CL MW" CoNAL --again

For each training two accuracies on the test tasks are kept:

- last: after the last epoch, whose number was fixed beforehand;
- best: the highest of all epochs on the test tasks themselves. No one could know it beforehand; it is here because
  some papers print it.

"own tasks" is another thing: how many of the *training* tasks' labels the method infers, from instance and annotations.

Each row runs in a process of its own. Results go to benchmarks/results/reproduce_deep.json after each row.
"""

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import baselines  # noqa: F401 - registers the aggregators of examples/baselines
import numpy as np
from intervals import Runs, packed, shown, shown_bootstrap, unpacked
from needed import need
from rows import Parts, run
from settings import LAYERS, aggregator, batch_size

from crowdzoo import Annotations
from crowdzoo.datasets import data_folder

RESULTS = Path(__file__).parents[1] / "results" / "reproduce_deep.json"
SEEDS = 5
RECIPE = "cross-fitted EM"
FOLDS = 5  # parts of the annotated tasks

# === Rows ===


@dataclasses.dataclass(frozen=True)
class Row:
    """A method with its hyperparameters, or labels that the base is trained on.

    Attributes:
        method: name in `crowdzoo.models.METHODS`.
        arguments: its hyperparameters, all of them (but for `DEFAULTS`).
        labels: for method "aggregated": "gold", or an aggregator's name.
        hard: whether the most probable class is the label, in place of the whole posterior.
    """

    method: str = "aggregated"
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    labels: str = ""
    hard: bool = True


def layer(method: str, **arguments: Any) -> Row:
    return Row(method, {**LAYERS[method], **arguments})


ROWS: dict[str, Row] = {
    "gold": Row(labels="gold"),
    "DL-MV": Row(labels="majority-vote"),
    "vote shares": Row(labels="majority-vote", hard=False),
    "DL-DS": Row(labels="dawid-skene"),
    "DL-DS soft": Row(labels="dawid-skene", hard=False),
    "DL-GLAD": Row(labels="glad"),
    "DL-WC": Row(labels="worker-clustering"),  # examples/baselines
    "DL-iBCC soft": Row(labels="ibcc", hard=False),
    "cross-fitted EM": layer("cross-fitted-em"),
    "DL-EM (AggNet)": layer("deep-em"),
    "CL MW": layer("crowdsourced-layer", connection="MW"),
    "CL VW": layer("crowdsourced-layer", connection="VW"),
    "CL VB": layer("crowdsourced-layer", connection="VB"),
    "CL VW+B": layer("crowdsourced-layer", connection="VW+B"),
    "CL S": layer("crowdsourced-layer", connection="S"),
    "DoctorNet": layer("doctor-net"),
    "WDN": layer("doctor-net", weighted=True),
    "Anno-Reg": layer("trace-regularization"),
    "Max-MIG": layer("max-mig"),
    "UnionNet": layer("union-net"),
    "CCEM": layer("ccem"),
    "Pooled": layer("pooled-confusions"),
    "GeoCrowdNet F": layer("geo-crowd-net", regularization="F"),
    "GeoCrowdNet W": layer("geo-crowd-net", regularization="W"),
    "CoNAL": layer("conal", scale=2.0),
    "CoNAL, scale 1": layer("conal", scale=1.0),
    "CoNAL 0": layer("conal", scale=2.0, separation=0.0),
    "CoNAL 1e-4": layer("conal", scale=2.0, separation=1e-4),
    "CoNAL 1e-6": layer("conal", scale=2.0, separation=1e-6),
    "LIA": layer("lia"),
    "WAUM": layer("waum"),
}
# today's defaults of each method, which `crowdzoo methods` shows (benchmarks/method_figures.py)
DEFAULTS: dict[str, Row] = {
    **{name: row for name, row in ROWS.items() if row.method == "aggregated" and name != "DL-WC"},
    **{method: Row(method) for method in LAYERS},
    **{
        f"CL {connection}": Row("crowdsourced-layer", {"connection": connection})
        for connection in ("VW", "VB", "VW+B", "S")
    },
    "WDN": Row("doctor-net", {"weighted": True}),
    "GeoCrowdNet W": Row("geo-crowd-net", {"regularization": "W"}),
    "CoNAL": Row("conal", {"scale": 2.0}),
    "CoNAL, scale 1": Row("conal", {"scale": 1.0}),
}
# fields of `TrainingSettings` for every row, where its data have no others
TRAINING: dict[str, Any] = {
    "hidden": (128,), "dropout": 0.5, "batch_normalization": False, "epochs": 60, "learning_rate": 1e-3,
}  # fmt: skip

# === Data ===


@dataclasses.dataclass(frozen=True)
class Data:
    """One experiment.

    Attributes:
        x: features of the training tasks [N, D].
        annotations: their labels.
        gold: their classes [N].
        x_test: features [N', D].
        gold_test: classes [N'].
        settings: fields of `TrainingSettings` for every row.
    """

    x: np.ndarray
    annotations: Annotations
    gold: np.ndarray
    x_test: np.ndarray
    gold_test: np.ndarray
    settings: dict[str, Any]


@cache
def music(**settings: Any) -> Data:
    import pyarrow.csv

    folder = data_folder() / "music-genre-amt"
    train, test, answers = (
        pyarrow.csv.read_csv(folder / f"music_genre_{name}.csv") for name in ("gold", "test", "mturk")
    )
    classes = sorted(set(train["class"].to_pylist()))

    def features(table: Any) -> np.ndarray:
        return np.stack([table[f"feature{i}"].to_numpy() for i in range(124)], axis=1).astype("float32")

    def codes(table: Any) -> np.ndarray:
        return np.array([classes.index(name) for name in table["class"].to_pylist()])

    annotations = Annotations.from_arrays(
        answers["id"].to_pylist(), answers["annotator"].to_pylist(), answers["class"].to_pylist(),
        tasks=train["id"].to_pylist(), classes=classes,
    )  # fmt: skip
    settings = {"batch_normalization": True, "epochs": 100, **settings}  # CoNAL's network
    return Data(features(train), annotations, codes(train), features(test), codes(test), settings)


@cache
def labelme() -> Data:
    from crowdzoo.datasets import load_labelme

    data = load_labelme()
    train, test = (np.flatnonzero(data.split == part) for part in ("train", "eval"))
    return Data(
        data.instances[train], data.annotations.select_tasks(train), data.gold[train],
        data.instances[test], data.gold[test], {},
    )  # fmt: skip


def one_fold(data: Data, seed: int) -> Data:
    """Trains on four fifths of the annotated tasks and tests on one; seeds 0 to 4 are the fifths of one permutation."""
    x, gold, annotations = data.x, data.gold, data.annotations
    order = np.random.default_rng(seed // FOLDS).permutation(len(x))
    test = np.sort(order[seed % FOLDS :: FOLDS])
    train = np.setdiff1d(order, test)
    return dataclasses.replace(
        data, x=x[train], annotations=annotations.select_tasks(train), gold=gold[train], x_test=x[test],
        gold_test=gold[test],
    )  # fmt: skip


@lru_cache(maxsize=5)
def common_confusions(seed: int, **arguments: Any) -> Data:
    from simulated_crowds import simulate_common_confusions

    data = simulate_common_confusions(seed, **arguments)
    train, test = (np.flatnonzero(data.split == part) for part in ("train", "test"))
    settings = {"hidden": (128, 128), "dropout": 0.0, "batch_size": 256, "epochs": 30}
    return Data(
        data.instances[train], data.annotations.select_tasks(train), data.gold[train],
        data.instances[test], data.gold[test], settings,
    )  # fmt: skip


# By seed, which draws a simulated crowd; real ones are the same for every seed
DATA: dict[str, Callable[[int], Data]] = {
    "music": lambda seed: music(),
    "music-conal": lambda seed: music(batch_size=1024, learning_rate=0.01, epochs=200),
    "labelme": lambda seed: labelme(),
    "labelme-defaults": lambda seed: labelme(),
    "music-folds": lambda seed: one_fold(music(), seed),
    "labelme-folds": lambda seed: one_fold(labelme(), seed),
}
ONE_TEST_SET = tuple(name for name in DATA if not name.endswith("-folds"))  # the same test tasks for every seed
# The paper's "individual strength .7" may mean that annotators err in their own way with probability .7, or .3
OWN_STRENGTHS = (0.3, 0.7)
for _pattern in ("asymmetric", "symmetric"):
    for _own in OWN_STRENGTHS:
        for _share, _common in ((0.0, 0.4), (0.3, 0.4), (0.5, 0.4), (0.7, 0.4), (0.5, 0.6), (0.5, 0.8)):
            DATA[f"{_pattern}, own {_own}, common {_common}, share {_share}"] = partial(
                common_confusions,
                pattern=_pattern,
                own_strength=_own,
                common_strength=_common,
                common_share=_share,
            )

SIMULATED = [name for name in DATA if name.startswith(("asymmetric", "symmetric"))]

# === One row ===


def rows_of(name: str) -> dict[str, Row]:
    """The rows of a set."""
    return DEFAULTS if name == "labelme-defaults" else ROWS


def measured(name: str, row_name: str) -> Iterator[dict[str, Any]]:
    """Trains one row, with each seed."""
    for seed in range(SEEDS):
        yield run_of(rows_of(name)[row_name], DATA[name](seed), seed, name in ONE_TEST_SET)


def run_of(row: Row, data: Data, seed: int, keep: bool = False) -> dict[str, Any]:
    """The figures of one training, and with `keep` which test tasks are right."""
    curve, model = trained(row, data, seed)
    figures = {"seed": seed, "last": curve["test"][-1], "best": max(curve["test"])}
    if keep:
        figures["hits"] = curve["hits"]
    inferred = task_posteriors(model, data)
    if inferred is not None:
        figures["tasks"] = float((inferred.argmax(axis=1) == data.gold).mean())
    return figures


def trained(row: Row, data: Data, seed: int) -> tuple[dict[str, Any], Any]:
    """A training, and the accuracy on the test tasks after each epoch."""
    import keras

    from crowdzoo.models import TrainingSettings
    from crowdzoo.training.instance_training import train

    annotations = data.annotations.select_tasks(np.arange(len(data.x)))
    curve: dict[str, Any] = {"test": []}

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            hits = self.model.predict_on_batch(data.x_test).argmax(axis=1) == data.gold_test
            curve["test"].append(float(hits.mean()))
            curve["hits"] = packed(hits)

    labels = training_labels(row, annotations, data.gold, seed)
    length = {"batch_size": batch_size(len(data.x))}
    settings = TrainingSettings(
        method=row.method, arguments=row.arguments, seed=seed, **{**TRAINING, **length, **data.settings}
    )
    model, _ = train(settings, data.x, callbacks=[Watch()], **labels)
    return curve, model


def training_labels(row: Row, annotations: Annotations, gold: np.ndarray, seed: int) -> dict[str, Any]:
    """What a row is trained on, as arguments of `train`: the annotations, or one label distribution a task."""
    if row.labels == "gold":
        return {"label_distribution": np.eye(annotations.num_classes)[gold]}
    if not row.labels:
        return {"annotations": annotations, "tasks": annotations.tasks}
    known = {"seed": seed} if row.labels == "majority-vote" else {}
    result = aggregator(row.labels, **known).fit(annotations)
    return {"label_distribution": np.eye(annotations.num_classes)[result.labels] if row.hard else result.posteriors}


def task_posteriors(model: Any, data: Data) -> np.ndarray | None:
    """What the method says of its own training tasks [N, K]; None where it has no model of annotators."""
    if model.crowd is None or model.crowd.traits.needs_hidden_layer:
        return None
    known = getattr(model.crowd, "task_posteriors", None)
    return model.posteriors(data.x, data.annotations, tasks=data.annotations.tasks) if known is None else known


# === Figures ===


def gains(row: dict[str, Any], other: dict[str, Any]) -> dict[int, float]:
    """Differences of "last" in points: seed -> difference."""
    theirs = {run["seed"]: run["last"] for run in other["runs"]}
    return {run["seed"]: 100 * (run["last"] - theirs[run["seed"]]) for run in row["runs"] if run["seed"] in theirs}


def runs_of(name: str, row: dict[str, Any], other: dict[str, Any]) -> Runs:
    """`gains` with what the fifths of one set share."""
    return Runs(list(gains(row, other).values()), overlap=1 / (FOLDS - 1) if name.endswith("-folds") else 0.0)


def against(name: str, row: dict[str, Any], other: dict[str, Any]) -> str:
    """Difference of "last" with its interval: by the bootstrap over test tasks where all seeds have the same ones."""
    if any("hits" not in run for run in (*row["runs"], *other["runs"])):
        return shown([runs_of(name, row, other)])
    return shown_bootstrap(
        *(np.array([unpacked(run["hits"]) for run in pair_row["runs"]]) for pair_row in (row, other))
    )


def mean(row: dict[str, Any], key: str) -> float:
    return float(np.mean([run[key] for run in row["runs"]]))


def mean_and_deviation(row: dict[str, Any], key: str) -> str:
    """Per cent, mean ± sample standard deviation over seeds; nothing where the data has no such figure."""
    if any(key not in run for run in row["runs"]):
        return ""
    values = 100 * np.array([run[key] for run in row["runs"]])
    return f"{values.mean():.2f}" + (f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else "")


PARTS: Parts = {name: {row: partial(measured, name, row) for row in rows_of(name)} for name in DATA}

if __name__ == "__main__":
    need("music-genre-amt", flag="--data", values=("music", "music-conal", "music-folds"))
    run(RESULTS, PARTS, __doc__, alone=True, option="--data")
