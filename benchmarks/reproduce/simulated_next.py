"""simulate_next: what choosing the next annotation saves, on annotations that are there already."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.checks.constraints import COUNT, SEED, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.quality.next_annotation import SURE, information_gain, sure_tasks

__all__ = ["SimulatedNext", "simulate_next"]


@dataclass(frozen=True)
class SimulatedNext:
    """Two ways of asking for the same annotations, run by run.

    Attributes:
        target: the accuracy that both ways have to reach: that with all annotations, less the margin.
        all_annotations: number of annotations of the whole table.
        random: annotations until the target, asked for evenly and at random, int64 [runs].
        chosen: annotations until the target, asked for by information gain, int64 [runs].
        stopped: annotations after which all tasks were sure, or nothing was left to ask, int64 [runs]. The choice goes
            on from there if it has not reached the target.
        stopped_accuracy: accuracy there, [runs].
        random_accuracy: accuracy of the random way with as many annotations, [runs].
    """

    target: float
    all_annotations: int
    random: NDArray[np.int64]
    chosen: NDArray[np.int64]
    stopped: NDArray[np.int64]
    stopped_accuracy: NDArray[np.float64]
    random_accuracy: NDArray[np.float64]

    def __repr__(self) -> str:
        saved, low, high = self.interval()
        return (
            f"<SimulatedNext: {len(self.random)} runs, {saved:.0%} of the annotations saved ({low:.0%} to {high:.0%})>"
        )

    @property
    def saved(self) -> NDArray[np.float64]:
        """Share of the random way's annotations that the choice saves in each run, [runs]; below 0 it costs more."""
        return 1 - self.chosen / self.random

    def interval(self) -> tuple[float, float, float]:
        """Mean of `saved`, and the ends of its 95 % interval over the runs (normal); of one run they are NaN.

        The upper end is at most 1: no more than all annotations can be saved.
        """
        mean, runs = float(self.saved.mean()), len(self.saved)
        half = 1.96 * float(self.saved.std(ddof=1)) / np.sqrt(runs) if runs > 1 else float("nan")
        return mean, mean - half, min(mean + half, 1.0) if runs > 1 else half


@checked(runs=COUNT, seed=SEED, share=Number(0, 1, above=True), margin=Number(0, 1), sure=Number(0, 1, above=True))
def simulate_next(
    annotations: Annotations,
    gold: ArrayLike,
    aggregator: Any,
    *,
    runs: int = 20,
    share: float = 0.1,
    margin: float = 0.01,
    sure: float = SURE,
    seed: int = 0,
) -> SimulatedNext:
    """Replays a table of annotations twice: in random order, and by `information_gain`.

    Both ways begin with the same annotation of each task, drawn at random. Then they ask in rounds for as many
    annotations as `share` of the tasks, and fit the aggregator after each round. The random way asks evenly: no task
    gets its next annotation before all others have as many. The other asks for the annotations with the highest gain,
    one a task in a round, among those of the table that are left, and passes over tasks that are sure while others are
    left. Gold is used to measure accuracy only.

    Args:
        annotations: N tasks of kind classification, each with several annotations.
        gold: class codes, int [N], -1 where unknown.
        aggregator: an aggregator for classes whose result has confusion matrices.
        runs: number of runs; each draws an order of its own, which both ways share.
        share: annotations in a round, as a share of the tasks.
        margin: how much less than the accuracy with all annotations the target is.
        sure: see `sure_tasks`.
        seed: seed of the draws.

    Returns:
        How many annotations each way took until the target. Both count whole rounds, and the first one that reaches it.

    Raises:
        DataError: another kind, no gold, or a method without confusion matrices.
    """
    if not annotations.label_kind.one_class:
        raise DataError(f"simulate_next is for kind classification, got {annotations.kind!r}.")
    codes = np.asarray(gold)
    whole = _fit(aggregator, annotations)
    if whole.confusions is None:
        raise DataError(f"{whole.method} has no confusion matrices, so it does not say which annotator to ask.")
    target = whole.expected_accuracy(codes) - margin
    batch = max(1, round(share * annotations.num_tasks))
    rows: list[tuple[int, int, int, float, float]] = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        order = _even_order(annotations, rng)
        start = int((annotations.redundancy > 0).sum())
        way = [(number, _accuracy(aggregator, annotations, order[:number], codes)[0])
               for number in (*range(start, len(order), batch), len(order))]  # fmt: skip
        chosen, stop = _chosen_way(aggregator, annotations, order[:start], codes, batch, sure, rng)
        last, accuracy = chosen[stop]
        numbers, accuracies = np.array(way).T
        rows.append(
            (_until(way, target, len(order)), _until(chosen, target, len(order)), last, accuracy,
             float(np.interp(last, numbers, accuracies)))
        )  # fmt: skip
    random, asked, stopped, stopped_accuracy, random_accuracy = (np.array(column) for column in zip(*rows, strict=True))
    return SimulatedNext(target, len(annotations), random, asked, stopped, stopped_accuracy, random_accuracy)


def _chosen_way(
    aggregator: Any,
    annotations: Annotations,
    first: NDArray[np.int64],
    gold: NDArray[np.int64],
    batch: int,
    sure: float,
    rng: np.random.Generator,
) -> tuple[list[tuple[int, float]], int]:
    """Numbers of annotations and accuracies, round by round, and the round in which all tasks were sure first."""
    asked = np.zeros(len(annotations), bool)
    asked[first] = True
    way: list[tuple[int, float]] = []
    stop = None
    while True:
        accuracy, result = _accuracy(aggregator, annotations, np.flatnonzero(asked), gold)
        way.append((int(asked.sum()), accuracy))
        left = np.flatnonzero(~asked & ~sure_tasks(result, sure)[annotations.task_ids])
        if not len(left):
            stop = len(way) - 1 if stop is None else stop
            left = np.flatnonzero(~asked)
        if not len(left):
            return way, stop if stop is not None else len(way) - 1
        tasks, who = annotations.task_ids[left], annotations.annotator_ids[left]
        gains = information_gain(result.posteriors[tasks], result.confusions[who])
        ranked = np.lexsort((rng.random(len(left)), -gains))
        _, best = np.unique(tasks[ranked], return_index=True)  # one a task
        asked[left[ranked[np.sort(best)[:batch]]]] = True


def _even_order(annotations: Annotations, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows in random order, such that no task has its next one before all others have as many."""
    shuffled = rng.permutation(len(annotations))
    tasks = annotations.task_ids[shuffled]
    by_task = np.argsort(tasks, kind="stable")
    counts = np.bincount(tasks, minlength=annotations.num_tasks)
    turn = np.empty(len(tasks), np.int64)
    turn[by_task] = np.arange(len(tasks)) - np.repeat(np.cumsum(counts) - counts, counts)
    return shuffled[np.argsort(turn, kind="stable")]


def _accuracy(
    aggregator: Any, annotations: Annotations, rows: NDArray[np.int64], gold: NDArray[np.int64]
) -> tuple[float, Any]:
    result = _fit(aggregator, annotations.select_rows(rows))
    return result.expected_accuracy(gold), result


def _fit(aggregator: Any, annotations: Annotations) -> Any:
    with warnings.catch_warnings():  # of few annotations, on the way to many
        warnings.simplefilter("ignore")
        return aggregator.fit(annotations)


def _until(way: list[tuple[int, float]], target: float, whole: int) -> int:
    """Annotations of the first round that reaches the target; all of them where none does."""
    return next((number for number, accuracy in way if accuracy >= target), whole)
