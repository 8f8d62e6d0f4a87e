"""Ratings: annotations in the order of their tasks, as every measure of agreement reads them."""

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
    """Annotations sorted by task; what equal values they hold is all that counts, so numbers are codes too.

    With A annotations, N tasks and V distinct values (the K classes, or the distinct numbers of a regression):

    Attributes:
        starts: rows of task t are `starts[t]:starts[t + 1]`, int64 [N + 1].
        annotator_ids: annotator codes, int64 [A].
        codes: value codes, int32 [A], below `num_values`.
        num_values: V.
        values: the numbers behind the codes, float64 [V], ascending; empty for classes.
    """

    starts: NDArray[np.int64]
    annotator_ids: NDArray[np.int64]
    codes: NDArray[np.int32]
    num_values: int
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Annotations of each task, int64 [N]."""
        return np.diff(self.starts)

    @cached_property
    def tasks(self) -> NDArray[np.int64]:
        """Task code of each row, int64 [A]."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def same(self) -> NDArray[np.int32]:
        """How many annotations of its task have the value of this one, itself included, int32 [A]."""
        cells = self.tasks * self.num_values + self.codes
        _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
        return counts.astype(np.int32)[place]

    @property
    def votes(self) -> csr_matrix:
        """How often each task has each value, a sparse matrix [N, V]."""
        return csr_matrix((np.ones(len(self.codes)), self.codes, self.starts), (len(self.sizes), self.num_values))

    @cached_property
    def pairable(self) -> Ratings:
        """Only the tasks with two annotations or more: the others say nothing about agreement."""
        if (self.sizes >= 2).all():
            return self
        kept = self.sizes[self.sizes >= 2]
        rows = np.repeat(self.sizes >= 2, self.sizes)
        starts = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        return Ratings(starts, self.annotator_ids[rows], self.codes[rows], self.num_values, self.values)

    def task_sums(self, of_rows: NDArray[np.generic]) -> NDArray[np.float64]:
        """Sums over each task's rows, float64 [N]."""
        return self.reduce(np.add, of_rows.astype(np.float64, copy=False))

    def most_votes(self) -> NDArray[np.int64]:
        """Annotations of each task's most frequent value, int64 [N]."""
        return self.reduce(np.maximum, self.same).astype(np.int64)

    def reduce(self, function: np.ufunc, of_rows: NDArray[Number]) -> NDArray[Number]:
        """A ufunc such as `np.minimum` over each task's rows, [N]; 0 for a task without any."""
        result = np.zeros(len(self.sizes), of_rows.dtype)
        some = self.sizes > 0  # reduceat would give something for empty segments
        if some.any():
            result[some] = function.reduceat(of_rows, self.starts[:-1][some])
        return result

    def others_agree(
        self, groups: NDArray[np.int64 | np.int32], number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """How far the other annotations of the task say the same, for groups of rows.

        Args:
            groups: group of each row, int [A].
            number: number of groups, G.

        Returns:
            Rows whose task has other annotations, int64 [G], and the mean share of those that say the same, [G]; 0
            for a group without such rows.
        """
        peers = np.repeat(self.sizes, self.sizes) - 1
        shared = np.bincount(groups[peers > 0], minlength=number)
        agreeing = np.bincount(groups, (self.same - 1) / np.maximum(peers, 1), minlength=number)
        return shared, agreeing / np.maximum(shared, 1)


def ratings_of(annotations: Annotations, what: str, regression: bool = False) -> Ratings:
    """Annotations as ratings; 20 bytes an annotation more where they are not sorted by task yet.

    Args:
        annotations: kind classification, or regression where that is allowed.
        what: the measure, for the error.
        regression: whether numbers are welcome.

    Raises:
        DataError: another kind, or several labels by one annotator for one task.
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
    """Ratings of the tasks with two annotations or more, which are all that a measure of agreement looks at.

    Args:
        annotations: as for `ratings_of`.
        what: the measure, for the error.
        regression: whether numbers are welcome.

    Raises:
        DataError: another kind, or no task has two annotations.
    """
    ratings = ratings_of(annotations, what, regression).pairable
    if not len(ratings.codes):
        raise DataError(f"{what} is not defined: no task has two annotations.")
    return ratings
