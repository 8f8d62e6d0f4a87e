"""Compared: how methods for one kind of label are compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import DataError
from crowdzoo.kinds.scoring import Scoring, Sums
from crowdzoo.training.digest import digest_of
from crowdzoo.training.encode_rows import encode_rows
from crowdzoo.training.training_loop import pair_with_tasks

Scores = NDArray[np.float64]
LINE = "compare(annotations, x, tasks={})"


class Compared(ABC):
    """The labels that methods are compared on, and how answers to them are scored.

    Answers to some tasks are an array of numbers, [n, K], whose rows are what the kind says. A score of a method is a
    sum over the tasks, divided by a sum of weights.

    Args:
        crowd: what the kind's aggregators fit.
        gold: what is known of the tasks; None.

    Attributes:
        scoring: how answers are compared with gold.
        title: of the score against gold; higher is better.
        hidden_title: of the score without gold.
        baseline: the aggregation that all others are compared with.
        quick: names of the aggregations that are compared where none is named.
        labels_instances: whether what annotators labelled is what models learn from, so that there are no other
            instances.
        takes_base: whether a Keras model of the user's own may be the base.
        answers_hold_gold: whether answers are scores against gold, so that runs with other gold are others.
        drawn: how many tasks a score is about.
        scale: settings that all methods share, such as the ends of ratings; see `Kind.scale`.
    """

    scoring: Scoring
    title: str
    hidden_title: ClassVar[str] = "nats per hidden annotation"
    baseline: ClassVar[str]
    quick: ClassVar[tuple[str, ...]]
    labels_instances: ClassVar[bool] = False
    takes_base: ClassVar[bool] = True
    answers_hold_gold: bool = False
    drawn: ClassVar[int] = 1
    scale: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, crowd: Any, gold: Any = None):
        self.crowd = crowd
        self.annotations: Any = getattr(crowd, "annotations", crowd)
        self.gold: Any = None if gold is None else self.checked(gold)
        if self.gold is not None and not self.known.any():
            raise DataError("compare: no task has gold. Give gold of some, or leave it out.")

    @property
    def num_tasks(self) -> int:
        """N."""
        return int(self.annotations.num_tasks)

    # === Gold ===

    def checked(self, gold: Any) -> Any:
        """Gold of each task, [N]; texts, empty where unknown, unless the kind has others.

        Raises:
            DataError: it does not fit.
        """
        return self.array_of(gold).astype(object)

    def array_of(self, gold: Any) -> NDArray[Any]:
        """Gold as an array with a value a task."""
        values = np.asarray(gold)
        if hasattr(gold, "reindex") and gold.index.tolist() not in (
            self.annotations.tasks.tolist(),
            [*range(len(values))],
        ):
            raise DataError(
                "compare: gold is a Series whose index is neither annotations.tasks nor 0, 1, 2, …. Write "
                "gold.reindex(annotations.tasks), or gold.to_numpy() where its rows are in the right order."
            )
        if values.shape != (self.num_tasks,):
            raise DataError(
                f"compare: gold must have a value for each of the {self.num_tasks:,} tasks, got shape {values.shape}."
            )
        return values

    def gold_digest(self) -> str:
        """A hash of gold, by which earlier runs are known."""
        return digest_of(self.gold)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which tasks have gold, bool [N]."""
        return self.scoring.known(self.gold)

    def sums(self, answers: Scores, tasks: NDArray[Any]) -> Sums:
        """What each of these tasks adds to the sum of scores against gold, and to that of weights, [n] each."""
        known, both = self.known[tasks], np.zeros((2, len(tasks)))
        both[:, known] = self.scoring.sums(self.gold[tasks[known]], self.answers_with_gold(answers, tasks))
        return both[0], both[1]

    def further(self, answers: Scores, tasks: NDArray[Any]) -> dict[str, float]:
        """Further numbers against gold, by their titles."""
        scores = self.scoring.score(self.gold[tasks[self.known[tasks]]], self.answers_with_gold(answers, tasks))
        return {title: scores[name] for name, title in self.scoring.titles.items()}

    def answers_with_gold(self, answers: Scores, tasks: NDArray[Any]) -> Any:
        """Answers to those of these tasks that have gold, as `scoring` takes them."""
        return answers[self.known[tasks]]

    def references(self, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """What answers to tasks are compared with, where annotators' labels are of gold's form.

        Args:
            tasks: codes of the tasks.
            rows: annotations that are asked for, bool [A]; None: gold.

        Returns:
            Places among the tasks, and the true answer to each.
        """
        if rows is None:
            places = np.flatnonzero(self.known[tasks])
            return places, self.gold[tasks[places]]
        places = np.searchsorted(tasks, self.annotations.task_ids[rows])
        return places, self.annotations.values[self.annotations.labels[rows]]

    # === Without gold ===

    def hidden_sums(self, rows: NDArray[np.bool_] | None = None) -> Any:
        """A function like `sums`, by what answers say of annotations; by their log-probability, nats, for most kinds.

        Args:
            rows: those that are asked for, bool [A]; None is all of the tasks.

        Raises:
            DataError: the kind has no such score.
        """
        raise DataError(f'compare: {self.annotations.label_kind.title} need gold; of spans lines with "gold": true.')

    def faults(self, answers: Scores, tasks: NDArray[Any]) -> list[str]:
        """Sentences on what is wrong with answers, by the annotations alone."""
        return []

    def num_hidden(self, rows: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """How many of some annotations are about each task, [N]; None is all of them."""
        tasks = self.annotations.task_ids
        return np.bincount(tasks if rows is None else tasks[rows], minlength=self.num_tasks)

    # === Aggregations ===

    def fitted_by(self, name: str, aggregator: Any) -> Any:
        """What fits the labels: the aggregator of that name, or what asks it label by label."""
        return aggregator

    @abstractmethod
    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Those of an aggregation.

        Args:
            result: of it.
            tasks: codes of those that are asked for.
            rows: the annotations that are asked for, bool [A]; None with gold.
        """

    # === Deep methods ===

    @classmethod
    def paired(cls, settings: Any, x: Any, crowd: Any, tasks: Any) -> tuple[Any, Any]:
        """Instances, and the crowd whose task i is row i of them."""
        x, crowd, _ = pair_with_tasks(settings, x, crowd, tasks, LINE)
        return x, crowd

    def of_tasks(self, tasks: NDArray[Any]) -> Any:
        """The crowd of some tasks, by their codes."""
        return self.crowd.select_tasks(tasks)

    def gold_targets(self, tasks: NDArray[Any]) -> Any:
        """Training targets built from the gold labels of these tasks, which all have one; see `Kind.targets`.

        A kind whose `paired` refuses deep methods has none.
        """
        raise NotImplementedError

    def predicted(self, model: Any, encoder: Any, x: Any, tasks: NDArray[Any]) -> Scores:
        """Answers of a model.

        Args:
            model: `CrowdModel`.
            encoder: from instances to its input; None.
            x: instances of all tasks.
            tasks: codes of those that are asked for, sorted.
        """
        rows = np.zeros(self.num_tasks, dtype=bool)
        rows[tasks] = True
        return np.asarray(model.predict(encode_rows(x, rows, encoder), verbose=0), np.float64)
