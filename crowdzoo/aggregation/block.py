"""Block: some tasks with all of their annotations, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.annotations import Annotations

__all__ = ["Block", "blocks_of", "checked_gold", "whole_block"]

MAX_ANNOTATIONS = 1_000_000
MAX_CELLS = 2**23  # of the [K, T] work arrays: 64 MiB each


class Block:
    """Some tasks with all of their annotations, as columns of codes; what one call of a kernel works on.

    A value: nothing changes it. It pickles to its five arrays, so it may cross from worker to worker.

    Args:
        task_ids: task code of each annotation, int [A], in any order. All annotations of a task belong in one block.
        annotator_ids: annotator codes, int [A].
        labels: class codes, int [A].
        tasks: the codes of the block's tasks, int [T], ascending, each once. May hold tasks without annotations.
            Default: those in `task_ids`.
        gold: known class code of each of `tasks`, int [T], -1 where unknown. Default: all unknown.

    Raises:
        DataError: lengths differ, a code is negative, or an annotation's task is not in `tasks`.
    """

    def __init__(
        self,
        task_ids: ArrayLike,
        annotator_ids: ArrayLike,
        labels: ArrayLike,
        tasks: ArrayLike | None = None,
        gold: ArrayLike | None = None,
    ):
        self.task_ids: NDArray[np.int64] = np.asarray(task_ids, np.int64)
        self.annotator_ids: NDArray[np.int64] = np.asarray(annotator_ids, np.int64)
        self.labels: NDArray[np.int64] = np.asarray(labels, np.int64)
        self.tasks: NDArray[np.int64] = np.unique(self.task_ids) if tasks is None else np.asarray(tasks, np.int64)
        self.gold: NDArray[np.int64] | None = None if gold is None else np.asarray(gold, np.int64)
        columns = {"task_ids": self.task_ids, "annotator_ids": self.annotator_ids, "labels": self.labels}
        for name, column in columns.items():
            if column.shape != self.task_ids.shape or column.ndim != 1:
                raise DataError(f"A block's columns are 1-d, of one length. Received: {name} of shape {column.shape}.")
            if column.size and column.min() < 0:
                raise DataError(
                    f"Codes count from 0; a missing annotation has no row. Received: {column.min()} in {name}."
                )
        if self.tasks.size and (self.tasks[0] < 0 or (np.diff(self.tasks) <= 0).any()):
            raise DataError("The tasks of a block are ascending codes from 0, each once.")
        if self.gold is not None and self.gold.shape != self.tasks.shape:
            raise DataError(f"gold has one class per task, {self.tasks.shape}. Received: {self.gold.shape}.")
        if self.task_ids.size and (
            not self.tasks.size or not np.array_equal(self.tasks.take(self.index, mode="clip"), self.task_ids)
        ):
            raise DataError("A block has annotations of a task that is not among its tasks.")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "index"}

    def __len__(self) -> int:
        return len(self.task_ids)

    def __repr__(self) -> str:
        return f"Block({len(self.tasks)} tasks, {len(self)} annotations)"

    @cached_property
    def index(self) -> NDArray[np.intp]:
        """Row of each annotation's task in `tasks`, [A]."""
        return np.searchsorted(self.tasks, self.task_ids)

    def said(self, num_annotators: int, num_classes: int) -> NDArray[np.int64]:
        """Who said what as one number, `annotator * K + label`, [A].

        Raises:
            DataError: an annotator or a label beyond the given numbers.
        """
        if len(self) and (self.annotator_ids.max() >= num_annotators or self.labels.max() >= num_classes):
            raise DataError(
                f"A block has annotator {self.annotator_ids.max()} and class {self.labels.max()}, but there are "
                f"{num_annotators} annotators and {num_classes} classes (codes count from 0)."
            )
        return self.annotator_ids * num_classes + self.labels

    def clamped(self, posteriors: NDArray[np.float64]) -> NDArray[np.float64]:
        """`posteriors` [T, K] with certainty where the class is known; a new array where anything changes."""
        if self.gold is None or not (self.gold >= 0).any():
            return posteriors
        known = np.flatnonzero(self.gold >= 0)
        posteriors = posteriors.copy()
        posteriors[known] = 0.0
        posteriors[known, self.gold[known]] = 1.0
        return posteriors

    @property
    def informed(self) -> NDArray[np.bool_]:
        """Tasks that carry information: annotated, or of known class; [T]."""
        informed = np.bincount(self.index, minlength=len(self.tasks)) > 0
        return informed if self.gold is None else informed | (self.gold >= 0)


def blocks_of(
    annotations: Annotations, gold: NDArray[np.int64] | None = None, max_annotations: int | None = None
) -> Iterator[Block]:
    """Cuts a table of annotations into blocks that cover every task, also those without annotations.

    Args:
        annotations: the table, kind classification.
        gold: known class codes [N], -1 where unknown (see `checked_gold`).
        max_annotations: most annotations a block (a task with more gets a block of its own). Default: what keeps the
            kernels' work arrays, 8 K bytes a task, near 64 MiB each, or near the parameters' size if that is more.

    Yields:
        Blocks in ascending order of tasks; last one block of the tasks without annotations, if there are any.
    """
    num_classes, num_annotators = max(annotations.num_classes, 1), annotations.num_annotators
    if max_annotations is None:
        max_annotations = max(min(MAX_ANNOTATIONS, MAX_CELLS // num_classes), num_annotators * num_classes)
    for task_ids, annotator_ids, labels in annotations.blocks(max_annotations=max_annotations):
        tasks = np.unique(task_ids)
        yield Block(task_ids, annotator_ids, labels, tasks, None if gold is None else gold[tasks])
    empty = np.flatnonzero(np.bincount(annotations.task_ids, minlength=annotations.num_tasks) == 0)
    if empty.size:
        none = np.empty(0, np.int64)
        yield Block(none, none, none, empty, None if gold is None else gold[empty])


def whole_block(annotations: Annotations, gold: ArrayLike | None = None) -> Block:
    """All tasks as one block, for algorithms that look at the whole table at once; `block.tasks` is 0 ... N-1.

    Args:
        annotations: the table, kind classification.
        gold: known class codes [N], -1 where unknown.

    Raises:
        DataError: `gold` does not fit.
    """
    known = checked_gold(gold, annotations.num_tasks, annotations.num_classes)
    tasks = np.arange(annotations.num_tasks)
    return Block(annotations.task_ids, annotations.annotator_ids, annotations.labels, tasks, known)


def checked_gold(gold: ArrayLike | None, num_tasks: int, num_classes: int) -> NDArray[np.int64] | None:
    """Known classes as int64 [N], -1 where unknown; None stays None.

    Raises:
        DataError: not one integer class code (or -1) per task.
    """
    if gold is None:
        return None
    codes = np.asarray(gold)
    if codes.shape != (num_tasks,) or (codes.size and codes.dtype.kind not in "iu"):
        raise DataError(
            f"gold is one integer class code per task, shape ({num_tasks},), -1 where unknown. "
            f"Received: shape {codes.shape}, {codes.dtype}."
        )
    codes = codes.astype(np.int64)
    wrong = np.flatnonzero((codes < -1) | (codes >= num_classes))
    if wrong.size:
        raise DataError(
            f"gold holds class codes 0 to {num_classes - 1}, or -1 where unknown. "
            f"Received: {codes[wrong[0]]} for task {wrong[0]}"
            + (f" and {wrong.size - 1:,} more." if wrong.size > 1 else ".")
        )
    return codes
