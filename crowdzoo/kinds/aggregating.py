"""Aggregating: aggregation methods for one kind of label, and tables of their results."""

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
    """A span of the consensus: its label, and its `start`, `end` (in characters) and `text`."""

    label: str
    place: dict[str, int | str]


@dataclass(frozen=True)
class Aggregating(ABC, Generic[Crowd, Result, Gold]):
    """Aggregation methods for one kind of label, and tables of their results.

    Args:
        labels: kind of label.
        default: name of the default method.
        quick: name of the method for pages on large crowds; empty: the default.

    Attributes:
        remark: a sentence below the table of a result.
    """

    labels: LabelKind
    default: str
    quick: str = ""
    remark: ClassVar[str] = ""

    def methods(self) -> Table:
        """Aggregation methods: name -> class."""
        from crowdzoo.aggregation.registry import METHODS_OF

        return METHODS_OF[self.labels.name]

    def method_class(self, method: str) -> type | None:
        """Class that defines the settings of a method; None if the method is unknown."""
        return self.methods().get(method)

    def create(self, method: str | None = None, *, seed: int | None = None, **settings: Any) -> Aggregator | MultiLabel:
        """Create an aggregator.

        Args:
            method: name of the method; None is the default.
            seed: passed to methods that take one, unless it is in `settings`.
            **settings: settings of the method.

        Raises:
            ConfigError: an unknown method or setting, or a value out of range.
        """
        from crowdzoo.aggregation.registry import check_settings_of_default

        method = method or self.default
        if method == self.default:  # may be used without being named
            check_settings_of_default(self.methods().own, method, settings)
        chosen = self.method_class(method)
        if seed is not None and chosen is not None and "seed" in signature(chosen).parameters:
            settings = {"seed": seed, **settings}
        return self.make(method, **settings)

    def make(self, method: str, **settings: Any) -> Aggregator | MultiLabel:
        """Create an aggregator by name, with only these settings; see `create`."""
        from crowdzoo.aggregation.registry import create

        return create(method, kind=self.labels.name, **settings)

    def title(self, result: Result) -> str:
        """Heading of a result's table."""
        return result.method

    def fit_options(self, gold: Gold | None, used: bool, calibrated: bool) -> dict[str, Any]:
        """Arguments of `fit` for using gold as known labels (`used`) or for calibration (`calibrated`)."""
        return {"gold": gold} if used else {}

    def calibrate(self, result: Result, crowd: Crowd, gold: Gold, seed: int) -> Result:
        """Correct labels and probabilities with gold; see `crowdzoo.aggregation.calibrate`."""
        from crowdzoo.aggregation import calibrate

        corrected: Any = calibrate
        return corrected(result, crowd, gold, seed=seed)

    def add_notes(self, result: Result, crowd: Crowd, gold: Gold | None = None) -> Result:
        """Add warnings about properties of the data that make the result unreliable.

        Args:
            result: result of the aggregator.
            crowd: annotations that it was fitted to.
            gold: gold that the result was fitted to or calibrated with; None without gold.
        """
        return result

    @abstractmethod
    def rows(self, result: Result, crowd: Crowd, gold: Gold | None, used_gold: bool) -> Rows:
        """Rows of a table: the result of an aggregation and its comparison with gold.

        Args:
            result: result of the aggregator.
            crowd: annotations that it was fitted to.
            gold: result of `Reading.gold_of`.
            used_gold: whether the aggregator was fitted with gold.
        """

    def answer_counts(self, result: Any) -> Codes:
        """Number of answers per task, [N]."""
        return np.asarray(result.annotations_per_task)

    def consensus(self, result: Result, crowd: Crowd, tasks: Codes) -> Iterable[tuple[Any, float]] | None:
        """Consensus on some tasks, with its certainty; None if answers are not about single tasks.

        Args:
            result: result of the aggregator.
            crowd: annotations that it was fitted to.
            tasks: codes of answered tasks.

        Returns:
            For each task, names of its classes, a number, a text, a list of `DrawnText` or a `MarkedImage`; and a
            number that increases with certainty.
        """
        return None

    def write(self, result: Result, crowd: Crowd, path: Path, file_format: str = "parquet") -> None:
        """Write the result of an aggregation; see `crowdzoo.aggregation.base.Result.write`."""
        result.write(path, file_format)
