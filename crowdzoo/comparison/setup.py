"""What a comparison is made on: its methods, and what a run of one of them is."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crowdzoo
from crowdzoo.aggregation.registry import METHODS_OF, create
from crowdzoo.comparison.measures import Measure, Scores
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError, unknown
from crowdzoo.plugins import Table
from crowdzoo.training.digest import digest_of
from crowdzoo.training.held_out_annotations import FEWEST

PARTS = 5  # into which tasks, or annotations, are cut
GOLD = "gold"  # the method that learns from gold: what better labels could bring
SETS = ("quick", "all")
Methods = str | Iterable[str | tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Method:
    """A method that is compared: its name, and its settings.

    Attributes:
        name: of an aggregation, of a deep method, or "gold".
        arguments: settings of it.
    """

    name: str
    arguments: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Both in one line."""
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.arguments.items())])


class Setup(ABC):
    """What is compared on; subclasses say how a run is made.

    Args:
        annotations: of all tasks.
        measure: of their kind.
        gold: by task; None.
        scale: ends of the ratings, "low" and "high".

    Attributes:
        num_parts: how many runs a method and seed has.
    """

    num_parts = 1

    def __init__(self, annotations: Annotations, measure: Measure, gold: Any, scale: Mapping[str, float]):
        self.annotations, self.measure, self.scale = annotations, measure, scale
        self._evidence: dict[Any, Any] = {}
        self.gold = None if gold is None else np.asarray(gold)
        if self.gold is None:
            return
        if self.gold.shape != (annotations.num_tasks,):
            raise DataError(
                f"compare: gold must have a value for each of the {annotations.num_tasks:,} tasks, got shape "
                f"{self.gold.shape}."
            )
        if annotations.label_kind.has_classes:
            if self.gold.dtype.kind not in "iu" or self.gold.max(initial=-1) >= annotations.num_classes:
                raise DataError(
                    f"compare: gold must be class codes, whole numbers from 0 to {annotations.num_classes - 1}, -1 "
                    "where it is unknown. Of names make codes: annotations.classes.index(name)."
                )
        elif self.gold.dtype.kind not in "iuf":
            raise DataError(f"compare: gold must be numbers, NaN where unknown, got values of type {self.gold.dtype}.")
        if not measure.known(self.gold).any():
            raise DataError("compare: no task has gold. Give gold of some, or leave it out.")

    def tables(self) -> Sequence[Table]:
        """The methods that can be named."""
        return [METHODS_OF[self.annotations.kind]]

    def of_set(self, name: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
        """The methods of "quick" or "all"."""
        return [(each, {}) for each in (self.measure.quick if name == "quick" else METHODS_OF[self.annotations.kind])]

    def methods(self, given: Methods) -> list[Method]:
        """What is compared, the baseline first.

        Raises:
            ConfigError: an unknown method or setting.
        """
        found = {self.measure.baseline: Method(self.measure.baseline, {})}
        for word in [given] if isinstance(given, str) else given:
            for name, arguments in self.of_set(word) if word in SETS else [_named(word)]:
                if not any(name in table for table in self.tables()):
                    raise ConfigError(unknown("method", name, dict.fromkeys([*SETS, *chain(*self.tables())])))
                method = Method(name, dict(arguments))
                self.check(method)
                found[method.title] = method
        return list(found.values())

    def check(self, method: Method) -> None:
        """Raises ConfigError where settings of a method cannot be used."""
        self.aggregator(method, 0)

    def aggregator(self, method: Method, seed: int) -> Any:
        """An aggregator by its name."""
        parameters = signature(METHODS_OF[self.annotations.kind][method.name]).parameters
        usual = {name: value for name, value in {"seed": seed, **self.scale}.items() if name in parameters}
        return create(method.name, kind=self.annotations.kind, **usual | dict(method.arguments))

    def key(self, method: Method) -> str:
        """What a run is kept by: the method; of "gold" also the gold, of a package's or script's method its version."""
        if method.name == GOLD:
            return f"{method.title} {digest_of(self.gold)[:12]}"
        return " ".join([method.title, *filter(None, (table.version(method.name) for table in self.tables()))])

    def identity(self) -> dict[str, str]:
        """See `Runs`, in the words of its message."""
        return {
            "version of crowdzoo": crowdzoo.__version__, "annotations": digest_of(self.annotations),
            "scale": str(dict(self.scale)),
        }  # fmt: skip

    @abstractmethod
    def run(self, method: Method, seed: int, part: int) -> tuple[NDArray[np.int64], Scores]:
        """Codes of the tasks that were asked for, [n], and answers, [n, K]."""

    def hidden_rows(self, seed: int, part: int) -> NDArray[np.bool_] | None:
        """Which annotations a run is asked for where there is no gold, bool [A]; None: all of its tasks."""
        return None

    def evidence(self, seed: int, part: int) -> tuple[Callable[[Scores, NDArray[Any]], Scores], NDArray[np.int64]]:
        """See `Measure.hidden`, of the annotations that a run is asked for; and how many each task has of them, [N]."""
        rows = self.hidden_rows(seed, part)
        key = None if rows is None else (seed, part)
        if key not in self._evidence:
            tasks = self.annotations.task_ids if rows is None else self.annotations.task_ids[rows]
            counts = np.bincount(tasks, minlength=self.annotations.num_tasks)
            self._evidence[key] = self.measure.hidden(self.annotations, rows), counts
        found: tuple[Callable[[Scores, NDArray[Any]], Scores], NDArray[np.int64]] = self._evidence[key]
        return found


class Labels(Setup):
    """Aggregations alone: with gold on all annotations, without it with a fifth of them hidden in turns."""

    def __init__(self, annotations: Annotations, measure: Measure, gold: Any, scale: Mapping[str, float]):
        super().__init__(annotations, measure, gold, scale)
        if self.gold is not None:
            return
        self.num_parts = PARTS
        if (annotations.redundancy > 1).sum() < FEWEST:
            raise DataError(
                f"compare: without gold some annotations are hidden, and fewer than {FEWEST} tasks have two. Give gold."
            )

    def identity(self) -> dict[str, str]:
        """Runs with gold see all annotations, the others do not."""
        return {**super().identity(), "way of scoring (with or without gold)": "" if self.gold is None else "gold"}

    def run(self, method: Method, seed: int, part: int) -> tuple[NDArray[np.int64], Scores]:
        """Fits once; with gold to all annotations."""
        seen, asked = self.annotations, np.arange(self.annotations.num_tasks)
        if self.gold is None:
            hidden = self.hidden_rows(seed, part)
            seen, asked = seen.select_rows(~hidden), np.unique(seen.task_ids[hidden])
        answers = self.measure.answers(self.aggregator(method, seed).fit(seen))
        return asked, answers[asked]

    def hidden_rows(self, seed: int, part: int) -> NDArray[np.bool_]:
        """Which annotations, [A]: a fifth, but those of tasks that would have none left."""
        tasks = self.annotations.task_ids
        hidden = np.random.default_rng([seed, PARTS]).permutation(len(tasks)) % PARTS == part
        left = np.bincount(tasks[~hidden], minlength=self.annotations.num_tasks)
        found: NDArray[np.bool_] = hidden & (left[tasks] > 0)
        return found


def _named(word: str | tuple[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    """Name and settings of "name setting=value", whose values are JSON where they can be."""
    if not isinstance(word, str):
        return word
    name, *settings = word.split()
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise ConfigError(f"method {word!r}: write settings as NAME=VALUE, as in 'dawid-skene prior=0.1'.")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return name, found
