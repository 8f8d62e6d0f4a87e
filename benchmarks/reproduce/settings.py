"""The settings of rows: fixed here, so that a row stays what it is when a default of crowdzoo changes, and recorded.

`settings_of` says what a row would be trained with, without training it: its networks, layers, aggregations, optimizer,
epochs and batches, all of their arguments. Each row has that under "settings" in the saved results. all_rows.py and a
test compare.
"""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["AGGREGATORS", "LAYERS", "aggregator", "batch_size", "recorded", "settings_of", "training_begins", "words"]

EM = {"prior": 1.0, "diagonal": 0.8, "epochs_per_round": 1, "confidence": False}
# matrices that start as the softmax of the identity, as in the papers; no epochs on the votes before
IDENTITY = {"diagonal": None, "scale": 1.0, "confidence": False, "majority_epochs": 0}
# method -> all arguments of its layer
LAYERS: dict[str, dict[str, Any]] = {
    "crowdsourced-layer": {"connection": "MW", "scale": 1.0, "majority_epochs": 0, "anchor": False},
    "deep-em": EM,
    "cross-fitted-em": {**EM, "folds": 5},
    "ccem": IDENTITY,
    "geo-crowd-net": {**IDENTITY, "regularization": "F", "strength": 0.01, "floor": 0.1},
    "trace-regularization": {**IDENTITY, "strength": 0.01, "traces": "mean"},
    "pooled-confusions": {
        "form": "full", "ridge": 1.0, "rank": 8, "per_class": True, "diagonal": 0.8, "majority_epochs": 0,
    },
    "conal": {
        "embedding_size": 20, "separation": 1e-5, "mixing": "logits", "scale": 1.0, "normalize_instances": True,
        "instance_hidden": None, "annotator_features": None, "majority_epochs": 0,
    },
    "union-net": IDENTITY,
    "max-mig": {"smoothing": 0.01, "diagonal": 0.8},
    "doctor-net": {"weighted": False, "weight_epochs": None, "heads_at_once": 64, "vote": False},
    "lia": {
        "hidden": [16, 16, 16, 16], "annotator_embedding": 16, "latent": 1, "form": "additive", "activation": "selu",
        "annotator_features": None, "epochs_per_round": 10, "marginal_epochs": 10, "ridge": 0.0, "confidence": False,
    },
    "waum": {
        "prune": 0.01, "margin_epochs": 50, "margin": "top-2", "denominator": "trust", "smoothing": 0.01,
        "diagonal": 0.8,
    },
}  # fmt: skip
# the same of aggregations
AGGREGATORS: dict[str, dict[str, Any]] = {
    "majority-vote": {"voting": "soft", "ties": "uniform", "seed": 0, "confidence": False},
    "dawid-skene": {
        "max_iter": 100, "tol": 1e-5, "prior": 0.01, "diagonal": 1.0, "num_starts": 1, "seed": 0, "confidence": False,
        "start": "votes",
    },
    "glad": {
        "max_iter": 300, "tol": 1e-5, "alpha_mean": 1.0, "alpha_variance": 1.0, "b_mean": 1.0, "b_variance": 1.0,
        "class_prior": "uniform", "seed": 0,
    },
    "robust": {"seed": 0},
    "one-coin": {
        "max_iter": 100, "tol": 1e-5, "right": 2.0, "wrong": 1.0, "class_prior": "smoothed", "class_count": 0.01,
        "seed": 0,
    },
    "hierarchical-dawid-skene": {"max_iter": 500, "tol": 1e-4, "annotators": 100.0, "seed": 0},
    "ibcc": {"max_iter": 500, "tol": 1e-8, "prior": None, "diagonal": None, "class_prior": 1.0, "seed": 0},
}  # fmt: skip
# what the data decide or the seed, and names
NO_SETTINGS = (
    "name", "trainable", "dtype", "num_annotators", "num_classes", "num_features", "num_words", "num_shapes", "mean",
    "variance", "center", "unit", "num_annotations", "seed", "package", "is_legacy_optimizer",
)  # fmt: skip
NETWORK = ("units", "activation", "input_dim", "output_dim", "rate")  # of the layers of a network that is not a class


def aggregator(name: str, **changes: Any) -> Any:
    """An aggregation of classes with the settings of the rows.

    Args:
        name: a key of `AGGREGATORS`, or that of an aggregation which fixes its settings itself.
        **changes: settings that are others.
    """
    from crowdzoo.aggregation import create

    return create(name, **{**AGGREGATORS.get(name, {}), **changes})


def batch_size(num_tasks: int) -> int:
    """The largest power of two from 4 to 64 that makes ten batches of the tasks, as `crowdzoo train` has it."""
    return max([4, *(size for size in (8, 16, 32, 64) if 10 * size <= num_tasks)])


# === Recording ===


class StopBeforeTrainingError(Exception):
    """The first training of a row begins."""


