"""Aggregator and Result, the bases of methods and results for all kinds of labels, with their checks and warnings."""

from __future__ import annotations

import copy
import html
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import occurrences
from crowdzoo.checks.constraints import TABLE_FORMATS, Checked, Choice, checked
from crowdzoo.data.label_kinds import (
    CLASSIFICATION,
    REGRESSION,
    LabelKind,
    label_kind,
    require_annotations,
    require_kind,
)
from crowdzoo.errors import SHOWN, ConfigError, DataError, NotedWarning, Setting, short_repr

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from crowdzoo.aggregation.result_files import ReadResult
    from crowdzoo.data.annotations import Annotations

R = TypeVar("R", bound="Result")
Columns = dict[str, NDArray[Any] | None]
# methods that use only how often each annotator gave each label to a task (as in Dawid and Skene, 1979)
COUNTING = ("Majority vote", "Dawid-Skene", "posteriors_of")
LARGEST = 1e10  # times the usual rating: a larger one makes sums lose the digits of the others


class Aggregator(Checked):
    """Base class of the aggregation algorithms: settings as in scikit-learn, `fit_predict` as in crowd-kit.

    A subclass is a frozen dataclass whose fields are its settings, with a method `fit`. Learned values are in the
    result of `fit`, never in the aggregator.

    Attributes:
        kind: kind of the labels to aggregate, as in `Annotations.kind`.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import Aggregator, MajorityVote
        >>> isinstance(MajorityVote(), Aggregator)
        True
        >>> task, annotator = [1, 1, 1, 2], ["ann", "bob", "cem", "ann"]
        >>> annotations = Annotations.from_arrays(task, annotator, ["cat", "cat", "dog", "dog"])
        >>> MajorityVote().fit_predict(annotations).to_dict()
        {1: 'cat', 2: 'dog'}
    """

    kind: ClassVar[str] = "classification"
    fit: Any  # each subclass has its own

    def fit_predict(self, data: Any, **known: Any) -> Any:
        """Returns only the answers, in the format of crowd-kit.

        Args:
            data: `Annotations`, or a pandas or polars frame with the columns `task`, `worker` (or `annotator`) and
                `label`. Sentences also have `position`. Preferences have `left` and `right` instead of `task`, and as
                `label` the better of the two, or "left", "right" or "equal".
            **known: further arguments of `fit`, such as `gold`.

        Returns:
            A pandas series, sorted by its index: for classes `agg_label`, class names indexed by `task`; for sentences
            the same, indexed by `task` and `position`; for ratings `agg_label`, numbers indexed by `task`; for
            preferences `agg_score`, scores indexed by the names of the tasks. For a polars frame, a polars frame with
            these columns.

        Raises:
            DataError: the data cannot be read as annotations; see `Annotations.from_frame`.
            ImportError: pandas is missing.
        """
        result = self.fit(self._annotations(data), **known)
        index, column, name = result.answered
        if is_polars(data):
            return result.to_polars().select([*index, column]).rename({column: name}).sort(index)
        return result.to_frame().set_index(index)[column].rename(name).sort_index()

    def fit_predict_proba(self, data: Any, **known: Any) -> Any:
        """Returns class probabilities, in the format of crowd-kit.

        Args:
            data: see `fit_predict`; for classes only.
            **known: further arguments of `fit`, such as `gold`.

        Returns:
            A pandas frame indexed by `task`, with one column per class; rows sum to one. For a polars frame, a polars
            frame with the column `task` first.

        Raises:
            DataError: the data cannot be read as annotations, or the aggregator is not for classes.
            ImportError: pandas is missing.
        """
        if not label_kind(self.kind).one_class:
            raise DataError(f"{type(self).__name__} has no class probabilities per task; use fit_predict or fit.")
        result = self.fit(self._annotations(data), **known)
        if is_polars(data):
            import polars

            class_columns = zip(result.classes, result.posteriors.T, strict=True)
            columns = {str(name): polars.Series(column) for name, column in class_columns}
            if "task" in columns:
                raise DataError("a class has the name of the column 'task'. Give a pandas frame, or rename the class.")
            return result.to_polars().select("task").with_columns(**columns).sort("task")
        import pandas as pd

        tasks, classes = pd.Index(result.tasks, name="task"), pd.Index(result.classes, name="label")
        return pd.DataFrame(result.posteriors, tasks, classes).sort_index()

    def _annotations(self, data: Any) -> Annotations:
        """Converts a frame to annotations; returns annotations unchanged."""
        from crowdzoo.data.annotations import Annotations  # imports Arrow, which aggregation does not need

        if isinstance(data, Annotations):
            return data
        try:
            return Annotations.from_frame(self._readable(data), kind=self.kind)
        except (ConfigError, DataError) as error:
            kind = label_kind(self.kind).argument
            advice = f"fit(Annotations.from_frame(frame{kind}, on_duplicate='first', columns={{...}}))."
            more = copy.copy(error)
            more.args = (f"{error}\nPass options of reading to from_frame: {advice}",)
            raise more from error

    def _readable(self, frame: Any) -> Any:
        """Converts a frame to one that `from_frame` accepts."""
        return frame


