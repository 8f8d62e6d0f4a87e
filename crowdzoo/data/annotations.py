"""The one table that everything in crowdzoo takes: who said what about which task."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.data.annotation_rows import ROW_TYPES, AnnotationRows
from crowdzoo.data.dense import read_matrix
from crowdzoo.data.label_kinds import LabelKind, label_kind
from crowdzoo.errors import SHOWN, shorten

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

    from crowdzoo.reading.tables.options import FileOptions, FrameOptions, ReadingOptions

# column -> where its names are kept; preferences have left and right instead of task
VOCABULARIES = {"task": "tasks", "left": "tasks", "right": "tasks", "annotator": "annotators", "label": "classes"}
_COLUMNS = ("task", "right", "annotator", "label", "position", "confidence", "timestamp", "seconds")


class Annotations(AnnotationRows):
    """Labels from many annotators, as integer codes and the names behind them.

    A value: its arrays are read-only, and every method returns a new one. Rows keep the order in
    which they came. With A annotations, N tasks, R annotators, K classes and V values:

    Attributes:
        kind: "classification", "regression", "sequence", "preference", "free-text" or "region".
        task_ids: int64 [A], codes into `tasks`; for preferences those of the task on the left.
        right_ids: int64 [A], for preferences the codes of the task on the right, else None.
        annotator_ids: int64 [A], codes into `annotators`.
        labels: int64 [A], codes into `classes`; float64 [A] for regression, finite; for preferences 0 (left is
            better), 1 (right) or 2 (equal); for free texts and regions codes into `values`.
        tasks: [N], code -> name. Tasks without annotations are legal and count.
        annotators: [R], code -> name.
        classes: [K], code -> name; None for regression, free texts and regions.
        values: objects [V], code -> text (str) for free texts, code -> `MarkedImage` for regions; else None. What
            each annotator gave is `values[labels]`.
        positions: int64 [A] for sequences (one row a token, positions count from 0), else None.
        confidence: float64 [A] or None; NaN where the annotator gave none.
        timestamp: float64 [A], seconds since 1970-01-01 UTC where the source held dates, or None.
        seconds: float64 [A], time that an answer took, or None; NaN where it is unknown.
        num_rejected: rows of the source that were left out by `on_bad_rows` or `on_duplicate`.
        num_replaced: of these, the ones in whose place `on_duplicate` keeps another answer.
        repeats: an annotator may have several rows of one task (`on_duplicate="all"`).
        classes_sorted: a reader sorted the classes, as none were given; likewise values.

    Names are int64 arrays where every name is an integer, else object arrays (of strings, as a
    rule). A vocabulary that was given keeps its order; otherwise names are sorted, numbers by value.

    Example:
        >>> import crowdzoo
        >>> annotations = crowdzoo.Annotations.from_arrays([1, 1, 2], ["ann", "bob", "ann"], ["cat", "dog", "dog"])
        >>> annotations.num_tasks, annotations.num_annotators, annotations.classes.tolist()
        (2, 2, ['cat', 'dog'])
        >>> annotations.to_dense().tolist()  # a row for each task, a column for each annotator; -1: no label
        [[0, 1], [1, -1]]
    """

    def __repr__(self) -> str:
        labels = "" if self.classes is None else f", {self.num_classes:,} classes"
        if self.values is not None:
            labels = f", {len(np.unique(self.labels)):,} {self.label_kind.values}"
        return (
            f"<Annotations: {self.kind}, {len(self):,} annotations, {self.num_tasks:,} tasks, "
            f"{self.num_annotators:,} annotators{labels}>"
        )

    def _repr_html_(self) -> str:
        """A notebook's view: the sizes and the first rows."""
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
        """Makes annotations from columns of equal length A.

        Args:
            task: [A], any hashable ids; for preferences those of the tasks on the left.
            annotator: [A], any hashable ids.
            label: [A], class names of any hashable type; finite numbers for regression; for preferences "left",
                "right" or "equal"; for regions `MarkedImage`, or its text.
            kind: "classification", "regression", "sequence", "preference", "free-text" or "region".
            right: [A], ids of the tasks on the right; required for preferences.
            position: [A], integers from 0; required for sequences.
            confidence: [A] numbers or None.
            timestamp: [A] numbers (seconds) or None.
            seconds: [A] numbers, the time that each answer took, or None.
            **options: tasks, annotators, classes, low, high, on_duplicate, on_bad_rows, rejects: see `ReadingOptions`.

        Returns:
            Annotations with the rows in the given order.

        Raises:
            DataError: for bad rows, with the row (from 0), the column and the value.
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
        """Makes annotations from a matrix, one row a task and one column an annotator.

        Args:
            matrix: [N, R] class codes (ints from 0), or numbers for regression; [N, T, R] class codes for
                sequences, where task i's tokens are the first positions and the rest is missing.
            kind: "classification", "regression", "sequence" or "preference".
            missing: the value of a cell without annotation; None means -1, and NaN for regression.
            tasks: [N] names, or None for 0 ... N-1.
            annotators: [R] names, or None for 0 ... R-1.
            classes: [K] names, or None for 0 ... the largest code.

        Returns:
            Annotations, ordered by task, then annotator (then position).

        Raises:
            DataError: for a code outside the classes or a number that is not finite.
        """
        from crowdzoo.reading.tables.options import Rules

        names = Rules.of(label_kind(kind), {}, tasks=tasks, annotators=annotators, classes=classes).names
        return cls(**read_matrix(matrix, label_kind(kind), names, missing))

    @classmethod
    def from_frame(cls, frame: Any, *, kind: str = "classification", **options: Unpack[FrameOptions]) -> Annotations:
        """Makes annotations from a pandas or polars frame, an Arrow table, or a dictionary of columns.

        Columns: task, annotator (or worker), label; for sequences position; optional confidence and timestamp. Others
        by `columns`, or by usual names.

        Args:
            frame: one row an annotation (for sequences: one row a token).
            kind: "classification", "regression", "sequence" or "preference".
            **options: see `FrameOptions`.

        Returns:
            Annotations with the rows in their order.

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
            path: path of the file; of an export a file, a zip archive or a folder.
            kind: name of a kind, such as "classification"; None is what a Parquet file of `to_parquet` says, and
                otherwise "classification".
            platform: name of the labelling platform whose export this is, such as "label-studio" (see
                `crowdzoo.reading.platforms.export.PLATFORMS`), for every kind but "sequence"; None: none. For
                preferences `columns` then name what is compared: "left=answer1,right=answer2" are keys of the data of a
                task, "task=id" one of the items of a list in order. Without, it is called `TASK/left` or `TASK/ITEM`.
            field: question of the export that is meant; None where it has only one. In a table the question whose
                answer is read out of cells that hold JSON objects.
            image: name each task of the export after the file of its image, without the ending, as
                `crowdzoo.instances.read_instances` names the images of a folder: the export's column of the image, or
                True to find it. None keeps the platform's own names.
            all_tasks: tasks of an export that nobody answered are tasks, too. Not for preferences.
            **options: see `FileOptions`.

        Returns:
            Annotations with the rows in the file's order.

        Raises:
            DataError: for another suffix, and as in `from_csv`.
            ConfigError: an unknown platform, or several questions and no field.
        """
        from crowdzoo.reading.tables.read import read_annotations

        return read_annotations(
            path, kind=kind, platform=platform, field=field, image=image, all_tasks=all_tasks, **options
        )

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str], *, kind: str = "classification", **options: Unpack[FileOptions]
    ) -> Annotations:
        """Reads comma-separated values with a header; gzip where the name ends in .gz.

        Columns: task, annotator (or worker), label; for sequences position; for preferences left and right instead
        of task, and left, right or equal as label; optional confidence and timestamp (seconds, ISO 8601 dates, or
        31.12.2026 23:59; UTC where they name no zone). Others are passed over. UTF-8, with or without byte order mark.
        Values may be quoted with `"`, also around line breaks; white space around a value does not count, and blank
        lines do not either. Ids are text; where every id of a column is an integer as Python writes it (7, not 07),
        they become integers.

        The file is streamed: memory follows the table that comes out, not the file.

        Args:
            path: path of the file.
            kind: "classification", "regression", "sequence" or "preference".
            **options: see `FileOptions`.

        Returns:
            Annotations with the rows in the file's order.

        Raises:
            DataError: with the file, the line (1 is the header), the column, the value and a way out, for every
                bad row (ten shown, the rest counted): wrong number of values, not UTF-8, empty id, label outside
                the classes or the scale, no number or not a finite one, repeated (task, annotator), annotators of one
                task that cover different positions; or for the whole file: missing, empty, a column missing, cut off.
            ConfigError: an option out of its range, or one that does not belong to the kind.
        """
        from crowdzoo.reading.tables import read

        return read.file(path, kind, "csv", options)

    @classmethod
    def from_parquet(
        cls, path: str | os.PathLike[str], *, kind: str | None = None, **options: Unpack[FileOptions]
    ) -> Annotations:
        """Reads a Parquet file with the columns of `from_csv`, otherwise as `from_csv`; rows count from 0.

        Ids keep their type, string or integer. A file of `to_parquet` comes back exactly as it was: kind,
        vocabularies and codes; names passed here take the place of the file's own.
        """
        from crowdzoo.reading.tables import read

        return read.file(path, kind, "parquet", options)

    # === To other forms ===

    def to_dense(self) -> np.ndarray:
        """One row a task and one column an annotator.

        Returns:
            int64 [N, R] of class codes with -1 where missing; float64 [N, R] with NaN for regression;
            int64 [N, T, R] for sequences, T the longest.

        Raises:
            DataError: an annotator has several labels of one task.
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
        """A pandas frame of names: task, annotator, label, and position, confidence, timestamp where there are any.

        Preferences have left and right instead of task.
        """
        import pandas as pd

        return pd.DataFrame(self._named())

    def to_polars(self) -> Any:
        """`to_frame` as a polars frame; `from_frame` reads one.

        Raises:
            ImportError: where polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            raise ImportError("to_polars() needs polars: pip install polars") from error
        return polars.DataFrame({name: polars.Series(values.tolist()) for name, values in self._named().items()})

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Writes one row an annotation, with names, not codes; kind and vocabularies go into the metadata.

        Args:
            path: path of the file; it appears only when it is complete.

        Returns:
            The path. `from_parquet` gives back what was written, codes and all.

        Raises:
            DataError: for names that are neither strings nor integers.
        """
        from crowdzoo.reading.tables.parquet import write_parquet

        return write_parquet(path, self.kind, self._columns(), self.repeats, self.classes_sorted)

    def _named(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        """Each column that there is, with names in the place of codes."""
        return {
            column: values[rows] if names is None else names[values[rows]]
            for column, (values, names) in self._columns().items()
        }

    def _columns(self) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
        """Each column that there is: its values or codes, and the names behind codes."""
        columns = _columns_of(self.label_kind)
        arrays = {column: getattr(self, name) for column, name in zip(columns, ROW_TYPES, strict=True)}
        names = {column: getattr(self, name) for column, name in VOCABULARIES.items()} | {"label": self.label_names}
        return {column: (values, names.get(column)) for column, values in arrays.items() if values is not None}


def _columns_of(kind: LabelKind) -> tuple[str, ...]:
    """Names of the columns behind `ROW_TYPES`."""
    return ("left", *_COLUMNS[1:]) if kind.has_pairs else _COLUMNS
