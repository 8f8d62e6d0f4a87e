"""Rankings: lists of tasks that annotators ordered, best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError, short_repr

ANSWERS = np.array(["left", "right", "equal"], object)


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """Ordered lists of tasks: L lists with M places in total, N tasks, R annotators.

    Attributes:
        list_ids: list of each place, int64 [M], 0 to L - 1; places of a list are contiguous, the best task first and
            tasks without a rank last.
        task_ids: task codes, int64 [M].
        ranked: whether the task has a rank, bool [M]; a task without one was shown, and is worse than all ranked ones.
        annotator_ids: annotator of each list, int64 [L].
        tasks: names [N].
        annotators: names [R].
        lists: names of the lists [L].
    """

    list_ids: NDArray[np.int64]
    task_ids: NDArray[np.int64]
    ranked: NDArray[np.bool_]
    annotator_ids: NDArray[np.int64]
    tasks: NDArray[Any]
    annotators: NDArray[Any]
    lists: NDArray[Any]

    def __len__(self) -> int:
        return len(self.annotator_ids)

    def __repr__(self) -> str:
        return f"<Rankings: {len(self):,} lists, {len(self.tasks):,} tasks, {len(self.annotators):,} annotators>"

    @classmethod
    def from_arrays(
        cls, task: ArrayLike, annotator: ArrayLike, rank: ArrayLike, lists: ArrayLike | None = None
    ) -> Rankings:
        """Creates rankings from columns with one row per place.

        Args:
            task: names, [M].
            annotator: names, [M].
            rank: numbers, [M], the best has the lowest; NaN if the task was shown and not ranked.
            lists: names of the lists, [M]; None: one list per annotator.

        Raises:
            DataError: columns of different lengths, or a list with two annotators, fewer than two tasks, no rank, a
                task twice or equal ranks; the message names the row (from 0).
        """
        columns = [np.asarray(column) for column in (task, annotator, annotator if lists is None else lists)]
        numbers = np.asarray(rank, dtype=np.float64)
        if any(column.shape != numbers.shape or column.ndim != 1 for column in columns):
            raise DataError(
                f"rankings: columns must have the same length, got {[len(column) for column in (*columns, numbers)]}."
            )
        (tasks, task_ids), (annotators, annotator_ids), (names, list_ids) = (
            np.unique(column, return_inverse=True) for column in columns
        )
        for row, column, reason in find_problems(task_ids, annotator_ids, list_ids, numbers):
            value = {"task": columns[0], "rank": numbers, "list": columns[2]}[column][row].item()
            raise DataError(f"rankings: row {row}, column {column!r}: {short_repr(value)} {reason}")
        order = np.lexsort((task_ids, numbers, list_ids))  # NaN comes last
        first = np.zeros(len(names), np.int64)
        first[list_ids] = annotator_ids
        return cls(list_ids[order], task_ids[order], ~np.isnan(numbers[order]), first, tasks, annotators, names)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each list starts, and the end of the last one, int64 [L + 1]."""
        return np.searchsorted(self.list_ids, np.arange(len(self) + 1))

    def preferences(self) -> Annotations:
        """Converts the rankings to pairs: each ranked task of a list against all that come after it.

        A list of m tasks gives up to m (m - 1) / 2 pairs, which are not independent: a method that learns from them is
        overconfident. The side of a task is independent of its quality.
        """
        starts, before, after = self.starts, [], []
        for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            first, second = np.triu_indices(end - start, 1)
            kept = self.ranked[start + first]
            before.append(start + first[kept])
            after.append(start + second[kept])
        better, worse = (
            np.concatenate(parts).astype(np.int64) if parts else np.empty(0, np.int64) for parts in (before, after)
        )
        who = self.annotator_ids[self.list_ids[better]]
        better, worse = self.task_ids[better], self.task_ids[worse]
        low, high = np.minimum(better, worse), np.maximum(better, worse)
        turned = (low + high) % 2 == 1
        left, right = np.where(turned, high, low), np.where(turned, low, high)
        return Annotations(
            "preference", left, who, np.where(left == better, 0, 1), self.tasks, self.annotators, ANSWERS,
            right_ids=right,
        )  # fmt: skip


def find_problems(
    task_ids: NDArray[np.int64],
    annotator_ids: NDArray[np.int64],
    list_ids: NDArray[np.int64],
    ranks: NDArray[np.float64],
) -> list[tuple[int, str, str]]:
    """Finds errors in lists: rows, columns (task, rank or list) and reasons, in the order of the rows.

    Args:
        task_ids: task codes, [M].
        annotator_ids: annotator codes, [M].
        list_ids: list codes, [M].
        ranks: [M], NaN if missing.
    """
    problems: dict[int, tuple[str, str]] = {}

    def repeated(values: NDArray[Any], among: NDArray[np.bool_], column: str, reason: str) -> None:
        rows = np.flatnonzero(among)
        order = rows[np.lexsort((rows, values[rows], list_ids[rows]))]
        same = (np.diff(list_ids[order]) == 0) & (np.diff(values[order]) == 0)
        for row in order[1:][same].tolist():
            problems.setdefault(row, (column, reason))

    everything = np.ones(len(ranks), bool)
    repeated(task_ids, everything, "task", "is in its list twice. Keep one row.")
    repeated(ranks, ~np.isnan(ranks), "rank", "is the rank of two tasks of a list. Ranks in a list must differ.")
    number = int(list_ids.max(initial=-1)) + 1
    first = np.full(number, len(ranks))
    np.minimum.at(first, list_ids, np.arange(len(ranks)))
    for row in np.flatnonzero(annotator_ids != annotator_ids[first[list_ids]]).tolist():
        problems.setdefault(row, ("list", "is a list of two annotators. Give each a separate list."))
    for row in first[np.bincount(list_ids, minlength=number) < 2].tolist():
        problems.setdefault(row, ("list", "is a list of one task: there is nothing to compare. Remove it."))
    for row in first[np.bincount(list_ids, ~np.isnan(ranks), number) < 1].tolist():
        problems.setdefault(row, ("list", "is a list without a rank. Remove it, or say which task is the best."))
    return [(row, *problems[row]) for row in sorted(problems)]
