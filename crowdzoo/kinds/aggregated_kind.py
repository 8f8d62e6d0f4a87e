"""AggregatedKind: what one kind of label needs to be read and aggregated."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

from crowdzoo.errors import ConfigError
from crowdzoo.label_kinds import LabelKind, label_kind
from crowdzoo.tables.annotations import Annotations
from crowdzoo.tables.layout import Layout

__all__ = ["AggregatedKind", "Rows"]

Rows = list[tuple[str, str]]


class AggregatedKind(ABC):
    """One kind of label, from files to a result; see `crowdzoo.kinds.base` for a list of the parts.

    Attributes:
        name: "classification", "regression", "sequence" or "preference", as in files, in configurations and after
            `--task`.
        title: what is labelled or given, in messages: "classes", "ratings", "sentences", "preferences".
        counted: what is given, as tables of sizes count it: "annotations", "ratings", "sentences", "preferences".
        reading: names of the options of `read`.
        aggregation: default method of aggregation.
        refused: options of other kinds, and why they are not for this one.
        scale: those of its options that aggregators and settings of a training take as well.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    counted: ClassVar[str]
    reading: ClassVar[tuple[str, ...]]
    aggregation: ClassVar[str]
    refused: ClassVar[Mapping[str, str]] = {}
    scale: ClassVar[tuple[str, ...]] = ()

    @property
    def labels(self) -> LabelKind:
        """What arrays of these labels look like."""
        return label_kind(self.name)

    def __repr__(self) -> str:
        return f"<kind {self.name}>"

    # === Command line ===

    def add_arguments(self, command: argparse.ArgumentParser) -> None:  # noqa: B027  no options is the rule
        """Adds the options that belong to this kind, to a command that has `--task`."""

    def check_arguments(self, arguments: argparse.Namespace) -> None:
        """Refuses options of other kinds.

        Raises:
            ConfigError: names the option and why it is refused.
        """
        for name, why in self.refused.items():
            value = getattr(arguments, name, None)
            if value is not None:
                # task=x would be read as an option of Python's
                shown = (
                    ""
                    if isinstance(value, bool) or "=" in str(value)
                    else f" {value:g}"
                    if isinstance(value, float)
                    else f" {value}"
                )
                raise ConfigError(f"--{name.replace('_', '-')}{shown}: {why}")

    # === Input ===

    def read(self, annotations: str | Path, *, tasks: Any = None, **options: Any) -> Any:
        """Reads annotators' labels.

        Args:
            annotations: file; see `crowdzoo.tables.annotations.Annotations.read`; of sentences spans or columns.
            tasks: names of the tasks, in the order of their codes; None takes those that occur. Not for sentences.
            **options: any of `reading`.

        Returns:
            What the kind's aggregators fit: `Annotations`; of sentences `CrowdSequences`.

        Raises:
            DataError: a file that cannot be used.
        """
        return Annotations.read(annotations, kind=self.name, tasks=tasks, **options)

    @abstractmethod
    def gold_of(self, crowd: Any, path: Path | None, layout: Layout | None = None) -> Any:
        """What is known of the tasks; None where nothing is.

        Args:
            crowd: what `read` gave.
            path: file of gold, or None.
            layout: of that file.
        """

    def size_rows(self, crowd: Any, what: str = "") -> Rows:
        """Rows of a table that say how much there is.

        Args:
            crowd: what `read` gave.
            what: stands after the names of what is counted, such as " trained on".
        """
        rows = [(f"{self.counted}{what}", f"{len(crowd):,}")]
        if crowd.num_rejected:  # nothing disappears quietly
            rows.append(("rows left out", f"{crowd.num_rejected:,}"))
        return [*rows, (f"tasks{what}", f"{crowd.num_tasks:,}"), ("annotators", f"{crowd.num_annotators:,}")]

    # === Aggregation ===

    def aggregators(self) -> Mapping[str, type]:
        """Methods of aggregation: name -> class."""
        from crowdzoo.aggregation.create import METHODS_OF

        return METHODS_OF[self.name]

    def aggregator_class(self, method: str) -> type | None:
        """The class whose settings a method takes; None if the method is unknown."""
        return self.aggregators().get(method)

    def create_aggregator(self, method: str | None = None, *, seed: int | None = None, **settings: Any) -> Any:
        """An aggregator.

        Args:
            method: name; None takes the default.
            seed: passed on where the method takes one and `settings` do not have it.
            **settings: settings of the method.

        Raises:
            ConfigError: an unknown method or setting, or a value out of range.
        """
        from crowdzoo.aggregation import create

        method = method or self.aggregation
        chosen = self.aggregator_class(method)
        if seed is not None and chosen is not None and "seed" in signature(chosen).parameters:
            settings = {"seed": seed, **settings}
        return create(method, kind=self.name, **settings)

    def noted(self, result: Any, crowd: Any) -> Any:
        """The result with notes on what about the crowd makes it doubtful.

        Args:
            result: result of the aggregator.
            crowd: what it was fitted to.
        """
        return result

    @abstractmethod
    def result_rows(self, result: Any, crowd: Any, gold: Any, used_gold: bool) -> Rows:
        """Rows of a table: what an aggregation found, and how it compares with gold.

        Args:
            result: result of the aggregator.
            crowd: what it was fitted to.
            gold: result of `gold_of`.
            used_gold: whether the aggregator was told the gold.
        """

    def write_result(self, result: Any, crowd: Any, path: Path, file_format: str = "parquet") -> None:
        """Writes what an aggregation found; see `crowdzoo.aggregation.base.Result.write`."""
        result.write(path, file_format)
