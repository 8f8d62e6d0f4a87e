"""Scoring: comparison of answers with gold, in one place per kind of label."""

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
Sums = tuple[np.ndarray, np.ndarray]  # by task, [n] each
Rows = list[tuple[str, str]]
Scores = dict[str, Any]  # numbers by name; for spans also a table by type
Gold = TypeVar("Gold")
Answers = TypeVar("Answers")


class Scoring(ABC, Generic[Gold, Answers]):
    """Comparison of answers with gold.

    Commands, `compare` and the pipeline's Evaluator all measure correctness here. Except in `known`, gold and answers
    are for n tasks with known gold, in the kind's own form.

    Attributes:
        metric: name of the score that decides whether a model is pushed; `minimum_<metric>` is its key in a
            configuration.
        metric_title: name of the metric in messages.
        titles: names of the scores that `compare` shows -> their titles in its table.
        by_annotations: whether a pipeline without gold can compare models by annotations.
    """

    metric: ClassVar[str]
    metric_title: ClassVar[str]
    titles: ClassVar[Mapping[str, str]] = {}
    by_annotations: ClassVar[bool] = False

    def known(self, gold: Gold) -> Flags:
        """Which tasks have gold, bool [N]; by default, non-empty texts."""
        return np.asarray(gold != "", bool)

    @abstractmethod
    def score(self, gold: Gold, answers: Answers) -> Scores:
        """Scores by name, including `metric`.

        Raises:
            DataError: answers that cannot be scored.
        """

    @abstractmethod
    def sums(self, gold: Gold, answers: Answers) -> Sums:
        """Contributions of each task to the sum of scores for comparing methods, and to that of weights, [n] each."""

    def by_task(self, gold: Gold, answers: Answers) -> Floats:
        """Score of each task, [n], whose mean is the metric for comparing models in the pipeline."""
        return linearised(*self.sums(gold, answers))

    def rows(self, gold: Gold, answers: Answers, split: str = "") -> Rows:
        """Rows of a table.

        Args:
            gold: gold of the tasks; may be empty for an aggregation.
            answers: answers to these tasks.
            split: "training" or "held-out" for the answers of a model.
        """
        raise NotImplementedError

    def rows_of_known(self, gold: Gold, answers: Answers) -> Rows:
        """Rows of a table on the tasks with known gold; gold and answers are arrays of all tasks, [N] each."""
        arrays: tuple[Any, Any] = gold, answers
        known = self.known(gold)
        return self.rows(*(values[known] for values in arrays))


def linearised(totals: Floats, weights: Floats, num_tasks: int = 1) -> Floats:
    """Scores whose mean is the ratio of two sums, with the spread of the ratio when tasks are resampled.

    A task counts with its contribution beyond its share (the ratio estimator of survey sampling).

    Args:
        totals: contribution of each task to the numerator, [..., n].
        weights: contribution of each task to the denominator, [..., n].
        num_tasks: number of tasks that a contribution is about.
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
    """Scores of exported models, for comparison by the Evaluator.

    Args:
        scoring: scoring of the kind of label.
        models: name -> folder of the SavedModel.
        gold: gold of the n predicted tasks.
        answers: answers of each model.
        further: further scores of each model, by name.

    Returns:
        For each model, `tasks` (n), the scores of `Scoring.score` and `further`, and `by_task`.

    Raises:
        ValueError: answers that cannot be scored; names the model's folder.
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
