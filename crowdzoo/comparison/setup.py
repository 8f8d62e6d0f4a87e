"""Setup of a comparison: its methods, and how to run one of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crowdzoo
from crowdzoo.aggregation.base import Aggregator
from crowdzoo.aggregation.multi_label import MultiLabel
from crowdzoo.aggregation.named import result_of
from crowdzoo.checks.constraints import setting_value
from crowdzoo.errors import ConfigError, DataError, unknown
from crowdzoo.kinds import KINDS, Kind
from crowdzoo.kinds.measure import Measure, Scores, Sum
from crowdzoo.plugins import Table
from crowdzoo.training.digest import digest_of
from crowdzoo.training.held_out_annotations import FEWEST

PARTS = 5  # parts that tasks, or annotations, are split into
GOLD = "gold"  # the method that trains on gold: the score that better labels could reach
SETS = ("quick", "all")
Methods = str | Iterable[str | tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Method:
    """Name and settings of a method to compare.

    Attributes:
        name: name of an aggregation or a deep method, or "gold".
        arguments: settings of the method.
    """

    name: str
    arguments: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Name and settings on one line."""
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.arguments.items())])


class Setup(ABC):
    """Data and shared settings of a comparison; subclasses define how to run a method.

    Args:
        kind: kind of the labels.
        crowd: the labels.
        gold: gold labels of the tasks, or None.
        scale: settings that all methods share, such as "low" and "high" for ratings.

    Attributes:
        measure: scores the answers.
        num_parts: number of runs per method and seed.
    """

    num_parts = 1

    def __init__(self, kind: Kind, crowd: Any, gold: Any, scale: Mapping[str, Any]):
        self.kind, self.scale = kind, scale
        self.measure: Measure = kind.measure(crowd, gold, scale)
        self.crowd, self.annotations, self.gold = self.measure.crowd, self.measure.annotations, self.measure.gold
        self._evidence: dict[Any, Any] = {}

    def tables(self) -> Sequence[Table]:
        """Tables of the available methods."""
        return [self.kind.aggregation.methods()]

    def methods_of(self, name: str) -> Iterable[tuple[str, Mapping[str, object]]]:
        """The methods that "quick" or "all" stands for."""
        return [(method, {}) for method in (self.measure.quick if name == "quick" else self.kind.aggregation.methods())]

    def methods(self, selection: Methods) -> list[Method]:
        """The methods to compare, baseline first.

        Raises:
            ConfigError: an unknown method or setting.
        """
        methods_by_title = {self.measure.baseline: Method(self.measure.baseline, {})}
        for word in [selection] if isinstance(selection, str) else selection:
            for name, arguments in self.methods_of(word) if word in SETS else [_parse_method(word)]:
                if not any(name in table for table in self.tables()):
                    raise ConfigError(self._no_method(name))
                method = Method(name, dict(arguments))
                self.check(method)
                methods_by_title[method.title] = method
        return list(methods_by_title.values())

    def _no_method(self, name: str) -> str:
        """Error message for an unknown method name."""
        if name in self.kind.training.methods():
            return f"compare: {name} is a deep method: give instances, too."
        titles = [
            kind.title for kind in KINDS.values() if name in {*kind.training.methods(), *kind.aggregation.methods()}
        ]
        known = dict.fromkeys([*SETS, *chain(*self.tables())])
        if titles:
            title, names = self.kind.title, ", ".join(known)
            return f"compare: {name} is for {titles[0]}, not for {title}: choose one of {names}."
        return unknown("method", name, known)

    def check(self, method: Method) -> None:
        """Raise ConfigError if a method's settings are invalid."""
        self.aggregator(method, 0)

    def aggregator(self, method: Method, seed: int) -> Aggregator | MultiLabel:
        """Create an aggregator by name."""
        parameters = signature(self.kind.aggregation.method_class(method.name) or object).parameters
        usual = {name: value for name, value in {"seed": seed, **self.scale}.items() if name in parameters}
        return self.kind.aggregation.make(method.name, **usual | dict(method.arguments))

    def key(self, method: Method) -> str:
        """Storage key of a run: the method, a digest of gold for "gold", and the version of a method from outside."""
        if method.name == GOLD:
            return f"{method.title} {self.measure.gold_digest()[:12]}"
        return " ".join([method.title, *filter(None, (table.version(method.name) for table in self.tables()))])

    def parameters(self) -> dict[str, object]:
        """Settings shared by all methods, to be logged."""
        return dict(self.scale)

    def identity(self) -> dict[str, str]:
        """Identity for `Runs`; the keys appear in its error message."""
        scored = self.measure.answers_hold_gold and self.gold is not None
        return {
            "version of crowdzoo": crowdzoo.__version__,
            "annotations": digest_of(self.crowd),
            "score": self.measure.title,
            "scale": str(dict(self.scale)),
            **({"gold": self.measure.gold_digest()} if scored else {}),
        }

    @abstractmethod
    def run(self, method: Method, seed: int, part: int) -> tuple[NDArray[np.int64], Scores]:
        """Run a method: codes of the predicted tasks, [n], and the answers to them; see `Measure`."""

    def hidden_rows(self, seed: int, part: int) -> NDArray[np.bool_] | None:
        """Annotations that a run must predict without gold, bool [A]; None: all those of its tasks."""
        return None

    def evidence(self, seed: int, part: int) -> Sum:
        """`Measure.hidden_sums` for the annotations that a run must predict."""
        rows = self.hidden_rows(seed, part)
        key = None if rows is None else (seed, part)
        if key not in self._evidence:
            self._evidence[key] = self.measure.hidden_sums(rows)
        return self._evidence[key]


