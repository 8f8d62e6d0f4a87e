"""Block: some tasks with all of their annotations, as columns sorted by task."""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.engine.loops import compiled, num_threads
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

T = TypeVar("T", bound="Additive")

MIN_ANNOTATIONS = 2**14
MAX_ANNOTATIONS = 2**20
MAX_CELLS = 2**23  # of the [T, K] work arrays: 64 MiB each
NO_GOLD = np.empty(0, np.int64)
FIELDS = ("starts", "annotator_ids", "labels", "tasks", "gold")


class Block:
    """Some tasks with all of their annotations, as columns of codes; the input of one call of a kernel.

    Immutable. A block pickles to its five arrays, so it may be sent between workers. It takes 5 bytes per annotation (8
    for more than 256 classes) and 16 per task.

    Args:
        task_ids: task code of each annotation, int [A], in any order. All annotations of a task must be in one block.
        annotator_ids: annotator codes, int [A].
        labels: class codes, int [A].
        tasks: codes of the block's tasks, int [T], ascending, distinct. May include tasks without annotations. Default:
            those in `task_ids`.
        gold: known class code of each of `tasks`, int [T], -1 where unknown. Default: all unknown.

    Attributes:
        starts: annotations of task t are rows `starts[t]` to `starts[t + 1]`, int64 [T + 1].
        annotator_ids: sorted by task, int32 [A].
        labels: sorted by task, uint8 [A], or int32 if a code is above 255; float64 for ratings.
        tasks: int64 [T].
        gold: int64 [T], or None.

    Raises:
        DataError: lengths differ, a code is negative or beyond 32 bits, or an annotation's task is not in `tasks`.

    Example:
        >>> from crowdzoo.aggregation import Block
        >>> block = Block(task_ids=[1, 0, 1], annotator_ids=[0, 0, 1], labels=[2, 0, 2])
        >>> block.tasks.tolist(), block.starts.tolist()
        ([0, 1], [0, 1, 3])
        >>> block.labels.tolist()  # sorted by task
        [0, 2, 2]
    """

    starts: NDArray[np.int64]
    annotator_ids: NDArray[np.int32]
    labels: NDArray[Any]
    tasks: NDArray[np.int64]
    gold: NDArray[np.int64] | None

    def __init__(
        self,
        task_ids: ArrayLike,
        annotator_ids: ArrayLike,
        labels: ArrayLike,
        tasks: ArrayLike | None = None,
        gold: ArrayLike | None = None,
    ):
        ids, annotators = _checked_codes(task_ids=task_ids, annotator_ids=annotator_ids)
        (label_codes,) = _checked_codes(ids, labels=labels)
        self._fill(ids, annotators, label_codes, tasks, gold)

    @classmethod
    def of_ratings(
        cls, task_ids: ArrayLike, annotator_ids: ArrayLike, ratings: ArrayLike, tasks: ArrayLike | None = None
    ) -> Block:
        """Creates a block whose labels are ratings.

        Args:
            task_ids: see `Block`.
            annotator_ids: see `Block`.
            ratings: finite numbers, [A].
            tasks: see `Block`.

        Raises:
            DataError: as `Block`, or a rating is not finite.
        """
        ids, annotators = _checked_codes(task_ids=task_ids, annotator_ids=annotator_ids)
        numbers = np.asarray(ratings, np.float64)
        if numbers.shape != ids.shape or not np.isfinite(numbers).all():
            raise DataError(f"A block has one finite rating for each of its {len(ids):,} annotations.")
        block = cls.__new__(cls)
        block._fill(ids, annotators, numbers, tasks, None)
        return block

    def _fill(
        self,
        ids: NDArray[np.int64],
        annotators: NDArray[np.int64],
        answers: NDArray[Any],
        tasks: ArrayLike | None,
        gold: ArrayLike | None,
    ) -> None:
        self.tasks = np.unique(ids) if tasks is None else np.asarray(tasks, np.int64)
        self.gold = None if gold is None else np.asarray(gold, np.int64)
        if self.tasks.size and (self.tasks[0] < 0 or (np.diff(self.tasks) <= 0).any()):
            raise DataError("The tasks of a block must be distinct ascending codes from 0.")
        if self.gold is not None and self.gold.shape != self.tasks.shape:
            raise DataError(f"gold has one class per task, {self.tasks.shape}, got {self.gold.shape}.")
        index = _rows(ids, self.tasks)
        num_tasks = len(self.tasks)
        self.starts = np.zeros(num_tasks + 1, np.int64)
        np.cumsum(occurrences(index, num_tasks), out=self.starts[1:])
        label_type: type = np.float64
        if answers.dtype != np.float64:
            label_type = np.uint8 if answers.max(initial=0) < 256 else np.int32
        if (index[1:] >= index[:-1]).all():
            self.annotator_ids, self.labels = annotators.astype(np.int32), answers.astype(label_type)
        else:
            self.annotator_ids, self.labels = np.empty(len(ids), np.int32), np.empty(len(ids), label_type)
            _sort_by_task(index, annotators, answers, self.starts[:-1].copy(), self.annotator_ids, self.labels)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in FIELDS}

    def __len__(self) -> int:
        return len(self.annotator_ids)

    def __repr__(self) -> str:
        return f"Block({len(self.tasks)} tasks, {len(self)} annotations)"

    @cached_property
    def index(self) -> NDArray[np.int64]:
        """Index of each annotation's task in `tasks`, ascending, [A]."""
        return np.repeat(np.arange(len(self.tasks)), np.diff(self.starts))

    @property
    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any], NDArray[np.int64]]:
        """`starts`, `annotator_ids`, `labels` and `gold` for kernels; `gold` is empty if it is None."""
        return self.starts, self.annotator_ids, self.labels, NO_GOLD if self.gold is None else self.gold

    @cached_property
    def _highest(self) -> tuple[int, int]:
        return int(self.annotator_ids.max(initial=-1)), int(self.labels.max(initial=0))

    def check_annotators(self, num_annotators: int) -> None:
        """Raises an error for annotator codes out of range, which kernels do not check.

        Raises:
            DataError: an annotator code is out of range.
        """
        if self._highest[0] >= num_annotators:
            raise DataError(
                f"A block has annotator {self._highest[0]}, but there are {num_annotators} (codes count from 0)."
            )

    def check_codes(self, num_annotators: int, num_classes: int) -> None:
        """Raises an error for annotator or class codes out of range, which kernels do not check.

        Raises:
            DataError: a code is out of range.
        """
        annotator, label = self._highest
        if annotator >= num_annotators or (len(self) and label >= num_classes):
            raise DataError(
                f"A block has annotator {annotator} and class {label}, but there are "
                f"{num_annotators} annotators and {num_classes} classes (codes count from 0)."
            )

    def said(self, num_annotators: int, num_classes: int) -> NDArray[np.int64]:
        """Annotator and label of each annotation as one number, `annotator * K + label`, [A].

        Raises:
            DataError: an annotator or a label is out of range.
        """
        self.check_codes(num_annotators, num_classes)
        return self.annotator_ids.astype(np.int64) * num_classes + self.labels

    def clamped(self, posteriors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns `posteriors` [T, K] with certainty for known classes; a copy if anything changes."""
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
        informed = np.diff(self.starts) > 0
        return informed if self.gold is None else informed | (self.gold >= 0)

    def cut(self, max_annotations: int) -> list[Block]:
        """Splits the block into smaller ones, which share its memory.

        Args:
            max_annotations: maximum number of annotations, and of tasks, per block; a larger task gets its own block.
        """
        blocks, begin, num_tasks = [], 0, len(self.tasks)
        while begin < num_tasks:
            end = int(np.searchsorted(self.starts, self.starts[begin] + max_annotations, side="right")) - 1
            end = max(begin + 1, min(end, num_tasks, begin + max_annotations))
            blocks.append(self._tasks_between(begin, end))
            begin = end
        return blocks

    def _tasks_between(self, begin: int, end: int) -> Block:
        if begin == 0 and end == len(self.tasks):
            return self
        block = Block.__new__(Block)
        rows = slice(self.starts[begin], self.starts[end])
        block.starts = self.starts[begin : end + 1] - self.starts[begin]
        block.annotator_ids, block.labels = self.annotator_ids[rows], self.labels[rows]
        block.tasks = self.tasks[begin:end]
        block.gold = None if self.gold is None else self.gold[begin:end]
        return block


class Additive:
    """Base class of what a block adds to an M-step; `a + b` has the sums of their fields.

    Attributes:
        log_likelihood: log-likelihood of the block under the parameters used for the counts, nats.
        num_annotations: number of annotations counted.
    """

    log_likelihood: float
    num_annotations: int

    def __iadd__(self: T, other: T) -> T:
        for field in fields(self):  # type: ignore[arg-type]  # T is a dataclass
            mine = getattr(self, field.name)
            mine += getattr(other, field.name)  # in place for arrays
            object.__setattr__(self, field.name, mine)  # it may be frozen
        return self

    def __add__(self: T, other: T) -> T:
        names: Any = fields(self)  # type: ignore[arg-type]  # T is a dataclass
        return type(self)(*(getattr(self, field.name) + getattr(other, field.name) for field in names))


def _checked_codes(like: NDArray[np.int64] | None = None, **columns: ArrayLike) -> list[NDArray[np.int64]]:
    """Converts columns of codes to int64, all of the shape of `like` (None: of the first one)."""
    codes = {name: np.asarray(column, np.int64) for name, column in columns.items()}
    shape = next(iter(codes.values())).shape if like is None else like.shape
    for name, column in codes.items():
        if column.shape != shape or column.ndim != 1:
            raise DataError(f"A block's columns must be 1-d, of equal length, got {name} of shape {column.shape}.")
        if column.size and column.min() < 0:
            raise DataError(f"Codes count from 0; a missing annotation has no row; got {column.min()} in {name}.")
        if name != "task_ids" and column.size and column.max() >= 2**31:
            raise DataError(f"Codes of annotators and classes must fit 31 bits, got {column.max()} in {name}.")
    return list(codes.values())


def _rows(task_ids: NDArray[np.int64], tasks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of each task id in `tasks`, [A]."""
    stranger = DataError("A block has annotations of a task that is not among its tasks.")
    if not task_ids.size:
        return task_ids
    if not tasks.size:
        raise stranger
    if tasks[-1] - tasks[0] + 1 == len(tasks):  # no gaps: no search
        if task_ids.min() < tasks[0] or task_ids.max() > tasks[-1]:
            raise stranger
        return task_ids - tasks[0] if tasks[0] else task_ids
    index = np.searchsorted(tasks, task_ids)
    if not np.array_equal(tasks.take(index, mode="clip"), task_ids):
        raise stranger
    return index


def occurrences(codes: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Counts each code from 0 to `number` - 1, [number]; `numpy.bincount` would copy the codes."""
    counts = np.zeros(number, np.int64)
    _count(codes, counts)
    return counts


@compiled()
def _count(codes, counts):  # type: ignore[no-untyped-def]  # for Numba
    for row in range(len(codes)):
        counts[codes[row]] += 1


def sum_rows(x: NDArray[np.float64], ids: NDArray[Any], number: int) -> NDArray[np.float64]:
    """Sums the rows of `x`, [U] or [U, C], by id, [number] or [number, C]."""
    sums = np.zeros((number, *x.shape[1:]))
    width = math.prod(x.shape[1:])
    _add_rows(np.ascontiguousarray(x).reshape(len(x), width), ids, sums.reshape(number, width))
    return sums


@compiled()
def _add_rows(x, ids, sums):  # type: ignore[no-untyped-def]  # for Numba
    for i in range(len(ids)):
        for k in range(x.shape[1]):
            sums[ids[i], k] += x[i, k]


@compiled()
def _sort_by_task(index, annotator_ids, labels, place, annotators_out, labels_out):  # type: ignore[no-untyped-def]  # for Numba
    """Counting sort; `place` has the next free row of each task, [T], and is changed."""
    for row in range(len(index)):
        at = place[index[row]]
        place[index[row]] = at + 1
        annotators_out[at] = annotator_ids[row]
        labels_out[at] = labels[row]


def blocks_of(
    annotations: Annotations, gold: ArrayLike | None = None, max_annotations: int | None = None
) -> list[Block]:
    """Splits annotations into blocks that cover every task, including those without annotations.

    Args:
        annotations: annotations of kind classification.
        gold: known class codes [N], -1 where unknown (see `checked_gold`).
        max_annotations: maximum number of annotations, and of tasks, per block (a larger task gets its own block).
            Default: keeps the kernels' work arrays, 8 K bytes per task, near 64 MiB each, and all cores busy.

    Returns:
        Blocks in ascending order of tasks, which share one copy of the columns.
    """
    if max_annotations is None:
        share = max(MIN_ANNOTATIONS, len(annotations) // (4 * num_threads()))
        max_annotations = min(share, MAX_ANNOTATIONS, max(1, MAX_CELLS // max(annotations.num_classes, 1)))
    return whole_block(annotations, gold).cut(max_annotations)


def whole_block(annotations: Annotations, gold: ArrayLike | None = None) -> Block:
    """Returns all tasks as one block, for algorithms that need the whole table; `block.tasks` is 0 ... N-1.

    Args:
        annotations: annotations of kind classification.
        gold: known class codes [N], -1 where unknown.

    Raises:
        DataError: `gold` does not match the annotations.
    """
    known = checked_gold(gold, annotations.num_tasks, annotations.num_classes)
    tasks = np.arange(annotations.num_tasks)
    return Block(annotations.task_ids, annotations.annotator_ids, annotations.labels, tasks, known)


def checked_gold(gold: ArrayLike | None, num_tasks: int, num_classes: int) -> NDArray[np.int64] | None:
    """Converts known classes to int64 [N], -1 where unknown; None is returned as None.

    Raises:
        DataError: not one integer class code (or -1) per task.
    """
    if gold is None:
        return None
    codes = np.asarray(gold)
    if codes.shape != (num_tasks,) or (codes.size and not np.issubdtype(codes.dtype, np.integer)):
        raise DataError(
            f"gold is one integer class code per task, shape ({num_tasks},), -1 where unknown, "
            f"got shape {codes.shape}, {codes.dtype}."
        )
    codes = codes.astype(np.int64)
    wrong = np.flatnonzero((codes < -1) | (codes >= num_classes))
    if wrong.size:
        raise DataError(
            f"gold holds class codes 0 to {num_classes - 1}, or -1 where unknown, "
            f"got {codes[wrong[0]]} for task {wrong[0]}" + (f" and {wrong.size - 1:,} more." if wrong.size > 1 else ".")
        )
    return codes
