"""The same base model trained in several ways on one crowd set, and how often each is right on held-out tasks."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np

from crowdzoo.aggregation import DawidSkene, MajorityVote
from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.metrics import accuracy
from crowdzoo.training.instance_training import train
from crowdzoo.training.length import with_length
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import InstanceSettings, TrainingSettings

# What the base learns from; every other setting is the same for all of them
COMPARED = {
    "majority": "one label a task: the majority vote, ties broken at random",
    "majority-soft": "shares of the votes",
    "dawid-skene": "one label a task: the most probable class by Dawid-Skene",
    "dawid-skene-soft": "posteriors of Dawid-Skene",
    "VW": "all annotations, CrowdsourcedLayer VW",
    "VB": "all annotations, CrowdsourcedLayer VB",
    "VW+B": "all annotations, CrowdsourcedLayer VW+B",
    "S": "all annotations, CrowdsourcedLayer S",
    "MW": "all annotations, CrowdsourcedLayer MW",
    "gold": "the true labels",
}
CROWD_LAYERS = ("VW", "VB", "VW+B", "S", "MW")


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Result of `compare`: S seeds, R annotators, K classes.

    Attributes:
        dataset: its name.
        seeds: seeds of the trainings, [S].
        accuracies: method -> share of the held-out tasks that the base gets right, float64 [S].
        label_accuracy: "majority" and "dawid-skene" -> share of the training tasks whose aggregated label is right
            (expected over random ties).
        seconds: method -> mean time of a training, in seconds.
        curves: method -> metric -> value after each epoch of the first seed's training.
        confusions: crowd layer -> learned confusion matrices `[annotator, true, said]` [R, K, K] of the first seed.
        aggregation_history: objective of Dawid-Skene on the training tasks after each iteration, in nats.
        settings: what all methods share.
        num_train: training tasks.
        num_eval: held-out tasks.
    """

    dataset: str
    seeds: tuple[int, ...]
    accuracies: dict[str, np.ndarray]
    label_accuracy: dict[str, float]
    seconds: dict[str, float]
    curves: dict[str, dict[str, list[float]]]
    confusions: dict[str, np.ndarray]
    aggregation_history: tuple[float, ...]
    settings: InstanceSettings
    num_train: int
    num_eval: int

    def __repr__(self) -> str:
        means = ", ".join(f"{method} {values.mean():.3f}" for method, values in self.accuracies.items())
        return f"<Comparison: {self.dataset}, {len(self.seeds)} seeds, accuracy: {means}>"

    def differences(self, against: str = "majority") -> dict[str, np.ndarray]:
        """Differences of accuracy, paired by seed: method -> float64 [S]; without the method compared against."""
        base = self.accuracies[against]
        return {method: values - base for method, values in self.accuracies.items() if method != against}

    def rows(self, against: str = "majority") -> list[tuple[str, str, str, str]]:
        """One row a method: name, accuracy as mean ± standard deviation, paired difference likewise, what it learns."""
        differences = self.differences(against) if against in self.accuracies else {}
        shown = {method: _mean_and_deviation(values, sign=True) for method, values in differences.items()}
        return [(method, _mean_and_deviation(values), shown.get(method, ""), COMPARED[method])
                for method, values in self.accuracies.items()]  # fmt: skip

    def header(self, against: str = "majority") -> tuple[str, str, str, str]:
        """Names of the columns of `rows`."""
        return ("trained on", "test accuracy", f"against {against}", "that is")

    def to_dict(self) -> dict[str, Any]:
        """Everything but the confusion matrices, ready for JSON."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "confusions"]
        return {
            **{name: getattr(self, name) for name in names},
            "seeds": list(self.seeds),
            "accuracies": {method: values.tolist() for method, values in self.accuracies.items()},
            "mean": {method: float(values.mean()) for method, values in self.accuracies.items()},
            "std": {method: _deviation(values) for method, values in self.accuracies.items()},
            "aggregation_history": list(self.aggregation_history),
            "settings": dataclasses.asdict(self.settings),
        }


def compare(
    dataset: CrowdDataset,
    methods: Sequence[str] = ("majority", "dawid-skene", "VW", "MW", "gold"),
    seeds: Iterable[int] = range(5),
    settings: InstanceSettings | None = None,
    split: np.ndarray | None = None,
    progress: Callable[[str, int, int, int], None] | None = None,
) -> Comparison:
    """Trains the base once a method and seed on the training tasks, and scores it on the held-out tasks.

    Held-out tasks take part in nothing but the score: neither their annotations nor their gold are seen by the
    aggregation, the crowd layer or the standardisation. Gold of the training tasks is seen by the method "gold" only.

    Args:
        dataset: N tasks with gold.
        methods: keys of `COMPARED`.
        seeds: seeds of the weights, dropout, order of the tasks and ties of the vote; shared by all methods.
        settings: settings of every training; its method, arguments and seed are replaced. None is `TrainingSettings()`.
        split: "train" or "eval", str [N]; None is the data set's own.
        progress: called after every training with method, seed, trainings done, trainings in all.

    Returns:
        Accuracies and what goes with them.

    Raises:
        ConfigError: an unknown method, or no method or seed.
        DataError: a split without training or held-out tasks.

    Source:
        F. Rodrigues, F. Pereira: Deep Learning from Crowds. AAAI 2018, tables 1 and 2, in small.
    """
    settings = TrainingSettings() if settings is None else settings
    seeds = tuple(seeds)
    unknown = [method for method in methods if method not in COMPARED]
    if unknown or not methods or not seeds:
        what = f"no method {unknown[0]!r}" if unknown else "no method or no seed given"
        raise ConfigError(f"compare: {what}; methods are {', '.join(COMPARED)}.")
    split = dataset.split if split is None else np.asarray(split)
    training, held_out = np.flatnonzero(split == "train"), np.flatnonzero(split == "eval")
    if not len(training) or not len(held_out):
        raise DataError(f"compare: {len(training)} training and {len(held_out)} held-out tasks; both are needed.")
    annotations = dataset.annotations.select_tasks(training)
    settings = with_length(settings, len(training))
    gold = dataset.gold[training]
    dawid_skene = DawidSkene().fit(annotations)

    accuracies, seconds = ({method: list[float]() for method in methods} for _ in range(2))
    curves, confusions = {}, {}
    for seed in seeds:
        vote = MajorityVote(ties="random", seed=seed).fit(annotations)
        targets = {
            "majority": _one_hot(vote.labels, annotations),
            "majority-soft": vote.posteriors,
            "dawid-skene": _one_hot(dawid_skene.labels, annotations),
            "dawid-skene-soft": dawid_skene.posteriors,
            "gold": _one_hot(gold, annotations),
        }
        for method in methods:
            how: dict[str, Any] = {"method": AGGREGATED, "arguments": {}}
            labels: dict[str, Any] = {"annotations": annotations, "tasks": annotations.tasks}
            if method in CROWD_LAYERS:
                how = {"method": "crowdsourced-layer", "arguments": {"connection": method, "scale": 1.0}}
            else:
                labels = {"label_distribution": targets[method]}
            chosen = dataclasses.replace(settings, seed=seed, **how)
            started = time.perf_counter()
            model, encoder = train(chosen, dataset.instances[training], **labels)
            seconds[method].append(time.perf_counter() - started)
            x = _encoded(dataset.instances[held_out], encoder)
            estimate = keras.ops.convert_to_numpy(model.base(x, training=False))
            accuracies[method].append(accuracy(dataset.gold[held_out], estimate.argmax(axis=1)))
            if seed == seeds[0]:
                history = {} if model.history is None else model.history.history
                curves[method] = {name: [float(value) for value in values] for name, values in history.items()}
                if method in CROWD_LAYERS:
                    x = _encoded(dataset.instances[training], encoder)
                    confusions[method] = model.calibrated_confusions(x, annotations, tasks=annotations.tasks)
            if progress is not None:
                done = sum(map(len, accuracies.values()))
                progress(method, seed, done, len(methods) * len(seeds))
    return Comparison(
        dataset=dataset.name,
        seeds=seeds,
        accuracies={method: np.array(values) for method, values in accuracies.items()},
        label_accuracy={
            "majority": MajorityVote().fit(annotations).expected_accuracy(gold),
            "dawid-skene": dawid_skene.expected_accuracy(gold),
        },
        seconds={method: float(np.mean(values)) for method, values in seconds.items()},
        curves=curves,
        confusions=confusions,
        aggregation_history=tuple(dawid_skene.history),
        settings=settings,
        num_train=len(training),
        num_eval=len(held_out),
    )


def _encoded(x: Any, encoder: Any) -> Any:
    """Instances as the model takes them."""
    return x if encoder is None else encoder.to_numpy(x)


def _one_hot(labels: np.ndarray, annotations: Annotations) -> np.ndarray:
    return np.eye(annotations.num_classes)[labels]


def _deviation(values: np.ndarray) -> float:
    """Sample standard deviation; 0 of a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _mean_and_deviation(values: np.ndarray, sign: bool = False) -> str:
    return f"{values.mean():{'+' if sign else ''}.3f} ± {_deviation(values):.3f}"
