"""Comparison of a model's answers with annotators', for pages of kinds that can score two answers to a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.kinds.page_parts import Columns, as_lists
from crowdzoo.kinds.scoring import Codes, Flags, Floats, Sums, linearised
from crowdzoo.quality.figures import NORMAL_975, interval, means, ratio

MOST_LISTED = 100  # tasks on the page on which aggregate and model differ


@dataclass(frozen=True, eq=False)
class ModelAnswers:
    """Answers of a model, aggregated labels, and answers of annotators, as arrays of the same form.

    Attributes:
        metric: name of the score, such as "Dice coefficient".
        sums: scores of n pairs of answers; see `Scoring.sums`.
        model: the model's answers to the tasks, [N].
        known: which tasks have an answer of the model, bool [N].
        labels: aggregated labels, [N].
        tasks: tasks of the annotators' answers, [A].
        answers: answers of the annotators, [A].
        words: formats an answer to a task (given by its code) for a table.
        is_error: whether scores are negative errors.
    """

    metric: str
    sums: Callable[[Any, Any], Sums]
    model: NDArray[Any]
    known: Flags
    labels: NDArray[Any]
    tasks: Codes
    answers: NDArray[Any]
    words: Callable[[int, Any], object]
    is_error: bool = False

    def compare(self) -> tuple[list[int], Columns, Columns]:
        """Compare answers to tasks that have a prediction and annotations.

        Returns:
            Codes of the tasks on which model and aggregated label differ, worst first; their table; and the table of
            scores of model, labels and annotators with 95 % intervals.
        """
        size = len(self.labels)
        counts = np.bincount(self.tasks, minlength=size)
        rows = np.flatnonzero(self.known[self.tasks])
        rows = rows[np.argsort(self.tasks[rows], kind="stable")]
        tasks = self.tasks[rows]
        # compare each answer with the next one to the same task, and the last with the first
        first, last = (np.searchsorted(tasks, tasks, side) for side in ("left", "right"))
        after = np.arange(len(rows)) + 1
        following, several = np.where(after < last, after, first), last - first > 1
        own, others = self.answers[rows], self.answers[rows[following]]
        both = np.flatnonzero(self.known & (counts > 0))
        parts = {
            "model and aggregated labels": self._means(both, self.labels[both], self.model[both]),
            "annotators and aggregated labels": self._means(tasks, self.labels[tasks], own),
            "model and annotators": self._means(tasks, own, self.model[tasks]),
            "two annotators": self._means(tasks[several], own[several], others[several]),
        }
        (totals, weights), people = parts["model and aggregated labels"], ratio(*parts["two annotators"])
        differ = np.flatnonzero(totals < (0 if self.is_error else weights) - 1e-9)
        scores = ratio(totals, weights)
        worst = differ[np.argsort(scores[differ], kind="stable")]
        listed = as_lists(
            annotations=counts[worst],
            label=[self.words(task, self.labels[task]) for task in worst.tolist()],
            predicted=[self.words(task, self.model[task]) for task in worst.tolist()],
            score=np.abs(scores[worst]),
            people=np.abs(people[worst]),
        )
        ends = np.array([self._interval(*sums) for sums in parts.values()])
        numbers = [int(np.isfinite(sums[1]).sum()) for sums in parts.values()]
        table = as_lists(compared=[*parts], tasks=numbers, **interval("score", *ends.T))
        return worst.tolist(), listed, table

    def _means(self, tasks: Codes, gold: NDArray[Any], answers: NDArray[Any]) -> Sums:
        """Mean contribution of each task's pairs to the two sums, [N] each; NaN for tasks without pairs."""
        size, sums = len(self.labels), self.sums(gold, answers) if len(tasks) else (np.zeros(0), np.zeros(0))
        totals, weights = (means(tasks, part, size) for part in sums)
        return totals, weights

    def _interval(self, totals: Floats, weights: Floats) -> list[float]:
        """Score over all tasks as a ratio of sums, with its interval, taking tasks as a random sample."""
        totals, weights = (part[np.isfinite(part)] for part in (totals, weights))
        if not weights.sum():
            return [np.nan] * 3
        value, number = float(totals.sum() / weights.sum()), len(totals)
        spread = np.std(linearised(totals, weights), ddof=1) if number > 1 else np.nan
        half = NORMAL_975 * float(spread) / np.sqrt(number)
        most = np.inf if self.is_error else 1.0
        value = abs(value)
        return [value, max(value - half, 0.0), min(value + half, most)]