class Labels(Setup):
    """Aggregations: fitted to all annotations with gold; without gold, each fifth of them is hidden in turn.

    Example:
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.comparison.setup import Labels
        >>> from crowdzoo.kinds import kind_of
        >>> crowd = Annotations.from_dense(np.random.default_rng(0).integers(0, 2, (30, 3)), classes=["no", "yes"])
        >>> setup = Labels(kind_of("classification"), crowd, None, {})
        >>> [method.title for method in setup.methods("dawid-skene")]  # the baseline first
        ['majority-vote', 'dawid-skene']
    """

    def __init__(self, kind: Kind, crowd: Any, gold: Any, scale: Mapping[str, Any]):
        super().__init__(kind, crowd, gold, scale)
        if self.gold is not None:
            if (number := int(self.measure.known.sum())) < FEWEST:
                raise DataError(
                    f"compare: {number} tasks have gold, but intervals need {FEWEST}. Label more, or leave out gold."
                )
            return
        self.num_parts = PARTS
        if (number := int((self.annotations.redundancy > 1).sum())) < FEWEST:
            raise DataError(
                f"compare: {number} tasks have two annotations, but {FEWEST} are needed without gold, because a fifth "
                "of the annotations is hidden in turns. Add annotations, or gold."
            )

    def identity(self) -> dict[str, str]:
        """Identity for `Runs`: runs with gold use all annotations, runs without gold do not."""
        return {**super().identity(), "way of scoring (with or without gold)": "" if self.gold is None else "gold"}

    def run(self, method: Method, seed: int, part: int) -> tuple[NDArray[np.int64], Scores]:
        """Fit once, with gold to all annotations."""
        seen, tasks, hidden = self.crowd, np.arange(self.annotations.num_tasks), None
        if self.gold is None:
            hidden = self.hidden_rows(seed, part)
            seen, tasks = seen.select_rows(~hidden), np.flatnonzero(seen.select_rows(hidden).redundancy)
        return tasks, self.measure.answers(result_of(self.aggregator(method, seed), seen), tasks, hidden)

    def hidden_rows(self, seed: int, part: int) -> NDArray[np.bool_]:
        """Hidden annotations, [A]: a fifth, except those whose task would have none left."""
        tasks, right = self.annotations.task_ids, self.annotations.right_ids
        hidden: NDArray[np.bool_] = np.random.default_rng([seed, PARTS]).permutation(len(tasks)) % PARTS == part
        left = self.annotations.select_rows(~hidden).redundancy > 0
        return hidden & left[tasks] & left[tasks if right is None else right]


def _parse_method(word: str | tuple[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    """Name and settings from "name setting=value"; values are parsed as JSON if possible."""
    if isinstance(word, tuple) and len(word) == 2:
        return word
    if not isinstance(word, str) or not word.strip():
        raise ConfigError(
            f"compare: a method is a name, 'NAME SETTING=VALUE', or a tuple of a name and settings, got {word!r}. Give "
            "a class of your own a name by crowdzoo.register('aggregator', NAME)."
        )
    name, *assignments = word.split()
    settings = {}
    for setting in assignments:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise ConfigError(f"method {word!r}: write settings as NAME=VALUE, as in 'dawid-skene prior=0.1'.")
        settings[key] = setting_value(value)
    return name, settings
