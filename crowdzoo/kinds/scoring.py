"""Scoring: how answers to tasks are compared with gold, in one place for each kind of label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import DataError

Sums = tuple[NDArray[np.float64], NDArray[np.float64]]
Rows = list[tuple[str, str]]


class Scoring(ABC):
    """How answers are compared with gold.

    Commands, `compare` and the pipeline's Evaluator all count correctness here. Except in `known`, gold and answers are
    those of n tasks whose gold is known; their form is the kind's own.

    Attributes:
        titles: names of the numbers of `score` that `compare` shows -> their titles in its table.
    """

    titles: ClassVar[Mapping[str, str]] = {}

    def known(self, gold: Any) -> NDArray[np.bool_]:
        """Which tasks have gold, bool [N]; texts that are not empty, unless the kind has others."""
        return np.asarray(gold != "", bool)

    @abstractmethod
    def score(self, gold: Any, answers: Any) -> dict[str, Any]:
        """Numbers by name; `Kind.metric` is among the names.

        Raises:
            DataError: answers that cannot be scored.
        """

    @abstractmethod
    def sums(self, gold: Any, answers: Any) -> Sums:
        """What each task adds to the sum of scores that methods are compared by, and to that of weights, [n] each."""

    def by_task(self, gold: Any, answers: Any) -> NDArray[np.float64]:
        """A score of each task, [n], whose mean is the metric by which the pipeline compares models."""
        return linearised(*self.sums(gold, answers))

    def rows(self, gold: Any, answers: Any, split: str = "") -> Rows:
        """Rows of a table.

        Args:
            gold: of the tasks; of an aggregation there may be none.
            answers: to these tasks.
            split: "training" or "held-out" for the answers of a model.
        """
        raise NotImplementedError


def linearised(totals: NDArray[np.float64], weights: NDArray[np.float64], num_tasks: int = 1) -> NDArray[np.float64]:
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
    scores: NDArray[np.float64] = ratio + num_tasks * (totals - ratio * weights) / mean
    return scores


def scored_models(
    scoring: Scoring,
    models: Mapping[str, str],
    gold: Any,
    answers: Mapping[str, Any],
    further: Mapping[str, Mapping[str, float | None]] | None = None,
) -> dict[str, dict[str, Any]]:
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
        scores[name] = {"tasks": len(gold), **numbers, **more, "by_task": scoring.by_task(gold, answers[name])}
    return scores
