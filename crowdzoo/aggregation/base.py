"""Result: what the results of all kinds of labels have in common."""

from __future__ import annotations

import html
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import occurrences
from crowdzoo.checks.constraints import TABLE_FORMATS, Choice, checked
from crowdzoo.errors import SHOWN

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from crowdzoo.aggregation.result_files import ReadResult
    from crowdzoo.data.annotations import Annotations

R = TypeVar("R", bound="Result")
Columns = dict[str, NDArray[Any] | None]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result(ABC):
    """Base of all results; each kind of labels adds its answers, and the columns that hold them.

    Attributes:
        method: the algorithm's name, as `crowdzoo.aggregation.create` takes it.
        tasks: names of the tasks, [N].
        annotators: names of the annotators, [R].
        skills: one number an annotator, higher is better, [R]; what it measures is the method's (see its class).
            None where the method has no such number.
        history: the objective (nats) of each iteration; never falls.
        converged: whether the objective stood still within the tolerance.
        num_iterations: number of iterations.
        notes: sentences on what to check before using the result; see `notes_against_votes`. Empty as a rule.
    """

    method: str
    tasks: NDArray[Any]
    annotators: NDArray[Any]
    skills: NDArray[np.float64] | None = None
    history: tuple[float, ...] = ()
    converged: bool = True
    num_iterations: int = 1
    notes: tuple[str, ...] = ()

    files: ClassVar[tuple[str, ...]] = ("tasks.parquet", "annotators.parquet", "summary.json")
    kind: ClassVar[str] = "classification"
    answered: ClassVar[tuple[list[str], str, str]] = (["task"], "label", "agg_label")

    def __repr__(self) -> str:
        classes = f", {len(self.classes):,} classes" if hasattr(self, "classes") else ""
        stopped = "" if self.converged else ", not converged"
        return (
            f"<{type(self).__name__}: {self.method}, {len(self.tasks):,} tasks, {len(self.annotators):,} annotators"
            f"{classes}{stopped}>"
        )

    def _repr_html_(self) -> str:
        """A notebook's view: the sizes and the first answers."""
        first: Columns = {name: values[:SHOWN] for name, values in self._answer_columns().items() if values is not None}
        return f"<p>{html.escape(repr(self))}</p>{_frame(first).to_html(index=False)}"

    def to_frame(self) -> pd.DataFrame:
        """The table of answers without its lists, such as posteriors. Needs pandas."""
        return _frame(self._answer_columns())

    def to_polars(self) -> Any:
        """`to_frame` as a polars frame. Needs polars."""
        import polars

        return polars.from_arrow(_flat(self._answer_columns()))

    def annotator_frame(self) -> pd.DataFrame:
        """One row an annotator, with what the method knows but for its lists. Needs pandas."""
        return _frame(self._annotator_columns())

    def to_parquet(self, folder: str | os.PathLike[str]) -> Path:
        """Writes a folder in one step: two tables, and `summary.json` with everything else.

        Args:
            folder: is made, with its parents. An earlier result there is replaced.

        Returns:
            The folder.

        Raises:
            DataError: the folder holds other files; they are left alone.
        """
        return self._write(folder)

    @checked(file_format=Choice(TABLE_FORMATS))
    def write(self, path: str | os.PathLike[str], file_format: str = "parquet") -> Path:
        """Writes the folder of `to_parquet` with tables in another format, or the table of answers alone.

        Only a folder of Parquet files is read again by `from_parquet`.

        Args:
            path: the folder; or a file ending in .csv, .parquet, .jsonl or .xlsx, for the table of answers (of
                tasks, of sentences the tokens) alone.
            file_format: "parquet", "csv", "jsonl" or "xlsx", of the tables in a folder. CSV and .xlsx have no
                columns of lists.

        Returns:
            The path.

        Raises:
            DataError: the folder holds other files; they are left alone.
            ConfigError: another format.
        """
        if (ending := Path(path).suffix[1:]) in TABLE_FORMATS:
            from crowdzoo.aggregation.result_files import write_table
            from crowdzoo.files.writing import atomic_file

            with atomic_file(path) as file:
                write_table(self._alone(), file, ending)
            return Path(path)
        return self._write(path, file_format=file_format)

    def _write(
        self,
        folder: str | os.PathLike[str],
        more: Mapping[str, Callable[[Path], object] | None] | None = None,
        file_format: str = "parquet",
    ) -> Path:
        from crowdzoo.aggregation.result_files import table_of, write_result

        tables = [table_of(columns) for columns in self._tables()]
        files = [*(name.replace(".parquet", f".{file_format}") for name in self.files[:-1]), self.files[-1]]
        return write_result(folder, files, tables, self._summary(), more)

    @classmethod
    def from_parquet(cls: type[R], folder: str | os.PathLike[str]) -> R:
        """Reads what `to_parquet` wrote; every array comes back as it was.

        Raises:
            DataError: a file is missing or damaged, or the result is one of another kind of labels.
        """
        from crowdzoo.aggregation.result_files import ReadResult

        stored = ReadResult(folder, cls.files, cls.kind)
        return cls(
            **cls._read(stored),
            method=stored.value("method", str),
            annotators=stored.names(cls.files[-2], "annotator"),
            skills=stored.optional(cls.files[-2], "skill" if stored.has(cls.files[-2], "skill") else "reliability"),
            history=tuple(stored.list_of_numbers("history", None).tolist()),
            converged=stored.value("converged", bool),
            num_iterations=stored.value("num_iterations", int),
            notes=tuple(map(str, stored.value("notes", list) if "notes" in stored.summary else ())),
        )

    @classmethod
    @abstractmethod
    def _read(cls, stored: ReadResult) -> dict[str, Any]:
        """The attributes that the class adds, and `tasks`."""

    @abstractmethod
    def _answer_columns(self) -> Columns:
        """The first table's columns by name, [n, ...]; None where there is nothing to write."""

    def _alone(self) -> pa.Table:
        """The table of a file that is written alone."""
        from crowdzoo.aggregation.result_files import table_of

        return table_of(self._answer_columns())

    def _annotator_columns(self: Any) -> Columns:
        """The annotators' columns by name, [R, ...]."""
        return {"annotator": self.annotators, "annotations": self.annotations_per_annotator, **self._of_annotators()}

    def _of_annotators(self) -> Columns:
        """Those of them that the class adds."""
        return {}

    def _tables(self) -> tuple[Columns, ...]:
        """The tables in the order of `files`; that of the annotators is the last."""
        return self._answer_columns(), self._annotator_columns()

    @abstractmethod
    def _more(self) -> dict[str, Any]:
        """What the class adds to the summary."""

    def _summary(self) -> dict[str, Any]:
        counts = getattr(self, "annotations_per_task", None)  # sentences are counted otherwise
        return {
            "method": self.method,
            **self._more(),
            "converged": self.converged,
            "num_iterations": self.num_iterations,
            "history": list(self.history),
            "notes": list(self.notes),
            **({} if counts is None else sizes(counts, self.annotators)),
        }


def _frame(columns: Columns) -> pd.DataFrame:
    return _flat(columns).to_pandas()


def _flat(columns: Columns) -> pa.Table:
    """The columns that hold no lists."""
    from crowdzoo.aggregation.result_files import table_of

    return table_of({name: values for name, values in columns.items() if values is None or values.ndim == 1})


def names_and_counts(annotations: Annotations) -> dict[str, Any]:
    """Names of tasks and annotators, and their numbers of annotations, as the attributes of a result."""
    return {
        "tasks": annotations.tasks,
        "annotators": annotations.annotators,
        "annotations_per_task": annotations.redundancy,
        "annotations_per_annotator": occurrences(annotations.annotator_ids, annotations.num_annotators),
    }


def sizes(annotations_per_task: NDArray[np.int64], annotators: NDArray[Any]) -> dict[str, int]:
    """Numbers of tasks, annotators and annotations, for the summary."""
    return {
        "num_tasks": len(annotations_per_task),
        "num_annotators": len(annotators),
        "num_annotations": int(annotations_per_task.sum()),
        "num_tasks_without_annotations": int((annotations_per_task == 0).sum()),
    }
