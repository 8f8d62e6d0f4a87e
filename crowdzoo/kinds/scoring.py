"""Scoring: how answers to tasks are compared with gold, in one place for each kind of label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import DataError

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Objects = NDArray[np.object_]
Sums = tuple[np.ndarray, np.ndarray]  # of the tasks, [n] each
Rows = list[tuple[str, str]]
Scores = dict[str, Any]  # numbers by name; for spans also a table of their types
Gold = TypeVar("Gold")
Answers = TypeVar("Answers")


class Scoring(ABC, Generic[Gold, Answers]):
    """How answers are compared with gold.

    Commands, `compare` and the pipeline's Evaluator all count correctness here. Except in `known`, gold and answers are
    those of n tasks whose gold is known; their form is the kind's own.

    Attributes:
        metric: name of the number of `score` that decides whether a model is pushed; `minimum_<metric>` is its key in a
            configuration.
        metric_title: the metric in messages.
        titles: names of the numbers of `score` that `compare` shows -> their titles in its table.
        by_annotations: whether a pipeline can compare models by annotations where there is no gold.
    """

    metric: ClassVar[str]
    metric_title: ClassVar[str]
    titles: ClassVar[Mapping[str, str]] = {}
    by_annotations: ClassVar[bool] = False

    def known(self, gold: Gold) -> Flags:
        """Which tasks have gold, bool [N]; texts that are not empty, unless the kind has others."""
        return np.asarray(gold != "", bool)

    @abstractmethod
    def score(self, gold: Gold, answers: Answers) -> Scores:
        """Numbers by name; `metric` is among the names.

        Raises:
            DataError: answers that cannot be scored.
        """

    @abstractmethod
    def sums(self, gold: Gold, answers: Answers) -> Sums:
        """What each task adds to the sum of scores that methods are compared by, and to that of weights, [n] each."""

    def by_task(self, gold: Gold, answers: Answers) -> Floats:
        """A score of each task, [n], whose mean is the metric by which the pipeline compares models."""
        return linearised(*self.sums(gold, answers))

    def rows(self, gold: Gold, answers: Answers, split: str = "") -> Rows:
        """Rows of a table.

        Args:
            gold: of the tasks; for an aggregation there may be none.
            answers: to these tasks.
            split: "training" or "held-out" for the answers of a model.
        """
        raise NotImplementedError

    def rows_of_known(self, gold: Gold, answers: Answers) -> Rows:
        """Rows of a table on those of all tasks whose gold is known; arrays of gold and answers, [N] each."""
        arrays: tuple[Any, Any] = gold, answers
        known = self.known(gold)
        return self.rows(*(values[known] for values in arrays))


def linearised(totals: Floats, weights: Floats, num_tasks: int = 1) -> Floats:
    """Scores whose mean is the ratio of two sums, and whose spread is that of the ratio when tasks are resampled.

    A task counts by its contribution beyond its share (the ratio estimator of survey sampling).

    Args:
        totals: what each task adds to the numerator, [..., n].
        weights: what it adds to the denominator, [..., n].
        num_tasks: how many tasks a contribution is about.
    """
    mean = weights.mean(axis=-1, keepdims=True)
    mean = np.where(mean == 0, 1, mean)
    ratio = totals.mean(axis=-1, keepdims=True) / mean
    scores: Floats = ratio + num_tasks * (totals - ratio * weights) / mean
    return scores


def scored_models(
    scoring: Scoring[Gold, Answers],
    models: Mapping[str, str],
    gold: Gold,
    answers: Mapping[str, Answers],
    further: Mapping[str, Mapping[str, float | None]] | None = None,
) -> dict[str, Scores]:
    """Scores of exported models, as the Evaluator compares them.

    Args:
        scoring: of the kind of label.
        models: name -> folder of the SavedModel.
        gold: of the n tasks that were asked about.
        answers: of each model.
        further: further numbers of each model, by name.

    Returns:
        For each model `tasks` (n), the numbers of `Scoring.score` and `further`, and `by_task`.

    Raises:
        ValueError: answers that cannot be scored; it names the model's folder.
    """
    scores = {}
    for name, folder in models.items():
        try:
            numbers = scoring.score(gold, answers[name])
        except DataError as error:
            raise ValueError(f"{folder}: {error}") from error
        more = {} if further is None else further[name]
        tasks: Any = gold
        scores[name] = {"tasks": len(tasks), **numbers, **more, "by_task": scoring.by_task(gold, answers[name])}
    return scores
