"""Ratings: annotations sorted by task, the input of all measures of agreement."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import CLASSIFICATION, REGRESSION, require_annotations, require_kind
from crowdzoo.errors import DataError

Codes = NDArray[np.int32] | NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Ratings:
    """Annotations sorted by task; only equality of values matters, so numbers are also represented by codes.

    With A annotations, N tasks and V distinct values (the K classes, or the distinct numbers of a regression):

    Attributes:
        starts: rows of task t are `starts[t]:starts[t + 1]`, int64 [N + 1].
        annotator_ids: annotator codes, int64 [A].
        codes: value codes, int32 [A], below `num_values`.
        num_values: V.
        values: the numbers of the codes, float64 [V], ascending; empty for classes.
    """

    starts: NDArray[np.int64]
    annotator_ids: NDArray[np.int64]
    codes: NDArray[np.int32]
    num_values: int
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of annotations per task, int64 [N]."""
        return np.diff(self.starts)

    @cached_property
    def tasks(self) -> NDArray[np.int64]:
        """Task code of each row, int64 [A]."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def same(self) -> NDArray[np.int32]:
        """Number of annotations of the task with the value of each row, itself included, int32 [A]."""
        cells = self.tasks * self.num_values + self.codes
        _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
        return counts.astype(np.int32)[place]

    @property
    def votes(self) -> csr_matrix:
        """Number of annotations by task and value, a sparse matrix [N, V]."""
        return csr_matrix((np.ones(len(self.codes)), self.codes, self.starts), (len(self.sizes), self.num_values))

    @cached_property
    def pairable(self) -> Ratings:
        """The tasks with at least two annotations; others carry no information on agreement."""
        if (self.sizes >= 2).all():
            return self
        kept = self.sizes[self.sizes >= 2]
        rows = np.repeat(self.sizes >= 2, self.sizes)
        starts = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        return Ratings(starts, self.annotator_ids[rows], self.codes[rows], self.num_values, self.values)

    def task_sums(self, of_rows: NDArray[np.generic]) -> NDArray[np.float64]:
        """Sums over the rows of each task, float64 [N]."""
        return self.reduce(np.add, of_rows.astype(np.float64, copy=False))

    def most_votes(self) -> NDArray[np.int64]:
        """Number of annotations with each task's most frequent value, int64 [N]."""
        return self.reduce(np.maximum, self.same).astype(np.int64)

    def reduce(self, function: np.ufunc, of_rows: NDArray[Number]) -> NDArray[Number]:
        """Applies a ufunc such as `np.minimum` to each task's rows, [N]; 0 for tasks without rows."""
        result = np.zeros(len(self.sizes), of_rows.dtype)
        some = self.sizes > 0  # reduceat would give something for empty segments
        if some.any():
            result[some] = function.reduceat(of_rows, self.starts[:-1][some])
        return result

    def others_agree(
        self, groups: NDArray[np.int64 | np.int32], number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Computes the agreement of groups of rows with the task's other annotations.

        Args:
            groups: group of each row, int [A].
            number: number of groups, G.

        Returns:
            Number of rows whose task has other annotations, int64 [G], and the mean share of equal ones among these,
            [G]; 0 for groups without such rows.
        """
        peers = np.repeat(self.sizes, self.sizes) - 1
        shared = np.bincount(groups[peers > 0], minlength=number)
        agreeing = np.bincount(groups, (self.same - 1) / np.maximum(peers, 1), minlength=number)
        return shared, agreeing / np.maximum(shared, 1)


def ratings_of(annotations: Annotations, what: str, regression: bool = False) -> Ratings:
    """Converts annotations to ratings, with 20 more bytes per annotation if they are not sorted by task.

    Args:
        annotations: kind classification, or also regression.
        what: name of the measure, for the error.
        regression: whether to accept numbers.

    Raises:
        DataError: wrong kind, or several labels by one annotator for a task.
    """
    require_annotations(annotations, what)
    require_kind(annotations.label_kind, what, CLASSIFICATION, *([REGRESSION] if regression else []))
    annotations.check_no_repeats(what)
    none: tuple[NDArray[Any], ...] = (annotations.task_ids, annotations.annotator_ids, annotations.labels)
    task_ids, annotator_ids, labels = next(annotations.blocks(max_annotations=max(len(annotations), 1)), none)
    sizes = np.bincount(task_ids, minlength=annotations.num_tasks)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if annotations.classes is not None:
        return Ratings(starts, annotator_ids, labels.astype(np.int32), annotations.num_classes)
    values, codes = np.unique(labels, return_inverse=True)
    return Ratings(starts, annotator_ids, codes.astype(np.int32), len(values), values)


def pairable_ratings(annotations: Annotations, what: str, regression: bool = False) -> Ratings:
    """Converts annotations of tasks with at least two of them to ratings, as measures of agreement need.

    Args:
        annotations: as in `ratings_of`.
        what: name of the measure, for the error.
        regression: whether to accept numbers.

    Raises:
        DataError: wrong kind, or no task has two annotations.
    """
    ratings = ratings_of(annotations, what, regression).pairable
    if not len(ratings.codes):
        raise DataError(f"{what} is not defined: no task has two annotations.")
    return ratings
