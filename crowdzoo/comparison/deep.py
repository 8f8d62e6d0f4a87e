"""Deep methods on one base, compared."""

import contextlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from crowdzoo.comparison.measures import Measure, Scores
from crowdzoo.comparison.setup import GOLD, PARTS, Method, Setup
from crowdzoo.comparison.trained import trained_answers
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.plugins import Table
from crowdzoo.training.bases.given import GivenBase
from crowdzoo.training.bases.own_source import source_hash
from crowdzoo.training.candidates import compared
from crowdzoo.training.digest import digest_of
from crowdzoo.training.held_out_annotations import FEWEST
from crowdzoo.training.instance_training import given_values
from crowdzoo.training.length import with_length
from crowdzoo.training.methods import AGGREGATED, methods_of
from crowdzoo.training.settings import InstanceSettings, TrainingSettings
from crowdzoo.training.training_loop import paired

LINE = "compare(annotations, x, tasks={})"


class Trainings(Setup):
    """Each method trains the same base; a fifth of the tasks is hidden in turns, or those of `held_out`.

    Args:
        annotations: of the tasks.
        measure: of their kind.
        gold: by the rows of x; None.
        x: instances.
        base: a Keras model, or a function that makes one; None is the settings' own.
        settings: of all trainings; None is `TrainingSettings()`.
        tasks: ids of the rows of x.
        held_out: rows that are hidden; None.
    """

    def __init__(
        self, annotations: Annotations, measure: Measure, gold: Any, x: Any, base: Any, settings: Any, tasks: Any,
        held_out: Any,
    ):  # fmt: skip
        self.settings: InstanceSettings = TrainingSettings(task=annotations.kind) if settings is None else settings
        if self.settings.kind != annotations.kind:
            raise DataError(
                f"compare: the settings are of task {self.settings.kind}, the annotations of kind {annotations.kind}."
            )
        self.x, annotations, _ = paired(
            replace(self.settings, method="crowdsourced-layer", arguments={}), given_values(self.settings, x),
            annotations, tasks, LINE,
        )  # fmt: skip
        ends = {name: value for name in ("low", "high") if (value := getattr(self.settings, name)) is not None}
        super().__init__(annotations, measure, gold, ends)
        if self.settings.patience is not None:
            raise ConfigError(
                "compare: patience holds out annotations, and what learns from aggregated labels has none. Set epochs."
            )
        if base is not None and not callable(base):
            raise ConfigError(f"compare: base must be a Keras model, or a function that makes one, got {base!r}.")
        self.base = None if base is None else GivenBase(base)
        self.labelled = annotations.redundancy > 0
        asked = self.labelled if self.gold is None else measure.known(self.gold)
        if held_out is None:
            self.num_parts, self.held_out = PARTS, None
        else:
            self.held_out = np.asarray(held_out)
            if self.held_out.dtype != bool or self.held_out.shape != asked.shape:
                raise DataError(
                    f"compare: held_out must be True or False for each of the {len(asked):,} rows of the instances, "
                    f"got shape {self.held_out.shape} of type {self.held_out.dtype}."
                )
            asked = asked & self.held_out
        self.asked = np.flatnonzero(asked)
        train = self.labelled if self.held_out is None else self.labelled & ~self.held_out
        self.has_gold_to_learn = self.gold is not None and (train & measure.known(self.gold)).sum() >= FEWEST
        if len(self.asked) < FEWEST or train.sum() < FEWEST:
            what = "labels" if self.gold is None else "gold"
            hidden = "tasks" if held_out is None else "tasks of the split eval (held_out)"
            raise DataError(
                f"compare: {len(self.asked):,} {hidden} with {what} and {train.sum():,} labelled ones to train on; "
                f"{FEWEST} of each are needed. Compare aggregations alone (without instances), or label more."
            )
        self.settings = with_length(self.settings, int(train.sum() * (1 - 1 / self.num_parts) or train.sum()))

    def tables(self) -> Sequence[Table]:
        """Deep methods, aggregations whose result the base learns from, and gold where there is enough."""
        own = [Table("layer", {GOLD: None}, lambda _: None)] if self.has_gold_to_learn else []
        return [methods_of(self.annotations.kind), *super().tables(), *own]

    def of_set(self, name: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
        """The methods that auto compares, or every deep one; gold where there is some."""
        kind = self.annotations.label_kind
        found = [(each, {}) for each in methods_of(kind.name)] if name == "all" else compared(kind)
        return [*found, (GOLD, {})] if self.has_gold_to_learn else found

    def check(self, method: Method) -> None:
        """Raises ConfigError where settings of a method cannot be used."""
        if method.name in methods_of(self.annotations.kind):
            self._settings(method, 0)
        elif method.name != GOLD:
            super().check(method)

    def aggregator(self, method: Method, seed: int) -> Any:
        """An aggregator by its name; of "aggregated" the recommended one."""
        return super().aggregator(Method(self.measure.final, {}) if method.name == AGGREGATED else method, seed)

    def identity(self) -> dict[str, str]:
        """Annotations and instances, and how is trained."""
        fields = {**asdict(self.settings), "method": None, "arguments": None, "seed": None}
        own = getattr(self.settings, "reference", "")  # of a base of the user's own
        base = source_hash(own) if own else "" if self.base is None else _described(self.base.made_by)
        return {
            **super().identity(), "Keras": f"{keras.__version__} {keras.backend.backend()}",
            "settings": str(fields), "base": base, "hidden tasks": digest_of(self.asked),
            "instances": digest_of(self.x),
        }  # fmt: skip

    def run(self, method: Method, seed: int, part: int) -> tuple[NDArray[np.int64], Scores]:
        """Trains once."""
        hidden = self._hidden(seed, part)
        kept = self.labelled.copy()
        kept[hidden if self.held_out is None else self.held_out] = False
        rows, targets, own = np.flatnonzero(kept), None, self._settings(method, seed)
        if method.name == GOLD and self.gold is not None:
            rows = np.flatnonzero(kept & self.measure.known(self.gold))
            targets = self.measure.told(self.gold[rows], self.annotations.num_classes)
        elif own.method == AGGREGATED:
            result = self.aggregator(method, seed).fit(self.annotations.select_tasks(rows))
            targets = self.measure.answers(result)
        targets = None if targets is None else self.measure.targets(targets)
        epochs = [own.epochs or 1]
        (answers,) = trained_answers(own, self.x, self.annotations, rows, hidden, targets, epochs, base=self.base)
        return hidden, answers

    def _hidden(self, seed: int, part: int) -> NDArray[np.int64]:
        """Codes of the tasks that are asked for, sorted."""
        if self.held_out is not None:
            return self.asked
        order = np.random.default_rng([seed, PARTS]).permutation(self.asked)
        return np.sort(np.array_split(order, PARTS)[part])

    def _settings(self, method: Method, seed: int) -> Any:
        if method.name in methods_of(self.annotations.kind):
            return replace(self.settings, method=method.name, arguments=dict(method.arguments), seed=seed)
        return replace(self.settings, method=AGGREGATED, arguments={}, seed=seed)


def _described(base: Any) -> str:
    """A base of the user's own: the configuration of a model, or the source of a function."""
    if isinstance(base, keras.Model):
        return str(base.to_json())
    with contextlib.suppress(OSError, TypeError):
        return inspect.getsource(base)
    return getattr(base, "__qualname__", type(base).__name__)