def is_polars(data: Any) -> bool:
    """Whether the data is a polars frame, without importing polars."""
    return type(data).__module__.partition(".")[0] == "polars"


class ConvergenceWarning(UserWarning):
    """An algorithm reached `max_iter` before it converged.

    Example:
        >>> import warnings
        >>> from crowdzoo.aggregation import ConvergenceWarning
        >>> warnings.simplefilter("error", ConvergenceWarning)  # raise it as an error
        >>> warnings.simplefilter("default", ConvergenceWarning)  # print it, as Python does without these lines
    """


class VotesWarning(NotedWarning):
    """A result is far from the votes; its `notes` say why.

    Example:
        >>> import warnings
        >>> from crowdzoo.aggregation import VotesWarning
        >>> warnings.simplefilter("ignore", VotesWarning)  # once you have read the result's `notes`
    """


@contextmanager
def ignored(*categories: type[Warning]) -> Iterator[None]:
    """Suppresses warnings of some categories, such as those of a fit that is only one step of another."""
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


def warn_of_notes(method: str, notes: tuple[str, ...], stacklevel: int) -> None:
    """Warns of the notes on a method's result, if any.

    Warns:
        VotesWarning: if there are notes.
    """
    if notes:
        warnings.warn(VotesWarning(f"{method}: {' '.join(notes)}", notes), stacklevel=stacklevel)


