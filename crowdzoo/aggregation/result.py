"""Aggregation: what every algorithm gives back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.against_votes import VotesWarning, notes_against_votes
from crowdzoo.aggregation.engine.block import occurrences
from crowdzoo.aggregation.engine.labels import tied_classes
from crowdzoo.aggregation.engine.threads import in_threads, num_threads
from crowdzoo.aggregation.result_files import ReadResult, write_result
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from crowdzoo.aggregation.engine.params import Params
    from crowdzoo.tables.annotations import Annotations

__all__ = ["Aggregation", "ConvergenceWarning"]

FILES = ("tasks.parquet", "annotators.parquet", "summary.json")


class ConvergenceWarning(UserWarning):
    """An algorithm stopped before its objective stood still."""


@dataclass(frozen=True, eq=False)
class Aggregation:
    """One answer per task out of many annotators' answers, and what was learnt about the annotators.

    With N tasks, R annotators, K classes:

    Attributes:
        posteriors: class probabilities, [N, K], rows sum to one. A task without annotations has the class prior.
        labels: class codes, int64 [N].
        confusions: P(annotator says l | truth k), `[annotator, true, said]`, [R, K, K], rows sum to one; None where
            the algorithm has no such model.
        class_prior: probability of each class, [K], or None.
        log_likelihood: log probability (nats) of the annotations, without priors; None where there is no model.
        history: the objective (nats, prior included) before the first iteration and after each; never falls.
        converged: whether the objective stood still within the tolerance.
        num_iterations: how many iterations the kept start took.
        tasks: names of the tasks, [N].
        annotators: names of the annotators, [R].
        classes: names of the classes, [K].
        annotations_per_task: int64 [N]; 0 marks the tasks whose answer is only the prior.
        annotations_per_annotator: int64 [R]; 0 marks the annotators whose matrix is only the prior.
        method: the algorithm's name, as in `crowdzoo.aggregation.METHODS`.
        reliability: one number an annotator, higher is better, [R]; what it measures is the method's (see its class).
            None where the method has no such number.
        difficulty: one number a task, higher is harder, [N]; None where the method has no such number.
        clusters: group of each annotator, int64 [R]; None where the method forms no groups.
        notes: sentences on what to check before using the result; see `notes_against_votes`. Empty as a rule.
    """

    posteriors: NDArray[np.float64]
    labels: NDArray[np.int64]
    confusions: NDArray[np.float64] | None
    class_prior: NDArray[np.float64] | None
    log_likelihood: float | None
    history: tuple[float, ...]
    converged: bool
    num_iterations: int
    tasks: NDArray[Any]
    annotators: NDArray[Any]
    classes: NDArray[Any]
    annotations_per_task: NDArray[np.int64]
    annotations_per_annotator: NDArray[np.int64]
    method: str
    reliability: NDArray[np.float64] | None = None
    difficulty: NDArray[np.float64] | None = None
    clusters: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        method: str,
        annotations: Annotations,
        posteriors: NDArray[np.float64],
        labels: NDArray[np.int64],
        params: Params | None = None,
        *,
        log_likelihood: float | None = None,
        history: tuple[float, ...] = (),
        converged: bool = True,
        num_iterations: int = 1,
        reliability: NDArray[np.float64] | None = None,
        difficulty: NDArray[np.float64] | None = None,
        clusters: NDArray[np.int64] | None = None,
    ) -> Aggregation:
        """The result for a table of annotations: adds its names and counts to what was found.

        Args:
            method: see the attribute of that name, as for the arguments that follow.
            annotations: N tasks, R annotators, K classes.
            posteriors: [N, K].
            labels: int64 [N].
            params: confusions and class prior, or None.
            log_likelihood: nats, or None.
            history: nats.
            converged: whether it did.
            num_iterations: of the kept start.
            reliability: [R], or None.
            difficulty: [N], or None.
            clusters: int64 [R], or None.

        Warns:
            VotesWarning: the labels are far from the votes; `notes` says how far.
        """
        notes = notes_against_votes(annotations, labels)
        if notes:
            warnings.warn(f"{method}: {' '.join(notes)}", VotesWarning, stacklevel=4)
        columns = (
            (annotations.task_ids, annotations.num_tasks),
            (annotations.annotator_ids, annotations.num_annotators),
        )
        counts = [row for part in in_threads(_occurrences, columns, num_threads()) for row in part]
        return cls(
            posteriors=posteriors,
            labels=labels,
            confusions=None if params is None else params.confusions,
            class_prior=None if params is None else params.class_prior,
            log_likelihood=log_likelihood,
            history=history,
            converged=converged,
            num_iterations=num_iterations,
            tasks=annotations.tasks,
            annotators=annotations.annotators,
            classes=np.asarray(annotations.classes),
            annotations_per_task=counts[0],
            annotations_per_annotator=counts[1],
            method=method,
            reliability=reliability,
            difficulty=difficulty,
            clusters=clusters,
            notes=notes,
        )

    def expected_accuracy(self, gold: ArrayLike) -> float:
        """Share of tasks answered right, as expected if ties were broken at random.

        Args:
            gold: class codes, int [N], -1 where unknown (those are left out).

        Raises:
            DataError: `gold` does not have one code per task, or knows none.
        """
        codes = np.asarray(gold)
        if codes.shape != self.labels.shape:
            raise DataError(f"gold is one class code per task, {self.labels.shape}. Received: shape {codes.shape}.")
        known = np.flatnonzero(codes >= 0)
        if not known.size:
            raise DataError("No task has a known class, so there is no accuracy.")
        tied = tied_classes(self.posteriors[known])
        return float((tied[np.arange(known.size), codes[known]] / tied.sum(axis=1)).mean())

    def annotator_accuracy(self) -> NDArray[np.float64] | None:
        """How often each annotator is expected to be right, sum over k of prior[k] * confusion[r, k, k], [R]."""
        if self.confusions is None or self.class_prior is None:
            return None
        return np.einsum("rkk,k->r", self.confusions, self.class_prior)

    def posteriors_of(self, annotations: Annotations) -> NDArray[np.float64]:
        """Class probabilities of other tasks by the same annotators, who are taken to be as they were found here.

        Bayes' rule with `confusions` and `class_prior` (Dawid & Skene 1979, eq. 2.5). Nothing is fitted.

        Args:
            annotations: M tasks, with this result's annotators and classes in the same order.

        Returns:
            [M, K], rows sum to one; the class prior where a task has no annotations.

        Raises:
            DataError: this result has no confusion matrices or class prior, or other annotators or classes.
        """
        from crowdzoo.aggregation.classes.dawid_skene import posteriors
        from crowdzoo.aggregation.engine.block import whole_block
        from crowdzoo.aggregation.engine.params import Params

        if self.confusions is None or self.class_prior is None:
            raise DataError(f"{self.method} has no confusion matrices and class prior to apply to other tasks.")
        check_classification(annotations, "posteriors_of")
        for name in ("annotators", "classes"):
            if not np.array_equal(getattr(self, name), getattr(annotations, name)):
                raise DataError(f"The annotations have other {name} than this result.")
        return posteriors(whole_block(annotations), Params.from_probabilities(self.confusions, self.class_prior))

    def to_frame(self) -> pd.DataFrame:
        """One row a task: `task`, `label` (names), `probability` of that label, `annotations`. Needs pandas.

        `difficulty` too where there is one.
        """
        return self._tasks_table().drop(["posteriors"]).to_pandas()

    def annotator_frame(self) -> pd.DataFrame:
        """One row an annotator: `annotator`, `annotations`, and what the method knows. Needs pandas.

        That is `accuracy` where there are confusions and a class prior, `reliability`, `cluster`.
        """
        table = self._annotators_table()
        return table.drop([name for name in table.column_names if name == "confusion"]).to_pandas()

    def to_parquet(self, folder: str | Path) -> Path:
        """Writes a folder that appears whole or not at all.

        `tasks.parquet` (task, label, probability, annotations, posteriors as a list in the order of the classes),
        `annotators.parquet` (annotator, annotations, accuracy, confusion as a list of rows `[true][said]`) and
        `summary.json` (everything else).

        Args:
            folder: is made, with its parents. An earlier result there is replaced.

        Returns:
            The folder.

        Raises:
            DataError: the folder holds other files; they are left alone.
        """
        return write_result(folder, FILES, (self._tasks_table(), self._annotators_table()), self._summary())

    @classmethod
    def from_parquet(cls, folder: str | Path) -> Aggregation:
        """Reads what `to_parquet` wrote; every array comes back as it was.

        Raises:
            DataError: a file is missing.
        """
        found = ReadResult(folder, FILES, "an aggregation")
        tasks, annotators, _ = FILES
        if found.has(tasks, "estimate"):
            raise DataError(f"{folder} holds an aggregation of ratings: read it with RatingAggregation.from_parquet.")
        classes = found.list_of_names("classes")
        size = len(classes)

        def optional(file: str, column: str, *shape: int, whole: bool = False) -> NDArray[Any] | None:
            return found.numbers(file, column, *shape, whole=whole) if found.has(file, column) else None

        return cls(
            posteriors=found.numbers(tasks, "posteriors", size),
            labels=found.codes(tasks, "label_code", size),
            confusions=optional(annotators, "confusion", size, size),
            class_prior=None
            if found.value("class_prior", list, None) is None
            else found.list_of_numbers("class_prior", size),
            log_likelihood=found.value("log_likelihood", float, int, None),
            history=tuple(found.list_of_numbers("history", None).tolist()),
            converged=found.value("converged", bool),
            num_iterations=found.value("num_iterations", int),
            tasks=found.names(tasks, "task"),
            annotators=found.names(annotators, "annotator"),
            classes=_names(classes),
            annotations_per_task=found.numbers(tasks, "annotations", whole=True),
            annotations_per_annotator=found.numbers(annotators, "annotations", whole=True),
            method=found.value("method", str),
            reliability=optional(annotators, "reliability"),
            difficulty=optional(tasks, "difficulty"),
            clusters=optional(annotators, "cluster", whole=True),
            notes=tuple(map(str, found.value("notes", list) if "notes" in found.summary else ())),
        )

    def _tasks_table(self) -> pa.Table:
        import pyarrow as pa

        chosen = self.posteriors[np.arange(len(self.labels)), self.labels] if self.posteriors.size else []
        columns = {
            "task": pa.array(self.tasks),
            "label": pa.array(np.asarray(self.classes)[self.labels]),
            "label_code": pa.array(self.labels, pa.int64()),
            "probability": pa.array(chosen, pa.float64()),
            "annotations": pa.array(self.annotations_per_task, pa.int64()),
            "posteriors": _lists(self.posteriors),
        }
        if self.difficulty is not None:
            columns["difficulty"] = pa.array(self.difficulty, pa.float64())
        return pa.table(columns)

    def _annotators_table(self) -> pa.Table:
        import pyarrow as pa

        columns = {
            "annotator": pa.array(self.annotators),
            "annotations": pa.array(self.annotations_per_annotator, pa.int64()),
        }
        accuracy = self.annotator_accuracy()
        if accuracy is not None:
            columns["accuracy"] = pa.array(accuracy, pa.float64())
        if self.reliability is not None:
            columns["reliability"] = pa.array(self.reliability, pa.float64())
        if self.clusters is not None:
            columns["cluster"] = pa.array(self.clusters, pa.int64())
        if self.confusions is not None:
            columns["confusion"] = _lists(self.confusions)
        return pa.table(columns)

    def _summary(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "classes": np.asarray(self.classes).tolist(),
            "class_prior": None if self.class_prior is None else self.class_prior.tolist(),
            "log_likelihood": self.log_likelihood,
            "converged": self.converged,
            "num_iterations": self.num_iterations,
            "history": list(self.history),
            "notes": list(self.notes),
            "num_tasks": len(self.tasks),
            "num_annotators": len(self.annotators),
            "num_annotations": int(self.annotations_per_task.sum()),
            "num_tasks_without_annotations": int((self.annotations_per_task == 0).sum()),
        }


def _occurrences(columns: Sequence[tuple[NDArray[np.int64], int]]) -> list[NDArray[np.int64]]:
    return [occurrences(codes, number) for codes, number in columns]


def _lists(values: NDArray[Any]) -> pa.Array:
    """An array [n, a, b, ...] as a column of n nested lists."""
    import pyarrow as pa

    column = pa.array(np.ascontiguousarray(values).ravel())
    for axis in range(values.ndim - 1, 0, -1):
        length, count = values.shape[axis], int(np.prod(values.shape[:axis]))
        column = pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * length, pa.int32()), column)
    return column


def _names(values: Sequence[Any]) -> NDArray[Any]:
    """Names as `Annotations` holds them: int64 where every name is an integer, else objects."""
    if all(type(value) is int for value in values):
        return np.asarray(values, np.int64)
    names = np.empty(len(values), object)
    names[:] = values
    return names


def warn_not_converged(title: str, max_iter: int, tol: float, change: float, unit: str, stacklevel: int = 3) -> None:
    """Says that an algorithm ran out of iterations, and what to do.

    Args:
        title: the algorithm's name, as text.
        max_iter: how many iterations there were.
        tol: what the last change should have fallen to.
        change: what it was.
        unit: of both, such as "nats per annotation".
        stacklevel: frames between here and the caller's `fit`.
    """
    warnings.warn(
        f"{title} did not converge in {max_iter} iterations: the last still changed the result by {change:.1e} {unit} "
        f"(tol={tol:g}). Posteriors may still move; raise max_iter, or tol if that is close enough.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )


def check_classification(annotations: Annotations, method: str) -> None:
    """Refuses annotations that are no classes, or that have no class at all."""
    if annotations.kind != "classification":
        raise DataError(f"{method} takes annotations of kind 'classification'. Received: kind {annotations.kind!r}.")
    if annotations.num_classes == 0:
        raise DataError(f"{method} needs at least one class: there are no annotations and no `classes` were given.")
