"""AnnotationRows: what `Annotations` does without files: its columns, and rows and tasks that are taken of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.checks.constraints import Number
from crowdzoo.data.label_kinds import LABEL_KINDS, LabelKind, label_kind
from crowdzoo.data.numbers import check_ends, outside_scale, scale_reason
from crowdzoo.errors import SHOWN, BadRow, DataError, Setting, short_repr

if TYPE_CHECKING:
    from typing_extensions import Self

ROW_TYPES = {  # what holds the columns of a row
    "task_ids": np.int64,
    "right_ids": np.int64,
    "annotator_ids": np.int64,
    "labels": None,
    "positions": np.int64,
    "confidence": np.float64,
    "timestamp": np.float64,
    "seconds": np.float64,
}


@dataclass(frozen=True, eq=False, repr=False)
class AnnotationRows:
    """Parent of `Annotations`, which says what its attributes are."""

    kind: str
    task_ids: np.ndarray
    annotator_ids: np.ndarray
    labels: np.ndarray
    tasks: np.ndarray
    annotators: np.ndarray
    classes: np.ndarray | None = None
    positions: np.ndarray | None = None
    confidence: np.ndarray | None = None
    timestamp: np.ndarray | None = None
    num_rejected: int = 0
    repeats: bool = False
    right_ids: np.ndarray | None = None
    classes_sorted: bool = False
    seconds: np.ndarray | None = None
    num_replaced: int = 0
    values: np.ndarray | None = None

    def __post_init__(self) -> None:
        facts = label_kind(self.kind)
        for name, dtype in ROW_TYPES.items():
            self._freeze(name, facts.dtype if name == "labels" else dtype)
        for name in ("tasks", "annotators", "classes"):
            self._freeze(name, None)
        self._freeze("values", object)
        if (self.positions is not None) != facts.has_positions:
            raise ValueError("positions belong to kind='sequence', and only there")
        if (self.right_ids is not None) != facts.has_pairs:
            raise ValueError("right_ids belong to kind='preference', and only there")
        if (self.classes is not None) != facts.has_classes:
            raise ValueError("classes belong to every kind but regression, free-text and region")
        if (self.values is not None) != bool(facts.values):
            raise ValueError("values belong to kinds free-text and region, and only there")
        lengths = {name: len(array) for name in ROW_TYPES if (array := getattr(self, name)) is not None}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"all columns must have the same length, got {lengths}")

    def _freeze(self, name: str, dtype: Any) -> None:
        array = getattr(self, name)
        if array is None:
            return
        view = np.asarray(array, dtype=dtype).view()
        if view.ndim != 1:
            raise ValueError(f"{name} must have one axis, got shape {view.shape}")
        view.flags.writeable = False
        object.__setattr__(self, name, view)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AnnotationRows):
            return NotImplemented
        return self.kind == other.kind and all(
            _same(getattr(self, name), getattr(other, name))
            for name in (*ROW_TYPES, "tasks", "annotators", "classes", "values")
        )

    __hash__ = None  # type: ignore[assignment]  # compared by value

    # === Sizes ===

    def __len__(self) -> int:
        return len(self.task_ids)

    @property
    def num_tasks(self) -> int:
        """N, tasks without annotations included."""
        return len(self.tasks)

    @property
    def num_annotators(self) -> int:
        """R, annotators without annotations included."""
        return len(self.annotators)

    @property
    def num_classes(self) -> int:
        """K; 0 for regression, free texts and regions."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def label_names(self) -> np.ndarray | None:
        """What files hold in the place of codes: names of classes, or values as text; None for regression."""
        if self.values is None:
            return self.classes
        return np.array([str(value) for value in self.values], dtype=object)

    @property
    def label_kind(self) -> LabelKind:
        """What labels of this kind look like."""
        return LABEL_KINDS[self.kind]

    @property
    def redundancy(self) -> np.ndarray:
        """Annotations per task, int64 [N]; for sequences annotators per task, for preferences comparisons."""
        if self.right_ids is not None:
            return np.bincount(np.concatenate([self.task_ids, self.right_ids]), minlength=self.num_tasks)
        if self.label_kind.has_positions:
            tasks, _ = self._pairs
            return np.bincount(tasks, minlength=self.num_tasks)
        return np.diff(self._by_task[1])

    # === Rows of a task ===

    def padded(self, tasks: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Each task's annotations side by side, for batches.

        Args:
            tasks: int [N'] task codes (any order, repeats allowed), or None for all of them.

        Returns:
            annotator_ids: int64 [N', M], -1 as padding; M is the most annotations of one of these tasks.
            labels: int64 [N', M], -1 as padding (float64 with NaN for regression); for sequences
                int64 [N', T, M], T the longest of these tasks, -1 beyond a task's end as well.
        """
        self._check_one_task("A padded table")
        codes = np.arange(self.num_tasks) if tasks is None else np.asarray(tasks, dtype=np.int64)
        order, starts = self._by_task
        counts = starts[codes + 1] - starts[codes]
        row = np.repeat(np.arange(len(codes)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        source = np.repeat(starts[codes], counts) + within
        if order is not None:
            source = order[source]
        annotators, labels = self.annotator_ids[source], self.labels[source]
        if self.positions is None:
            width = int(counts.max(initial=0))
            ids = np.full((len(codes), width), -1, dtype=np.int64)
            ids[row, within] = annotators
            shape: tuple[int, ...] = ids.shape
            cell: tuple[np.ndarray, ...] = (row, within)
        else:
            # a token is a row here, so an annotator's column is the rank of its (task, annotator) pair
            positions = self.positions[source]
            pair, column = np.unique(row * self.num_annotators + annotators, return_inverse=True)
            pair_row = pair // max(self.num_annotators, 1)
            per_row = np.bincount(pair_row, minlength=len(codes))
            rank = np.arange(len(pair)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
            ids = np.full((len(codes), int(per_row.max(initial=0))), -1, dtype=np.int64)
            ids[pair_row, rank] = pair % max(self.num_annotators, 1)
            shape = (len(codes), int(positions.max(initial=-1)) + 1, ids.shape[1])
            cell = (row, positions, rank[column])
        padded = np.full(shape, self.label_kind.missing, dtype=self.labels.dtype)
        padded[cell] = labels
        return ids, padded

    def blocks(self, max_annotations: int = 1 << 20) -> Iterator[tuple[np.ndarray, ...]]:
        """Walks through the annotations by task, in blocks that never cut a task in two.

        Args:
            max_annotations: the most annotations in a block, unless one task alone has more.

        Yields:
            (task_ids, annotator_ids, labels), arrays of one length, sorted by task; for sequences
            (task_ids, annotator_ids, labels, positions), sorted by task, annotator, position.
        """
        Number(1, whole=True).checked("blocks", "max_annotations", max_annotations)
        self._check_one_task("A block")
        order, starts = self._by_task
        columns = [self.task_ids, self.annotator_ids, self.labels]
        if self.positions is not None:
            columns.append(self.positions)
            order = np.lexsort((self.positions, self.annotator_ids, self.task_ids))
        begin, total = 0, len(self)
        while begin < total:
            end = int(starts[np.searchsorted(starts, begin + max_annotations, side="right") - 1])
            if end <= begin:
                end = int(starts[np.searchsorted(starts, begin, side="right")])
            rows: Any = slice(begin, end) if order is None else order[begin:end]
            yield tuple(column[rows] for column in columns)
            begin = end

    # === Preferences ===

    def pairs(self) -> tuple[np.ndarray, Self]:
        """Preferences as classes of pairs: what methods for classes, and deep ones, can take.

        Returns:
            The pairs that occur, int64 [P, 2], task codes on the left and on the right, in ascending order; and the
            annotations as kind "classification", whose task i is the i-th pair.

        Raises:
            DataError: annotations of another kind.
        """
        if self.right_ids is None:
            raise DataError(f"pairs belong to annotations of kind 'preference', got kind {self.kind!r}")
        keys, pair_of_row = np.unique(self.task_ids * self.num_tasks + self.right_ids, return_inverse=True)
        pairs = np.stack([keys // max(self.num_tasks, 1), keys % max(self.num_tasks, 1)], axis=1)
        table = replace(self, kind="classification", task_ids=pair_of_row, right_ids=None, tasks=np.arange(len(pairs)))
        return pairs, table

    def _check_one_task(self, what: str) -> None:
        if self.right_ids is not None:
            raise DataError(f"{what} has no place for annotations of kind {self.kind!r}; use pairs().")

    # === Checks ===

    def check_scale(self, low: float | None = None, high: float | None = None) -> None:
        """Refuses ratings outside of their scale; readers of files do so themselves and name the row.

        Args:
            low: lowest rating that there is, in the labels' unit; None asks for nothing.
            high: highest rating; None asks for nothing.

        Raises:
            ConfigError: low or high is not a finite number, or low is not below high.
            DataError: annotations of another kind, or ratings outside; it names row (from 0, as the annotations stand
                in the table), task, annotator and value of the first ten, and what to do.
        """
        check_ends(low, high)
        if not self.label_kind.has_numbers:
            raise DataError(f"a scale belongs to annotations of kind 'regression', got kind {self.kind!r}")
        bad = np.flatnonzero(outside_scale(self.labels, low, high))
        if not len(bad):
            return
        bad_rows, reason = self.select_rows(bad[:SHOWN]), scale_reason(low, high)
        names = zip(
            bad_rows.tasks[bad_rows.task_ids].tolist(),
            bad_rows.annotators[bad_rows.annotator_ids].tolist(),
            strict=True,
        )
        reasons = [f"(task {task!r}, annotator {annotator!r}) {reason}" for task, annotator in names]
        rows = [
            BadRow("annotations", row, "label", label, why)
            for row, label, why in zip(bad[:SHOWN].tolist(), bad_rows.labels.tolist(), reasons, strict=True)
        ]
        raise DataError("Some ratings are outside of their scale.", rows, len(bad))

    def check_order(self, who: str) -> None:
        """Refuses classes that are three words or more, which a reader sorted by the alphabet.

        Args:
            who: takes them as ordered, for the message.

        Raises:
            DataError: nobody gave their order.
        """
        names = [] if self.classes is None else self.classes[:SHOWN].tolist()
        if self.classes_sorted and len(names) > 2 and isinstance(names[-1], str):
            listed = ", ".join(map(short_repr, names))
            raise DataError(
                f"{who} takes the order of the classes, and theirs is that of the alphabet: {listed}. Name all of them "
                f"in their own order: {Setting('classes', ['LOWEST', '...', 'HIGHEST'])}."
            )

    def check_no_repeats(self, who: str, unless: str = "") -> None:
        """Refuses annotations of which several may be by one annotator for one task.

        Args:
            who: takes one at most, for the message.
            unless: what else the reader may do, for the message.

        Raises:
            DataError: they were read with `on_duplicate="all"`, and some are repeated.
        """
        if self.repeats:
            raise DataError(
                f"{who} takes one label by an annotator for a task, and some annotators gave several. Read the "
                f"annotations with {Setting('on_duplicate', 'first')} or 'last'{f', or {unless}' if unless else ''}."
            )

    # === Selection ===

    def select_tasks(self, tasks: Any) -> Self:
        """Keeps some tasks, renumbered in the order given; annotators and classes stay as they are.

        Args:
            tasks: int codes, a boolean mask [N], or names (any type but int; integers are always codes).

        Returns:
            Annotations with `tasks[i]` named as the i-th task given; rows stay in their order. Of preferences those
            stay whose tasks are both given.

        Raises:
            DataError: for unknown or repeated tasks.
        """
        codes = self._task_codes(tasks)
        place = np.full(self.num_tasks, -1, dtype=np.int64)
        place[codes] = np.arange(len(codes))
        renumbered = {"task_ids": place[self.task_ids]}
        if self.right_ids is not None:
            renumbered["right_ids"] = place[self.right_ids]
        rows = np.logical_and.reduce([column >= 0 for column in renumbered.values()])
        arrays = {name: column[rows] for name, column in renumbered.items()}
        return replace(self.select_rows(rows), **arrays, tasks=self.tasks[codes])

    def _task_codes(self, tasks: Any) -> np.ndarray:
        selection = np.asarray(tasks)
        if selection.dtype == bool:
            if selection.shape != (self.num_tasks,):
                raise DataError(f"a mask of tasks has shape [{self.num_tasks}], got {selection.shape}")
            return np.flatnonzero(selection)
        if selection.size == 0:
            return np.empty(0, dtype=np.int64)
        if selection.dtype.kind in "iu":
            codes = selection.astype(np.int64)
            wrong = codes[(codes < 0) | (codes >= self.num_tasks)]
            if len(wrong):
                raise DataError(f"task code {wrong[0]} is not one of 0 to {self.num_tasks - 1}.")
        else:
            lookup = {name: code for code, name in enumerate(self.tasks.tolist())}
            names = selection.tolist()
            unknown = [name for name in names if name not in lookup]
            if unknown:
                raise DataError(f"{len(unknown):,} of {len(names):,} tasks are missing, e.g. {short_repr(unknown[0])}.")
            codes = np.array([lookup[name] for name in names], dtype=np.int64)
        distinct, counts = np.unique(codes, return_counts=True)
        if len(distinct) < len(codes):
            raise DataError(f"task {short_repr(self.tasks[distinct[counts > 1][0]])} is selected more than once.")
        return codes

    def select_rows(self, rows: np.ndarray) -> Self:
        """Keeps some annotations, in the order given; tasks, annotators and classes stay as they are.

        Args:
            rows: a boolean mask [A], or row numbers, int.
        """
        arrays = {name: array[rows] for name in ROW_TYPES if (array := getattr(self, name)) is not None}
        return replace(self, **arrays)

    def restrict(self, *, redundancy: int, seed: int = 0) -> Self:
        """Keeps at most `redundancy` annotations of each task, drawn at random without replacement.

        Args:
            redundancy: the most annotations a task keeps (for sequences: annotators; for preferences: the most of a
                pair), 0 or more.
            seed: seed of the draw.

        Returns:
            Annotations with the same vocabularies; rows stay in their order.
        """
        Number(0, whole=True).checked("restrict", "redundancy", redundancy)
        generator = np.random.default_rng(seed)
        if self.label_kind.has_positions:
            tasks, pair_of_row = self._pairs
        else:
            table = self if self.right_ids is None else self.pairs()[1]
            tasks, pair_of_row = table.task_ids, np.arange(len(self))
        # one sort instead of two: the task above 24 random bits; a draw that ties goes to the earlier row
        order = np.argsort((tasks << 24) | generator.integers(0, 1 << 24, len(tasks)), kind="stable")
        counts = np.bincount(tasks)
        rank = np.empty(len(tasks), dtype=np.int64)
        rank[order] = np.arange(len(tasks)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.select_rows((rank < redundancy)[pair_of_row])

    def split(self, fractions: Iterable[float] = (0.75, 0.25), *, seed: int = 0) -> tuple[Self, ...]:
        """Splits by tasks: each task and all its annotations go to one part.

        Preferences are split by pairs: both orders of a pair go to one part, and each part keeps all the tasks.

        Args:
            fractions: share of the tasks (or pairs) in each part, adding up to 1.
            seed: seed of the draw.

        Returns:
            One Annotations a fraction, with tasks renumbered in their old order (those of preferences as they are),
            and with all the annotators and classes.
        """
        shares = np.asarray(list(fractions), dtype=np.float64)
        if shares.size == 0 or (shares < 0).any() or not np.isclose(shares.sum(), 1):
            raise ValueError(f"fractions must be positive and add up to 1, got {shares.tolist()}")
        if self.right_ids is not None:
            low, high = np.minimum(self.task_ids, self.right_ids), np.maximum(self.task_ids, self.right_ids)
            keys, pair_of_row = np.unique(low * self.num_tasks + high, return_inverse=True)
        number = self.num_tasks if self.right_ids is None else len(keys)
        ends = np.rint(np.cumsum(shares)[:-1] * number).astype(np.int64)
        shuffled = np.random.default_rng(seed).permutation(number)
        if self.right_ids is not None:
            return tuple(self.select_rows(np.isin(pair_of_row, part)) for part in np.split(shuffled, ends))
        return tuple(self.select_tasks(np.sort(part)) for part in np.split(shuffled, ends))

    # === Orders, computed once ===

    @cached_property
    def _by_task(self) -> tuple[np.ndarray | None, np.ndarray]:
        """The order that sorts rows by task (None where they are sorted), and starts [N + 1] in it."""
        counts = np.bincount(self.task_ids, minlength=self.num_tasks)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        ordered = bool((self.task_ids[1:] >= self.task_ids[:-1]).all())
        return (None if ordered else np.argsort(self.task_ids, kind="stable")), starts

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """For sequences: the task of each (task, annotator) pair, and the pair of each row."""
        keys, pair_of_row = np.unique(self.task_ids * self.num_annotators + self.annotator_ids, return_inverse=True)
        return keys // max(self.num_annotators, 1), pair_of_row


def _same(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    if left is None or right is None:
        return left is right
    floats = left.dtype.kind == "f" and right.dtype.kind == "f"
    return left.dtype.kind == right.dtype.kind and np.array_equal(left, right, equal_nan=floats)