def words(thing: Any, config: dict[str, Any] | None = None, only: tuple[str, ...] | None = None) -> str:
    """A constructor's call: "Adam(beta_1=0.9, ...)"."""
    if config is None:
        config = thing.get_config() if hasattr(thing, "get_config") else thing.get_params()
    if "majority_epochs" in config:
        config = {**config, **_resolved(thing, config)}
    names = sorted({*config} - {*NO_SETTINGS} if only is None else {*config} & {*only})
    values = {name: _value(config[name]) for name in names if config[name] is not None}
    return f"{type(thing).__name__}({', '.join(f'{name}={json.dumps(value)}' for name, value in values.items())})"


def _resolved(layer: Any, config: dict[str, Any]) -> dict[str, Any]:
    """What a crowd layer decides itself where its arguments are None, and without what has no part in its start."""
    values = {"majority_epochs": layer.num_majority_epochs}
    if config.get("diagonal") is not None:
        return {**values, "scale": None}
    free = [name for name in ("scale", "diagonal") if name in config]
    if not free or any(config[name] for name in free):
        return values
    return {**values, "safe_start": layer.traits.initial_accuracy}


def _value(value: Any) -> Any:
    """As JSON has it: numbers as they were before float32 rounded them, and nothing of a seed."""
    if isinstance(value, dict):
        return {name: _value(item) for name, item in value.items() if name not in NO_SETTINGS}
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value if isinstance(value, (int, str, bool, type(None))) else str(value)


def _network(model: Any) -> str:
    from crowdzoo.networks.network import Network

    if isinstance(model, Network):
        return words(model)
    layers = [words(layer, only=NETWORK) for layer in model.layers if "Input" not in type(layer).__name__]
    return f"{type(model).__name__}({', '.join(layers)})"


def training_begins(base: Any, layer: Any, optimizer: Any, **fit: Any) -> None:
    """Notes a training; that of `fit` of a model is noted by itself.

    Args:
        base: the network.
        layer: the crowd layer, or None.
        optimizer: of the weights.
        **fit: how long it takes, in which batches.
    """
    call = ", ".join(f"{name}={value}" for name, value in fit.items())
    for notes, stop in _recorders[-1:]:
        _note(notes, [_network(base), *([] if layer is None else [words(layer)]), words(optimizer), f"fit({call})"])
        if stop:
            raise StopBeforeTrainingError


_recorders: list[tuple[list[str], bool]] = []  # what `recorded` collects, the innermost last


def _note(notes: list[str], lines: list[str]) -> None:
    notes.extend(line for line in lines if line not in notes)


@contextmanager
def recorded(stop: bool = False) -> Iterator[list[str]]:
    """Collects the settings of all that is fitted inside, each once.

    Args:
        stop: whether the first training of a network does not take place and ends the block.
    """
    import keras

    from crowdzoo import CrowdModel
    from crowdzoo.aggregation import METHODS  # noqa: F401  all classes are there now
    from crowdzoo.aggregation.base import Aggregator

    notes: list[str] = []
    inside: list[Any] = []  # trainings that are going on
    undo = []

    def wrap(owner: Any, name: str, before: Callable[..., None]) -> None:
        old = vars(owner)[name]

        @functools.wraps(old)
        def new(self: Any, *args: Any, **kwargs: Any) -> Any:
            before(self, **kwargs)
            inside.append(self)
            try:
                return old(self, *args, **kwargs)
            finally:
                inside.pop()

        setattr(owner, name, new)
        undo.append((owner, name, old))

    def training(model: Any, epochs: int = 1, batch_size: int | None = None, shuffle: bool = True, **_: Any) -> None:
        if any(hasattr(part, "compile") for part in inside):  # a phase of one that is noted
            return
        if not model.compiled:
            model.compile()
        base, layer = getattr(model, "base", model), getattr(model, "crowd", None)
        training_begins(base, layer, model.optimizer, epochs=epochs, batch_size=batch_size, shuffle=shuffle)

    def aggregation(method: Any, *_: Any, **__: Any) -> None:
        _note(notes, [words(method)])

    wrap(CrowdModel, "fit", training)
    wrap(CrowdModel, "fit_batches", training)
    wrap(keras.Model.__mro__[1], "fit", training)
    classes = [Aggregator]
    for part in classes:
        classes.extend(kind for kind in part.__subclasses__() if kind not in classes)
        if callable(vars(part).get("fit")):
            wrap(part, "fit", aggregation)
    _recorders.append((notes, stop))
    try:
        yield notes
    except StopBeforeTrainingError:
        pass
    finally:
        _recorders.pop()
        for owner, name, old in reversed(undo):
            setattr(owner, name, old)


def settings_of(runs: Callable[[], Any]) -> list[str]:
    """The settings of a row, which is not trained.

    Args:
        runs: gives its runs, or an iterator of them, of which the first is begun.
    """
    with recorded(stop=True) as notes:
        result = runs()
        if isinstance(result, Iterator):
            next(result)
    return notes
