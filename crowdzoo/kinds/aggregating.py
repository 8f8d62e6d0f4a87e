"""Aggregating: methods of aggregation for one kind of label, and what tables say of their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from crowdzoo.data.label_kinds import LabelKind
from crowdzoo.kinds.reading import Crowd, Gold
from crowdzoo.kinds.scoring import Codes, Rows
from crowdzoo.plugins import Table

if TYPE_CHECKING:
    from crowdzoo.aggregation.base import Aggregator
    from crowdzoo.aggregation.base import Result as AnyResult
    from crowdzoo.aggregation.multi_label import MultiLabel

Result = TypeVar("Result", bound="AnyResult")  # of the aggregators of a kind


class DrawnText(NamedTuple):
    """A span of the consensus: its label, and `start`, `end` (in characters) and `text`."""

    label: str
    place: dict[str, int | str]


@dataclass(frozen=True)
class Aggregating(ABC, Generic[Crowd, Result, Gold]):
    """Methods of aggregation, and what tables say of their results.

    Args:
        labels: the kind.
        default: name of the method that is used where none is named.
        quick: name of the one that pages on large crowds use; empty: the default.

    Attributes:
        remark: a sentence below the table of a result.
    """

    labels: LabelKind
    default: str
    quick: str = ""
    remark: ClassVar[str] = ""

    def methods(self) -> Table:
        """Methods of aggregation: name -> class."""
        from crowdzoo.aggregation.registry import METHODS_OF

        return METHODS_OF[self.labels.name]

    def method_class(self, method: str) -> type | None:
        """The class whose settings a method takes; None if the method is unknown."""
        return self.methods().get(method)

    def create(self, method: str | None = None, *, seed: int | None = None, **settings: Any) -> Aggregator | MultiLabel:
        """An aggregator.

        Args:
            method: name; None takes the default.
            seed: passed on where the method takes one and `settings` do not have it.
            **settings: settings of the method.

        Raises:
            ConfigError: an unknown method or setting, or a value out of range.
        """
        from crowdzoo.aggregation.registry import check_settings_of_default

        method = method or self.default
        if method == self.default:  # it may not have been named
            check_settings_of_default(self.methods().own, method, settings)
        chosen = self.method_class(method)
        if seed is not None and chosen is not None and "seed" in signature(chosen).parameters:
            settings = {"seed": seed, **settings}
        return self.make(method, **settings)

    def make(self, method: str, **settings: Any) -> Aggregator | MultiLabel:
        """An aggregator by the name of its method, with these settings alone; see `create`."""
        from crowdzoo.aggregation.registry import create

        return create(method, kind=self.labels.name, **settings)

    def title(self, result: Result) -> str:
        """Heading of the table of a result."""
        return result.method

    def fit_options(self, gold: Gold | None, used: bool, calibrated: bool) -> dict[str, Any]:
        """Arguments of `fit` where gold is used as known labels, or labels are calibrated with it."""
        return {"gold": gold} if used else {}

    def calibrate(self, result: Result, crowd: Crowd, gold: Gold, seed: int) -> Result:
        """Corrects labels and probabilities by gold; see `crowdzoo.aggregation.calibrate`."""
        from crowdzoo.aggregation import calibrate

        corrected: Any = calibrate
        return corrected(result, crowd, gold, seed=seed)

    def add_notes(self, result: Result, crowd: Crowd, gold: Gold | None = None) -> Result:
        """Add warnings about properties of the data that make the result unreliable.

        Args:
            result: of the aggregator.
            crowd: what it was fitted to.
            gold: what the result was fitted or calibrated with; None without gold.
        """
        return result

    @abstractmethod
    def rows(self, result: Result, crowd: Crowd, gold: Gold | None, used_gold: bool) -> Rows:
        """Rows of a table: the result of an aggregation, and how it compares with gold.

        Args:
            result: of the aggregator.
            crowd: what it was fitted to.
            gold: result of `Reading.gold_of`.
            used_gold: whether the aggregator was told the gold.
        """

    def answer_counts(self, result: Any) -> Codes:
        """Answers of each task, [N]."""
        return np.asarray(result.annotations_per_task)

    def consensus(self, result: Result, crowd: Crowd, tasks: Codes) -> Iterable[tuple[Any, float]] | None:
        """What the crowd answers to some tasks, and how sure that is; None where an answer is not about one task.

        Args:
            result: of the aggregator.
            crowd: what it was fitted to.
            tasks: places of tasks that were answered.

        Returns:
            For each task names of its classes, a number, a text, a list of `DrawnText` or a `MarkedImage`, and a number
            that is higher for surer answers.
        """
        return None

    def write(self, result: Result, crowd: Crowd, path: Path, file_format: str = "parquet") -> None:
        """Writes the result of an aggregation; see `crowdzoo.aggregation.base.Result.write`."""
        result.write(path, file_format)
