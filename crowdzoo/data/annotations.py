"""Annotations, the input of everything in crowdzoo: which annotator gave which label to which task."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.checks.constraints import Number, check_ends
from crowdzoo.data.dense import read_matrix
from crowdzoo.data.label_kinds import LABEL_KINDS, LabelKind, label_kind
from crowdzoo.data.numbers import outside_scale, scale_reason
from crowdzoo.errors import SHOWN, BadRow, DataError, Setting, keep_one, short_repr, shorten

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

    from crowdzoo.reading.tables.options import FileOptions, FrameOptions, ReadingOptions

ROW_TYPES = {  # dtype of each column; None: depends on the kind
    "task_ids": np.int64,
    "right_ids": np.int64,
    "annotator_ids": np.int64,
    "labels": None,
    "positions": np.int64,
    "confidence": np.float64,
    "timestamp": np.float64,
    "seconds": np.float64,
}
# column -> the vocabulary of its names; preferences have left and right instead of task
VOCABULARIES = {"task": "tasks", "left": "tasks", "right": "tasks", "annotator": "annotators", "label": "classes"}
# Attributes that are None for some kinds -> the kinds that have them
_PLACES = {
    "positions": "kind='sequence', and only there",
    "right_ids": "kind='preference', and only there",
    "classes": "every kind but regression, free-text and region",
    "values": "kinds free-text and region, and only there",
}
_COLUMNS = ("task", "right", "annotator", "label", "position", "confidence", "timestamp", "seconds")


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """Labels from many annotators, as integer codes and the names of these codes.

    Immutable: arrays are read-only, and every method returns a new value. Rows keep the order of the source. With
    A annotations, N tasks, R annotators, K classes and V values:

    Attributes:
        kind: "classification", "regression", "sequence", "preference", "free-text" or "region".
        task_ids: int64 [A], codes into `tasks`; for preferences codes of the task on the left.
        right_ids: int64 [A], for preferences codes of the task on the right, else None.
        annotator_ids: int64 [A], codes into `annotators`.
        labels: int64 [A], codes into `classes`; for regression float64 [A], finite; for preferences 0 (left is
            better), 1 (right) or 2 (equal); for free texts and regions codes into `values`.
        tasks: [N], code -> name. Tasks without annotations are allowed, and count.
        annotators: [R], code -> name.
        classes: [K], code -> name; None for regression, free texts and regions.
        values: objects [V], code -> text (str) for free texts, code -> `MarkedImage` for regions; else None.
            `values[labels]` are the annotators' answers.
        positions: int64 [A] for sequences (one row per token, positions count from 0), else None.
        confidence: float64 [A] or None; NaN where the annotator gave none.
        timestamp: float64 [A] or None; seconds since 1970-01-01 UTC if the source has dates.
        seconds: float64 [A] or None, how long each answer took; NaN where unknown.
        num_rejected: number of rows of the source that `on_bad_rows` or `on_duplicate` left out.
        num_replaced: how many of these `on_duplicate` left out in favour of another answer.
        repeats: whether an annotator may have several rows for one task (`on_duplicate="all"`).
        classes_sorted: whether a reader sorted the classes (or values) because none were passed.

    Names are int64 arrays if every name is an integer, else object arrays, usually of strings. A vocabulary that you
    pass keeps its order; otherwise names are sorted, numbers by value.

    Example:
        >>> import crowdzoo
        >>> annotations = crowdzoo.Annotations.from_arrays([1, 1, 2], ["ann", "bob", "ann"], ["cat", "dog", "dog"])
        >>> annotations.num_tasks, annotations.num_annotators, annotations.classes.tolist()
        (2, 2, ['cat', 'dog'])
        >>> annotations.to_dense().tolist()  # a row for each task, a column for each annotator; -1: no label
        [[0, 1], [1, -1]]
    """

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
        arrays = facts.arrays
        for name, place in _PLACES.items():
            if (getattr(self, name) is not None) != (name in arrays):
                raise ValueError(f"{name} belong to {place}")
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
        if not isinstance(other, Annotations):
            return NotImplemented
        return self.kind == other.kind and all(
            _same(getattr(self, name), getattr(other, name))
            for name in (*ROW_TYPES, "tasks", "annotators", "classes", "values")
        )

    __hash__ = None  # type: ignore[assignment]  # compared by value

    def __repr__(self) -> str:
        labels = "" if self.classes is None else f", {self.num_classes:,} classes"
        if self.values is not None:
            labels = f", {len(np.unique(self.labels)):,} {self.label_kind.values}"
        return (
            f"<Annotations: {self.kind}, {len(self):,} annotations, {self.num_tasks:,} tasks, "
            f"{self.num_annotators:,} annotators{labels}>"
        )

    def _repr_html_(self) -> str:
        """HTML for notebooks: the sizes and the first rows."""
        columns = self._named(slice(SHOWN))
        head = "".join(f"<th>{column}</th>" for column in columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(shorten(str(value)))}</td>' for value in row)}</tr>"
            for row in zip(*(values.tolist() for values in columns.values()), strict=True)
        )
        left_out = f"<p>… and {len(self) - SHOWN:,} more rows</p>" if len(self) > SHOWN else ""
        return f"<p>{html.escape(repr(self))}</p><table><tr>{head}</tr>{rows}</table>{left_out}"

    # === From arrays ===

    @classmethod
    def from_arrays(
        cls,
        task: Any,
        annotator: Any,
        label: Any,
        *,
        kind: str = "classification",
        right: Any = None,
        position: Any = None,
        confidence: Any = None,
        timestamp: Any = None,
        seconds: Any = None,
        **options: Unpack[ReadingOptions],
    ) -> Annotations:
        """Creates annotations from columns of equal length A.

        Args:
            task: [A], any hashable ids; for preferences ids of the tasks on the left.
            annotator: [A], any hashable ids.
            label: [A], class names of any hashable type; finite numbers for regression; "left", "right" or "equal" for
                preferences; `MarkedImage` or its text for regions.
            kind: "classification", "regression", "sequence", "preference", "free-text" or "region".
            right: [A], ids of the tasks on the right; required for preferences.
            position: [A], integers from 0; required for sequences.
            confidence: [A], numbers, or None.
            timestamp: [A], seconds, or None.
            seconds: [A], seconds that each answer took, or None.
            **options: tasks, annotators, classes, low, high, on_duplicate, on_bad_rows, rejects: see `ReadingOptions`.

        Returns:
            Annotations with the rows in the given order.

        Raises:
            DataError: bad rows, with the row (from 0), the column and the value.
        """
        values = (task, right, annotator, label, position, confidence, timestamp, seconds)
        from crowdzoo.reading.tables import read

        return read.arrays(dict(zip(_columns_of(label_kind(kind)), values, strict=True)), kind, options)

    @classmethod
    def from_dense(
        cls,
        matrix: Any,
        *,
        kind: str = "classification",
        missing: float | None = None,
        tasks: Any = None,
        annotators: Any = None,
        classes: Any = None,
    ) -> Annotations:
        """Creates annotations from a matrix with one row per task and one column per annotator.

        Args:
            matrix: [N, R] class codes (ints from 0), or numbers for regression; [N, T, R] class codes for
                    sequences, where each task's tokens come first and the rest is missing.
            kind: "classification", "regression", "sequence" or "preference".
            missing: value of a cell without annotation; None means -1, for regression NaN.
            tasks: [N] names, or None for 0 ... N-1.
            annotators: [R] names, or None for 0 ... R-1.
            classes: [K] names, or None for 0 ... the largest code.

        Returns:
            Annotations, sorted by task, annotator and position.

        Raises:
            DataError: a code outside the classes, or a number that is not finite.
        """
        from crowdzoo.reading.tables.options import Rules

        names = Rules.of(label_kind(kind), {}, tasks=tasks, annotators=annotators, classes=classes).names
        return cls(**read_matrix(matrix, label_kind(kind), names, missing))

    @classmethod
    def from_frame(cls, frame: Any, *, kind: str = "classification", **options: Unpack[FrameOptions]) -> Annotations:
        """Creates annotations from a pandas or polars frame, an Arrow table, or a dictionary of columns.

        Columns: task, annotator (or worker) and label; position for sequences; optionally confidence and timestamp.
        Columns with other names are given by `columns`, or recognised by usual names.

        Args:
            frame: one row per annotation (for sequences one row per token).
            kind: "classification", "regression", "sequence" or "preference".
            **options: see `FrameOptions`.

        Returns:
            Annotations with the rows in the frame's order.

        Raises:
            DataError: as in `from_csv`; rows count from 0.
        """
        from crowdzoo.reading.tables import read

        return read.frame(frame, kind, options)

    # === From files ===

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        kind: str | None = None,
        platform: str | None = None,
        field: str | None = None,
        image: str | bool | None = None,
        all_tasks: bool = False,
        **options: Unpack[FileOptions],
    ) -> Annotations:
        """Reads a file by its suffix: .csv, .tsv, .jsonl (each also with .gz) or .parquet; or a platform's export.

        Args:
            path: path of the file; for an export a file, a zip archive or a folder.
            kind: name of a kind, such as "classification"; None uses the kind stored in a Parquet file of `to_parquet`,
                otherwise "classification".
            platform: name of the labelling platform of the export, such as "label-studio" (see
                `crowdzoo.reading.platforms.export.PLATFORMS`), for every kind but "sequence"; None for tables. For
                preferences `columns` then tells what is compared: "left=answer1,right=answer2" are keys of a task's
                data, "task=id" is a key of the items of an ordered list. Without it, the names are `TASK/left` or
                `TASK/ITEM`.
            field: question of the export to read; None if it has only one. In a table, the question to read from cells
                that contain JSON objects.
            image: column of the export with the image; each task is then named after the file of its image, without the
                suffix, as `crowdzoo.instances.read_instances` names the images of a folder. True finds the column, None
                keeps the platform's names.
            all_tasks: whether to include tasks of an export without answers. Not for preferences.
            **options: see `FileOptions`.

        Returns:
            Annotations with the rows in the order of the file.

        Raises:
            DataError: any other suffix, and as in `from_csv`.
            ConfigError: an unknown platform, or several questions and no `field`.
        """
        from crowdzoo.reading.tables.read import read_annotations

        return read_annotations(
            path, kind=kind, platform=platform, field=field, image=image, all_tasks=all_tasks, **options
        )

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str], *, kind: str = "classification", **options: Unpack[FileOptions]
    ) -> Annotations:
        """Reads comma-separated values with a header; gzip if the name ends in .gz.

        Columns: task, annotator (or worker) and label; position for sequences; for preferences left and right instead
        of task, and left, right or equal as label; optionally confidence and timestamp (seconds, ISO 8601 dates, or
        31.12.2026 23:59; UTC unless they name a zone). Other columns are ignored. The encoding is UTF-8, with or
        without byte order mark. Values may be quoted with `"`, also around line breaks; white space around values and
        blank lines are ignored. Ids are text; if every id of a column is an integer as Python writes it (7, not 07),
        they become integers.

        The file is streamed: memory depends on the size of the table, not of the file.

        Args:
            path: path of the file.
            kind: "classification", "regression", "sequence" or "preference".
            **options: see `FileOptions`.

        Returns:
            Annotations with the rows in the order of the file.

        Raises:
            DataError: bad rows, with the file, the line (1 is the header), the column, the value and a fix (ten are
                shown, the rest counted): wrong number of values, not UTF-8, empty id, label outside the classes or the
                scale, not a finite number, repeated (task, annotator), annotators of one task that cover different
                positions. Bad files: missing, empty, truncated, or without a required column.
            ConfigError: an option out of range, or one that does not belong to the kind.
        """
        from crowdzoo.reading.tables import read

        return read.file(path, kind, "csv", options)

    @classmethod
    def from_parquet(
        cls, path: str | os.PathLike[str], *, kind: str | None = None, **options: Unpack[FileOptions]
    ) -> Annotations:
        """Reads a Parquet file with the columns of `from_csv`; rows count from 0.

        Ids keep their type, string or integer. A file of `to_parquet` is restored exactly: kind, vocabularies and
        codes. Names passed here replace those of the file.
        """
        from crowdzoo.reading.tables import read

        return read.file(path, kind, "parquet", options)

    # === To other forms ===

    def to_dense(self) -> np.ndarray:
        """Returns the labels as a matrix with one row per task and one column per annotator.

        Returns:
            int64 [N, R] of class codes with -1 where missing; float64 [N, R] with NaN for regression;
                int64 [N, T, R] for sequences, T the length of the longest.

        Raises:
            DataError: an annotator has several labels for one task.
        """
        self._check_one_task("A dense table")
        self.check_no_repeats("A dense table")
        tokens: tuple[int, ...] = ()
        token: tuple[np.ndarray, ...] = ()
        if self.positions is not None:
            tokens, token = (int(self.positions.max(initial=-1)) + 1,), (self.positions,)
        shape = (self.num_tasks, *tokens, self.num_annotators)
        cells = (self.task_ids, *token, self.annotator_ids)
        dense = np.full(shape, self.label_kind.missing, dtype=self.label_kind.dtype)
        dense[cells] = self.labels
        return dense

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame of names: task, annotator and label; and optional columns if present.

        Preferences have left and right instead of task.
        """
        import pandas as pd

        return pd.DataFrame(self._named())

    def to_polars(self) -> Any:
        """Returns `to_frame` as a polars frame, which `from_frame` reads.

        Raises:
            ImportError: polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            raise ImportError("to_polars() needs polars: pip install polars") from error
        return polars.DataFrame({name: polars.Series(values.tolist()) for name, values in self._named().items()})

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Writes one row per annotation, with names instead of codes; the metadata hold kind and vocabularies.

        Args:
            path: path of the file; it appears only when it is complete.

        Returns:
            The path. `from_parquet` restores what was written, codes included.

        Raises:
            DataError: names that are neither strings nor integers.
        """
        from crowdzoo.reading.tables.parquet import write_parquet

        return write_parquet(path, self.kind, self._columns(), self.repeats, self.classes_sorted)

    def _named(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        """The columns that are present, with names instead of codes."""
        return {
            column: values[rows] if names is None else names[values[rows]]
            for column, (values, names) in self._columns().items()
        }

    def _columns(self) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
        """The columns that are present: their values or codes, and the names of codes."""
        columns = _columns_of(self.label_kind)
        arrays = {column: getattr(self, name) for column, name in zip(columns, ROW_TYPES, strict=True)}
        names = {column: getattr(self, name) for column, name in VOCABULARIES.items()} | {"label": self.label_names}
        return {column: (values, names.get(column)) for column, values in arrays.items() if values is not None}

    # === Sizes ===

    def __len__(self) -> int:
        return len(self.task_ids)

    @property
    def num_tasks(self) -> int:
        """N, including tasks without annotations."""
        return len(self.tasks)

    @property
    def num_annotators(self) -> int:
        """R, including annotators without annotations."""
        return len(self.annotators)

    @property
    def num_classes(self) -> int:
        """K; 0 for regression, free texts and regions."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def label_names(self) -> np.ndarray | None:
        """Names of the label codes as in files: classes, or values as text; None for regression."""
        if self.values is None:
            return self.classes
        return np.array([str(value) for value in self.values], dtype=object)

    @property
    def label_kind(self) -> LabelKind:
        """Properties of labels of this kind."""
        return LABEL_KINDS[self.kind]

    @property
    def redundancy(self) -> np.ndarray:
        """Annotations per task, int64 [N]; for sequences annotators, for preferences comparisons per task."""
        if self.right_ids is not None:
            return np.bincount(np.concatenate([self.task_ids, self.right_ids]), minlength=self.num_tasks)
        if self.positions is not None:
            tasks, _ = self._pairs
            return np.bincount(tasks, minlength=self.num_tasks)
        return np.diff(self._by_task[1])

    # === Rows of a task ===

    def padded(self, tasks: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the annotations of each task as one padded row, for batches.

        Args:
            tasks: int [N'], task codes in any order, repeats allowed; None for all tasks.

        Returns:
            annotator_ids: int64 [N', M], padded with -1; M is the largest number of annotations of one of these tasks.
            labels: int64 [N', M], padded with -1 (float64 and NaN for regression); for sequences int64 [N', T, M], T
                the length of the longest of these tasks, padded with -1 along T as well.
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
            # rows are tokens here, so an annotator's column is the rank of the (task, annotator) pair
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
        """Iterates over the annotations by task, in blocks that never split a task.

        Args:
            max_annotations: maximum size of a block, unless a single task has more.

        Yields:
            (task_ids, annotator_ids, labels), arrays of equal length, sorted by task; for sequences
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

    def pairs(self) -> tuple[np.ndarray, Annotations]:
        """Returns preferences as classes of pairs, for methods that need classes.

        Returns:
            The distinct pairs, int64 [P, 2], codes of the left and the right task, in ascending order; and annotations
                of kind "classification", whose task i is the i-th pair.

        Raises:
            DataError: the annotations are of another kind.
        """
        if self.right_ids is None:
            raise DataError(f"pairs belong to annotations of kind 'preference', got kind {self.kind!r}")
        keys, pair_of_row = np.unique(self.task_ids * self.num_tasks + self.right_ids, return_inverse=True)
        pairs = np.stack([keys // max(self.num_tasks, 1), keys % max(self.num_tasks, 1)], axis=1)
        table = replace(self, kind="classification", task_ids=pair_of_row, right_ids=None, tasks=np.arange(len(pairs)))
        return pairs, table

    def _check_one_task(self, what: str) -> None:
        if self.right_ids is not None:
            raise DataError(f"{what} cannot represent annotations of kind {self.kind!r}; use pairs().")

    # === Checks ===

    def check_scale(self, low: float | None = None, high: float | None = None) -> None:
        """Raises an error for ratings outside a scale; readers of files do so themselves and name the row.

        Args:
            low: lowest possible rating, in the unit of the labels; None for no limit.
            high: highest possible rating; None for no limit.

        Raises:
            ConfigError: low or high is not a finite number, or low is not below high.
            DataError: the annotations are of another kind, or ratings are outside; the message names row (from 0),
                task, annotator and value of the first ten, and the fix.
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
        raise DataError("Some ratings are outside their scale.", rows, len(bad))

    def check_order(self, who: str) -> None:
        """Raises an error for three or more classes named by words that a reader sorted alphabetically.

        Args:
            who: name of what needs ordered classes, for the message.

        Raises:
            DataError: the classes are in alphabetical order because none were passed.
        """
        names = [] if self.classes is None else self.classes[:SHOWN].tolist()
        if self.classes_sorted and len(names) > 2 and isinstance(names[-1], str):
            listed = ", ".join(map(short_repr, names))
            raise DataError(
                f"{who} needs the order of the classes, but they are sorted alphabetically: {listed}. Name all of them "
                f"in their order: {Setting('classes', ['LOWEST', '...', 'HIGHEST'])}."
            )

    def check_no_repeats(self, who: str, unless: str = "") -> None:
        """Raises an error if an annotator may have several annotations for one task.

        Args:
            who: name of what accepts only one, for the message.
            unless: an alternative for the reader, for the message.

        Raises:
            DataError: the annotations were read with `on_duplicate="all"`, and some are repeated.
        """
        if self.repeats:
            raise DataError(
                f"{who} needs one label per annotator and task, but some annotators gave several. Read the "
                f"annotations with {keep_one()}{f', or {unless}' if unless else ''}."
            )

    # === Selection ===

    def select_tasks(self, tasks: Any) -> Annotations:
        """Keeps some tasks, renumbered in the order of `tasks`; annotators and classes are unchanged.

        Args:
            tasks: int codes, a boolean mask [N], or names (any type but int; integers are always codes).

        Returns:
            Annotations whose task i is the i-th one selected; rows keep their order. For preferences, rows whose two
                tasks are both selected.

        Raises:
            DataError: unknown or repeated tasks.
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

    def select_rows(self, rows: np.ndarray) -> Annotations:
        """Keeps some annotations, in the order of `rows`; tasks, annotators and classes are unchanged.

        Args:
            rows: bool mask [A], or int row numbers.
        """
        arrays = {name: array[rows] for name in ROW_TYPES if (array := getattr(self, name)) is not None}
        return replace(self, **arrays)

    def restrict(self, *, redundancy: int, seed: int = 0) -> Annotations:
        """Keeps at most `redundancy` annotations per task, drawn at random without replacement.

        Args:
            redundancy: maximum number of annotations per task (annotators for sequences; annotations per pair for
                preferences), 0 or more.
            seed: seed of the draw.

        Returns:
            Annotations with the same vocabularies; rows keep their order.
        """
        Number(0, whole=True).checked("restrict", "redundancy", redundancy)
        generator = np.random.default_rng(seed)
        if self.positions is not None:
            tasks, pair_of_row = self._pairs
        else:
            table = self if self.right_ids is None else self.pairs()[1]
            tasks, pair_of_row = table.task_ids, np.arange(len(self))
        # one sort instead of two: the task above 24 random bits; ties go to the earlier row
        order = np.argsort((tasks << 24) | generator.integers(0, 1 << 24, len(tasks)), kind="stable")
        counts = np.bincount(tasks)
        rank = np.empty(len(tasks), dtype=np.int64)
        rank[order] = np.arange(len(tasks)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.select_rows((rank < redundancy)[pair_of_row])

    # === Orders, computed once ===

    @cached_property
    def _by_task(self) -> tuple[np.ndarray | None, np.ndarray]:
        """The order that sorts rows by task (None if they are sorted), and where each task starts in it, [N + 1]."""
        counts = np.bincount(self.task_ids, minlength=self.num_tasks)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        ordered = bool((self.task_ids[1:] >= self.task_ids[:-1]).all())
        return (None if ordered else np.argsort(self.task_ids, kind="stable")), starts

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """For sequences: the task of each (task, annotator) pair, and the pair of each row."""
        keys, pair_of_row = np.unique(self.task_ids * self.num_annotators + self.annotator_ids, return_inverse=True)
        return keys // max(self.num_annotators, 1), pair_of_row


def _columns_of(kind: LabelKind) -> tuple[str, ...]:
    """Names of the columns of `ROW_TYPES`, as tables have them."""
    return (kind.sides[0], *_COLUMNS[1:])


def _same(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    if left is None or right is None:
        return left is right
    floats = left.dtype.kind == "f" and right.dtype.kind == "f"
    return left.dtype.kind == right.dtype.kind and np.array_equal(left, right, equal_nan=floats)
