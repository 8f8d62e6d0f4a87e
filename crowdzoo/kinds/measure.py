"""Measure: comparison of methods for one kind of label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import annotations_of
from crowdzoo.errors import DataError
from crowdzoo.kinds.aggregating import Result
from crowdzoo.kinds.reading import Crowd
from crowdzoo.kinds.scoring import Codes, Flags, Floats, Scoring, Sums
from crowdzoo.kinds.training import Encoder, Targets, encode
from crowdzoo.training.digest import digest_of
from crowdzoo.training.training_loop import pair_with_tasks

if TYPE_CHECKING:
    from crowdzoo.training.crowd_model import CrowdModel
    from crowdzoo.training.pair_rows import Examples
    from crowdzoo.training.settings import Settings

Scores = NDArray[np.float64]
Sum: TypeAlias = Callable[[Scores, Codes], Sums]  # from answers and their tasks to the contribution of each to two sums
Deep: TypeAlias = tuple[tuple[str, Mapping[str, Any]], ...]  # methods and their settings
LINE = "compare(annotations, x, tasks={})"


class Measure(ABC, Generic[Crowd, Result]):
    """Labels that methods are compared on, and scores of answers.

    Answers to tasks are an array of numbers, [n, K]; each kind defines the content of a row. The score of a method is a
    sum over tasks divided by a sum of weights.

    Args:
        crowd: annotations, in the form that the kind's aggregators fit.
        gold: gold of the tasks, or None.
        scale: settings that all methods share, such as the ends of a rating scale; see `KindOptions.scale`.

    Attributes:
        scoring: compares answers with gold.
        title: title of the score against gold; higher is better.
        hidden_title: title of the score without gold.
        baseline: the aggregation that all others are compared with.
        quick: names of the aggregations compared by default.
        quick_deep: deep methods, with settings, compared by default; empty: all of them.
        labels_instances: whether the crowd contains the instances, so that there are no others.
        takes_base: whether a custom Keras model can be the base.
        answers_hold_gold: whether answers depend on gold, so that runs with other gold cannot be reused.
        drawn: number of tasks that a score is about.
    """

    scoring: Scoring
    title: str
    hidden_title: ClassVar[str] = "log-likelihood per hidden annotation"
    baseline: ClassVar[str]
    quick: ClassVar[tuple[str, ...]]
    quick_deep: ClassVar[Deep] = ()
    labels_instances: ClassVar[bool] = False
    takes_base: ClassVar[bool] = True
    answers_hold_gold: bool = False
    drawn: ClassVar[int] = 1

    def __init__(self, crowd: Crowd, gold: Any = None, scale: Mapping[str, Any] = MappingProxyType({})):
        self.crowd, self.scale = crowd, scale
        self.annotations: Any = annotations_of(crowd)
        self.gold: Any = None if gold is None else self.check(gold)
        if self.gold is not None and not self.known.any():
            raise DataError("compare: no task has gold. Give gold of some, or leave it out.")

    @property
    def num_tasks(self) -> int:
        """N, number of tasks."""
        return int(self.annotations.num_tasks)

    # === Gold ===

    def check(self, gold: object) -> NDArray[Any]:
        """Check gold of each task, [N]: texts, empty where unknown, unless the kind has another form.

        Raises:
            DataError: gold does not match the tasks.
        """
        return self.array_of(gold).astype(object)

    def array_of(self, gold: object) -> NDArray[Any]:
        """Gold as an array with one value per task."""
        values = np.asarray(gold)
        index: Any = getattr(gold, "index", None)
        if hasattr(gold, "reindex") and index.tolist() not in (self.annotations.tasks.tolist(), [*range(len(values))]):
            raise DataError(
                "compare: gold is a Series whose index is neither annotations.tasks nor 0, 1, 2, …. Write "
                "gold.reindex(annotations.tasks), or gold.to_numpy() where its rows are in the right order."
            )
        if values.shape != (self.num_tasks,):
            text = f"compare: gold must have a value for each of the {self.num_tasks:,} tasks"
            raise DataError(f"{text}, got shape {values.shape}.")
        return values

    def numbers_of(self, gold: object) -> Floats:
        """Gold as numbers, NaN where unknown."""
        numbers = self.array_of(gold)
        if numbers.dtype.kind not in "iuf":
            raise DataError(f"compare: gold must be numbers, NaN where unknown, got values of type {numbers.dtype}.")
        return numbers.astype(float)

    def gold_digest(self) -> str:
        """Hash of gold, to recognize earlier runs."""
        return digest_of(self.gold)

    @property
    def known(self) -> Flags:
        """Which tasks have gold, bool [N]."""
        return self.scoring.known(self.gold)

    def sums(self, answers: Scores, tasks: Codes) -> Sums:
        """Contributions of tasks to the sum of scores against gold, and to that of weights, [n] each."""
        known, both = self.known[tasks], np.zeros((2, len(tasks)))
        both[:, known] = self.scoring.sums(self.gold[tasks[known]], self.answers_with_gold(answers, tasks))
        return both[0], both[1]

    def further(self, answers: Scores, tasks: Codes) -> dict[str, float]:
        """Further scores against gold, by title."""
        scores = self.scoring.score(self.gold[tasks[self.known[tasks]]], self.answers_with_gold(answers, tasks))
        return {title: scores[name] for name, title in self.scoring.titles.items()}

    def answers_with_gold(self, answers: Scores, tasks: Codes) -> Scores | Sequence[Codes]:
        """Answers to the tasks with gold, in the form of `scoring`."""
        return answers[self.known[tasks]]

    def references(self, tasks: Codes, rows: Flags | None) -> tuple[Codes, NDArray[Any]]:
        """References for answers, for kinds whose labels have the form of gold.

        Args:
            tasks: codes of the tasks.
            rows: annotations to predict, bool [A]; None: gold.

        Returns:
            Places among the tasks, and a reference for each.
        """
        if rows is None:
            places = np.flatnonzero(self.known[tasks])
            return places, self.gold[tasks[places]]
        places = np.searchsorted(tasks, self.annotations.task_ids[rows])
        return places, self.annotations.values[self.annotations.labels[rows]]

    # === Without gold ===

    def hidden_sums(self, rows: Flags | None = None) -> Sum:
        """Return a function like `sums` that scores answers on annotations, for most kinds by log-probability, nats.

        Args:
            rows: annotations to predict, bool [A]; None: all those of the tasks.

        Raises:
            DataError: the kind has no such score.
        """
        raise DataError(f'compare: {self.annotations.label_kind.title} need gold; for spans lines with "gold": true.')

    def faults(self, answers: Scores, tasks: Codes) -> list[str]:
        """Problems with answers that show without gold, as clauses for messages."""
        return []

    def num_hidden(self, rows: Flags | None) -> Codes:
        """Number of selected annotations per task, [N]; None selects all."""
        tasks = self.annotations.task_ids
        return np.bincount(tasks if rows is None else tasks[rows], minlength=self.num_tasks)

    # === Aggregations ===

    @abstractmethod
    def answers(self, result: Result, tasks: Codes, rows: Flags | None) -> Scores:
        """Answers of an aggregation.

        Args:
            result: result of the aggregation.
            tasks: codes of the tasks to answer.
            rows: annotations to predict, bool [A]; None with gold.
        """

    # === Deep methods ===

    @classmethod
    def pair(cls, settings: Settings, x: Examples, crowd: Crowd, tasks: ArrayLike | None) -> tuple[Examples, Crowd]:
        """Instances, and the crowd with task i for row i."""
        paired: Any = pair_with_tasks(settings, x, cast(Annotations, crowd), tasks, LINE)
        return paired[0], paired[1]

    def of_tasks(self, tasks: Codes) -> Crowd:
        """Select the crowd of some tasks by code."""
        crowd: Any = self.crowd
        return crowd.select_tasks(tasks)

    def gold_targets(self, tasks: Codes) -> Targets:
        """Training targets built from the gold labels of these tasks, which all have one; see `Training.targets`.

        A kind whose `pair` refuses deep methods has none.
        """
        raise NotImplementedError

    def predict(self, model: CrowdModel, encoder: Encoder, x: Examples, tasks: Codes) -> Scores:
        """Answers of a model.

        Args:
            model: `CrowdModel`.
            encoder: from instances to the model's input, or None.
            x: instances of all tasks.
            tasks: codes of the tasks to predict, sorted.
        """
        rows = np.zeros(self.num_tasks, dtype=bool)
        rows[tasks] = True
        return np.asarray(model.predict(encode(x, rows, encoder), verbose=0), np.float64)