def warn_not_converged(title: str, max_iter: int, tol: float, change: float, measure: str, stacklevel: int = 3) -> None:
    """Warns that an algorithm reached `max_iter`, and says what to do.

    Args:
        title: name of the algorithm in the message.
        max_iter: number of iterations.
        tol: the tolerance.
        change: value of `measure` in the last iteration.
        measure: what `tol` applies to, such as "gain in log-likelihood per annotation".
        stacklevel: frames between here and the caller's `fit`.
    """
    warnings.warn(
        f"{title} did not converge in {max_iter} iterations: the last {measure} was {change:.1e} "
        f"({Setting('tol', tol)}). Posteriors may still change; raise {Setting('max_iter')}, or {Setting('tol')} if "
        "that is accurate enough.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result(ABC):
    """Base class of all results; each kind of labels adds its answers, and the columns for them.

    Attributes:
        method: name of the method, as in `crowdzoo.aggregation.create`.
        tasks: names of the tasks, [N].
        annotators: names of the annotators, [R].
        skills: one number per annotator, higher is better, [R]; its meaning depends on the method (see its class). None
            if the method has none.
        history: objective (nats) of each iteration; never falls.
        converged: whether the objective converged within the tolerance.
        num_iterations: number of iterations.
        notes: sentences on what to check before using the result; see `notes_against_votes`. Usually empty.
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
        """HTML for notebooks: the sizes and the first answers."""
        first: Columns = {name: values[:SHOWN] for name, values in self._answer_columns().items() if values is not None}
        return f"<p>{html.escape(repr(self))}</p>{_frame(first).to_html(index=False)}"

    def to_frame(self) -> pd.DataFrame:
        """Returns the table of answers without columns of lists, such as posteriors. Needs pandas."""
        return _frame(self._answer_columns())

    def to_polars(self) -> Any:
        """Returns `to_frame` as a polars frame. Needs polars."""
        import polars

        return polars.from_arrow(_flat(self._answer_columns()))

    def annotator_frame(self) -> pd.DataFrame:
        """Returns one row per annotator with what the method learned, without columns of lists. Needs pandas."""
        return _frame(self._annotator_columns())

    def to_parquet(self, folder: str | os.PathLike[str]) -> Path:
        """Writes a folder in a single step: two tables, and `summary.json` with everything else.

        Args:
            folder: folder to create, with its parents. An earlier result there is replaced.

        Returns:
            The folder.

        Raises:
            DataError: the folder contains other files; they are left unchanged.
        """
        return self._write(folder)

    @checked(file_format=Choice(TABLE_FORMATS))
    def write(self, path: str | os.PathLike[str], file_format: str = "parquet") -> Path:
        """Writes the folder of `to_parquet` with tables in another format, or only the table of answers.

        `from_parquet` reads only folders of Parquet files.

        Args:
            path: a folder; or a file ending in .csv, .parquet, .jsonl or .xlsx, for only the table of answers (one row
                per task, for sentences per token).
            file_format: format of the tables in a folder: "parquet", "csv", "jsonl" or "xlsx". CSV and .xlsx leave out
                columns of lists.

        Returns:
            The path.

        Raises:
            DataError: the folder contains other files; they are left unchanged.
            ConfigError: any other format.
        """
        if (ending := Path(path).suffix[1:]) in TABLE_FORMATS:
            from crowdzoo.files.writing import atomic_file, write_table

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
        from crowdzoo.aggregation.result_files import write_result
        from crowdzoo.files.writing import table_of

        tables = [table_of(columns) for columns in self._tables()]
        files = [*(name.replace(".parquet", f".{file_format}") for name in self.files[:-1]), self.files[-1]]
        return write_result(folder, files, tables, self._summary(), more)

    @classmethod
    def from_parquet(cls: type[R], folder: str | os.PathLike[str]) -> R:
        """Reads a result of `to_parquet`; every array is restored exactly.

        Raises:
            DataError: a file is missing or damaged, or the result is for another kind of labels.
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
        """Reads the attributes that the class adds, and `tasks`."""

    @abstractmethod
    def _answer_columns(self) -> Columns:
        """Columns of the first table by name, [n, ...]; None for columns to leave out."""

    def _alone(self) -> pa.Table:
        """The table of answers as a file of its own."""
        from crowdzoo.files.writing import table_of

        return table_of(self._answer_columns())

    def _annotator_columns(self: Any) -> Columns:
        """Columns of the annotators' table by name, [R, ...]."""
        return {"annotator": self.annotators, "annotations": self.annotations_per_annotator, **self._of_annotators()}

    def _of_annotators(self) -> Columns:
        """Columns that the class adds to the annotators' table."""
        return {}

    def _tables(self) -> tuple[Columns, ...]:
        """The tables in the order of `files`; the annotators' table is the last."""
        return self._answer_columns(), self._annotator_columns()

    @abstractmethod
    def _more(self) -> dict[str, Any]:
        """Entries that the class adds to the summary."""

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
    """The table without columns of lists."""
    from crowdzoo.files.writing import table_of

    return table_of({name: values for name, values in columns.items() if values is None or values.ndim == 1})


def names_and_counts(annotations: Annotations) -> dict[str, Any]:
    """Names of tasks and annotators, and their numbers of annotations, as attributes of a result."""
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


# === What methods refuse ===


def check_annotations(annotations: Annotations, method: str, kind: LabelKind, what: str) -> None:
    """Raises an error for other types, for annotations of another kind, and for empty ones.

    Args:
        annotations: the argument to check.
        method: title of the aggregator, for the message.
        kind: kind that the method accepts.
        what: noun for one annotation, for the message.

    Raises:
        DataError: one of these.
    """
    require_annotations(annotations, f"{method}: fit", "fit_predict(frame), or fit on ")
    require_kind(annotations.label_kind, method, kind)
    if len(annotations) == 0:
        raise DataError(f"{method} needs at least one {what}: there are no annotations.")


def check_classification(annotations: Annotations, method: str, *, matrices: bool = True) -> None:
    """Raises an error for another kind, no classes, or several annotations by one annotator for a task.

    Args:
        annotations: the argument to check.
        method: title of the aggregator, for the message.
        matrices: whether the method needs a confusion matrix per annotator.

    Raises:
        DataError: wrong kind; no class, or more than fit into memory; repeated annotations, unless the method only
            counts labels.
    """
    require_annotations(annotations, f"{method}: fit", "fit_predict(frame), or fit on ")
    require_kind(annotations.label_kind, method, CLASSIFICATION)
    if method not in COUNTING:
        annotations.check_no_repeats(method, unless="use method majority-vote or dawid-skene, which count them all")
    if annotations.num_classes == 0:
        raise DataError(f"{method} needs at least one class: there are no annotations and no `classes` were given.")
    num_tasks, num_annotators = annotations.num_tasks, annotations.num_annotators
    short = short_of_memory(annotations.num_classes, num_tasks, num_annotators if matrices else 0)
    if short:
        raise DataError(
            f"{method}: {annotations.num_classes:,} classes of {num_tasks:,} tasks and {num_annotators:,} annotators "
            f"need {short}. Is the label a free text? Name the column of classes, or merge rare classes."
        )


def short_of_memory(num_classes: int, num_tasks: int, num_annotators: int) -> str:
    """How much memory posteriors and confusion matrices need; empty if enough is free."""
    from crowdzoo.process import available_memory

    needed, memory = 8 * num_classes * (num_tasks + num_annotators * num_classes), available_memory()
    if memory is None or needed <= memory:
        return ""
    return f"about {needed / 1e9:.3g} GB of memory, but {memory / 1e9:.3g} GB are free"


def check_ratings(annotations: Annotations, method: str, low: float | None, high: float | None) -> None:
    """Raises an error for another kind, no ratings, or ratings outside a scale.

    Args:
        annotations: the argument to check.
        method: title of the aggregator, for the message.
        low: lowest rating of the scale, or None.
        high: highest rating of the scale, or None.

    Raises:
        ConfigError: an invalid scale.
        DataError: wrong kind, no annotations, a rating outside, or one so large that sums lose the others.
    """
    check_annotations(annotations, method, REGRESSION, "rating")
    annotations.check_scale(low, high)
    sizes = np.abs(annotations.labels)
    if 0 < (most := sizes.max()) < 1e-100:
        raise DataError(f"{method}: no rating is larger than {most:g}, and their squares are 0. Use another unit.")
    if most > LARGEST * (usual := np.quantile(sizes[sizes > 0], 0.5, method="lower") if most else 0.0):
        row = annotations.select_rows(np.flatnonzero(sizes == most)[:1])
        annotator, task = row.annotators[row.annotator_ids[0]], row.tasks[row.task_ids[0]]
        raise DataError(
            f"{method}: annotator {short_repr(annotator)} gave task {short_repr(task)} "
            f"{row.labels[0]:g}, next to which the usual {usual:g} loses all precision. Correct or remove that rating."
        )
