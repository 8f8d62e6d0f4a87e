"""Comparison of deep methods on the same base."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.aggregation.multi_label import MultiLabel
from crowdzoo.aggregation.named import result_of
from crowdzoo.comparison.setup import GOLD, PARTS, Method, Setup
from crowdzoo.data.crowd_sequences import annotations_of
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.kinds import Kind, kind_of
from crowdzoo.kinds.measure import Deep, Measure, Scores
from crowdzoo.kinds.training import Targets
from crowdzoo.plugins import Table
from crowdzoo.reading.instances.instances import take_rows
from crowdzoo.training.bases.base import Base
from crowdzoo.training.bases.own import ObjectBase
from crowdzoo.training.bases.own_source import source_hash
from crowdzoo.training.digest import digest_of
from crowdzoo.training.held_out_annotations import FEWEST
from crowdzoo.training.instance_training import prepare_instances
from crowdzoo.training.length import num_labelled, with_length
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.pair_rows import Examples
from crowdzoo.training.settings import Settings, TrainingSettings


class Trainings(Setup):
    """Train the same base with each method, hiding each fifth of the tasks in turn, or those of `held_out`.

    Args:
        kind: kind of the labels.
        crowd: labels of the tasks.
        gold: gold by the rows of x, or None.
        x: instances; None if `crowd` contains them.
        base: a Keras model, or a function that creates one; None is the base named in the settings.
        settings: settings of all trainings; None is `TrainingSettings()`.
        tasks: ids of the rows of x.
        held_out: rows to hide, or None.
    """

    def __init__(self, kind: Kind, crowd: Any, gold: Any, x: Any, base: Any, settings: Any, tasks: Any, held_out: Any):
        name = annotations_of(crowd).kind
        self.settings: Any = TrainingSettings(kind=name) if settings is None else settings
        if not hasattr(self.settings, "kind"):
            raise ConfigError("compare: settings are an object, such as TrainingSettings(epochs=10).")
        if self.settings.kind != name:
            raise DataError(f"compare: the settings are of kind {self.settings.kind}, the annotations of kind {name}.")
        if name not in self.settings.instances.bases and not kind.measure.labels_instances:
            raise ConfigError(
                f"compare: no network for {self.settings.instances.name} learns {kind.title}: run crowdzoo "
                f"compare ANNOTATIONS INSTANCES --kind {name} --out DIR."
            )
        if base is not None and not callable(base):
            raise ConfigError(f"compare: base must be a Keras model, or a function that makes one, got {base!r}.")
        if base is not None and not kind.measure.takes_base:
            raise ConfigError(f"compare: base: the settings name the network for {kind.title}: leave it out.")
        self.base = None if base is None else ObjectBase(base)
        example_settings = replace(
            self.settings,
            method=next((method for method in kind.training.methods() if method != AGGREGATED), None),
            arguments={},
        )
        self.x, crowd = kind.measure.pair(example_settings, prepare_instances(self.settings, x), crowd, tasks)
        ends = {end: value for end in ("low", "high") if (value := getattr(self.settings, end, None)) is not None}
        super().__init__(kind, crowd, gold, ends)
        self.deep = kind.training.methods()
        if self.settings.patience is not None:
            raise ConfigError("compare: patience holds out annotations, which aggregated labels lack. Set epochs.")
        self.labelled = self.annotations.redundancy > 0
        tested = self.labelled if self.gold is None else self.measure.known
        if held_out is None:
            self.num_parts, self.held_out = PARTS, None
        else:
            self.held_out = np.asarray(held_out)
            if self.held_out.dtype != bool or self.held_out.shape != tested.shape:
                raise DataError(
                    f"compare: held_out must be True or False for each of the {len(tested):,} rows of the instances, "
                    f"got shape {self.held_out.shape} of type {self.held_out.dtype}."
                )
            tested = tested & self.held_out
        self.asked = np.flatnonzero(tested)
        train = self.labelled if self.held_out is None else self.labelled & ~self.held_out
        self.has_gold_to_learn = self.gold is not None and (train & self.measure.known).sum() >= FEWEST
        if len(self.asked) < FEWEST or train.sum() < FEWEST:
            needed = "labels" if self.gold is None else "gold"
            hidden = "tasks" if held_out is None else "tasks of the split eval (held_out)"
            raise DataError(
                f"compare: {len(self.asked):,} {hidden} with {needed} and {train.sum():,} labelled ones to train on; "
                f"{FEWEST} of each are needed. Compare aggregations alone (without instances), or label more."
            )
        first = self.annotations.select_tasks(self._training_tasks(self._hidden(0, 0)))
        self.settings = with_length(self.settings, num_labelled(first))

    def tables(self) -> Sequence[Table]:
        """Deep methods, aggregations to train the base on, and gold if there is enough."""
        gold_tables = [Table("layer", {GOLD: None}, lambda _: None)] if self.has_gold_to_learn else []
        return [self.deep, *super().tables(), *gold_tables]

    def methods_of(self, name: str) -> Iterable[tuple[str, Mapping[str, object]]]:
        """The quick methods, or all deep methods; also gold if there is enough."""
        quick = () if name == "all" else self.kind.measure.quick_deep
        methods: Deep = quick or tuple((method, {}) for method in self.deep)
        return [*methods, (GOLD, {})] if self.has_gold_to_learn else methods

    def check(self, method: Method) -> None:
        """Raise ConfigError if a method's settings are invalid."""
        if method.name in self.deep:
            self._settings(method, 0)
        elif method.name != GOLD:
            super().check(method)

    def aggregator(self, method: Method, seed: int) -> Aggregator | MultiLabel:
        """Create an aggregator by name; for "aggregated", the recommended one."""
        usual = self.kind.training.split_method(method.name)[1] if method.name == AGGREGATED else None
        return super().aggregator(Method(usual, {}) if usual else method, seed)

    def parameters(self) -> dict[str, object]:
        """Training settings."""
        left_out = ("method", "arguments", "seed")
        return {name: value for name, value in asdict(self.settings).items() if name not in left_out}

    def identity(self) -> dict[str, str]:
        """Digests of annotations and instances, and the training settings."""
        fields = {**asdict(self.settings), "method": None, "arguments": None, "seed": None}
        reference = getattr(self.settings, "reference", "")  # of a custom base
        base = source_hash(reference) if reference else "" if self.base is None else _describe(self.base.made_by)
        return {
            **super().identity(),
            "Keras": f"{keras.__version__} {keras.backend.backend()}",
            "settings": str(fields),
            "base": base,
            "hidden tasks": digest_of(self.asked),
            "instances": digest_of(self.x),
        }

    def run(self, method: Method, seed: int, part: int) -> tuple[NDArray[np.int64], Scores]:
        """Train and predict once."""
        hidden, settings, targets = self._hidden(seed, part), self._settings(method, seed), None
        kept = self._training_tasks(hidden)
        if method.name == GOLD:
            kept = kept[self.measure.known[kept]]
            targets = self.measure.gold_targets(kept)
        elif settings.method == AGGREGATED:
            seen = self.measure.of_tasks(kept)
            result = result_of(self.aggregator(method, seed), seen)
            targets = self.kind.training.targets(result, annotations_of(seen))
        return hidden, train_and_predict(settings, self.x, self.measure, kept, hidden, targets, self.base)

    def _hidden(self, seed: int, part: int) -> NDArray[np.int64]:
        """Codes of the hidden tasks, sorted."""
        if self.held_out is not None:
            return self.asked
        order = np.random.default_rng([seed, PARTS]).permutation(self.asked)
        return np.sort(np.array_split(order, PARTS)[part])

    def _training_tasks(self, hidden: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of the training tasks, sorted."""
        kept = self.labelled.copy()
        kept[hidden if self.held_out is None else self.held_out] = False
        return np.flatnonzero(kept)

    def _settings(self, method: Method, seed: int) -> Any:
        if method.name in self.deep:
            return replace(self.settings, method=method.name, arguments=dict(method.arguments), seed=seed)
        return replace(self.settings, method=AGGREGATED, arguments={}, seed=seed)


def train_and_predict(
    settings: Settings,
    x: Examples,
    measure: Measure,
    kept: NDArray[np.int64],
    hidden: NDArray[np.int64],
    targets: Targets | None,
    base: Base | None = None,
) -> Scores:
    """Train a model once and predict other tasks.

    Args:
        settings: training settings.
        x: instances, row i is task code i.
        measure: labels of all tasks.
        kept: codes of the training tasks.
        hidden: codes of the tasks to predict, sorted.
        targets: training targets of method "aggregated"; see `Training.targets`.
        base: see `train`.

    Returns:
        The predictions in the kind's form.
    """
    crowd, base_argument = measure.of_tasks(kept), {} if base is None else {"base": base}
    model, encoder = kind_of(settings.kind).training.train(
        settings, take_rows(x, kept), crowd, targets=targets, **base_argument
    )
    return measure.predict(model, encoder, x, hidden)


def _describe(base: Any) -> str:
    """Text that identifies a custom base: the configuration of a model, or the source of a function."""
    if isinstance(base, keras.Model):
        return str(base.to_json())
    with contextlib.suppress(OSError, TypeError):
        return inspect.getsource(base)
    return getattr(base, "__qualname__", type(base).__name__)
