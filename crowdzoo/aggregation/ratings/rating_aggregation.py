"""RatingAggregation: what every aggregator of ratings gives back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.result import FILES
from crowdzoo.aggregation.result_files import ReadResult, write_result
from crowdzoo.errors import DataError
from crowdzoo.tables.scale import check_scale

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from crowdzoo.tables.annotations import Annotations

__all__ = ["RatingAggregation", "agreement", "check_ratings"]


@dataclass(frozen=True, eq=False)
class RatingAggregation:
    """One number per task out of many annotators' ratings, and what was learnt about the annotators.

    With N tasks and R annotators; ratings, estimates, errors and biases are in the labels' unit:

    Attributes:
        estimates: of the true rating, [N]. A task without annotations has the mean of the others.
        standard_errors: of the estimates, [N], as the method's model has them; where nobody rated, the spread of the
            tasks.
        biases: what an annotator's ratings lie above the truth on average, [R]; anchored: over all annotations they
            sum to zero. None where the method has none.
        precisions: one over the variance of an annotator's rating about truth and bias, [R]; None where the
            method has none.
        reliability: share of the variance of an annotator's ratings that the truth would make up,
            V / (V + e_r) with V the variance of the true ratings and e_r the annotator's mean squared error, [R],
            from 0 to 1. How e_r is found is the method's (see its class).
        history: the objective (nats, of ratings in units of their standard deviation) after each iteration; never
            falls.
        converged: whether the objective stood still within the tolerance.
        num_iterations: how many iterations it took; 0 where nothing is iterated.
        tasks: names of the tasks, [N].
        annotators: names of the annotators, [R].
        annotations_per_task: int64 [N]; 0 marks the tasks whose estimate is only the mean of the others.
        annotations_per_annotator: int64 [R].
        method: the algorithm's name, as in `crowdzoo.aggregation.RATING_METHODS`.
    """

    estimates: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    biases: NDArray[np.float64] | None
    precisions: NDArray[np.float64] | None
    reliability: NDArray[np.float64]
    history: tuple[float, ...]
    converged: bool
    num_iterations: int
    tasks: NDArray[Any]
    annotators: NDArray[Any]
    annotations_per_task: NDArray[np.int64]
    annotations_per_annotator: NDArray[np.int64]
    method: str

    @classmethod
    def of(
        cls,
        method: str,
        annotations: Annotations,
        estimates: NDArray[np.float64],
        standard_errors: NDArray[np.float64],
        reliability: NDArray[np.float64],
        *,
        biases: NDArray[np.float64] | None = None,
        precisions: NDArray[np.float64] | None = None,
        history: tuple[float, ...] = (),
        converged: bool = True,
        num_iterations: int = 0,
    ) -> RatingAggregation:
        """The result for a table of annotations: adds its names and counts to what was found.

        Args:
            method: see the attribute of that name, as for the arguments that follow.
            annotations: N tasks, R annotators.
            estimates: [N].
            standard_errors: [N].
            reliability: [R].
            biases: [R], or None.
            precisions: [R], or None.
            history: nats.
            converged: whether it did.
            num_iterations: how many there were.
        """
        return cls(
            estimates=estimates,
            standard_errors=standard_errors,
            biases=biases,
            precisions=precisions,
            reliability=reliability,
            history=history,
            converged=converged,
            num_iterations=num_iterations,
            tasks=annotations.tasks,
            annotators=annotations.annotators,
            annotations_per_task=annotations.redundancy,
            annotations_per_annotator=np.bincount(annotations.annotator_ids, minlength=annotations.num_annotators),
            method=method,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a task: `task`, `estimate`, `standard_error`, `annotations`. Needs pandas."""
        return self._tasks_table().to_pandas()

    def annotator_frame(self) -> pd.DataFrame:
        """One row an annotator: `annotator`, `annotations`, `reliability`; `bias` and `precision` where there are any.

        Needs pandas.
        """
        return self._annotators_table().to_pandas()

    def to_parquet(self, folder: str | Path) -> Path:
        """Writes a folder that appears whole or not at all.

        `tasks.parquet` (task, estimate, standard_error, annotations), `annotators.parquet` (annotator, annotations,
        reliability, bias, precision) and `summary.json` (everything else).

        Args:
            folder: is made, with its parents. An earlier result there is replaced.

        Returns:
            The folder.

        Raises:
            DataError: the folder holds other files; they are left alone.
        """
        return write_result(folder, FILES, (self._tasks_table(), self._annotators_table()), self._summary())

    @classmethod
    def from_parquet(cls, folder: str | Path) -> RatingAggregation:
        """Reads what `to_parquet` wrote; every array comes back as it was.

        Raises:
            DataError: a file is missing, or it is an aggregation of classes.
        """
        found = ReadResult(folder, FILES, "an aggregation")
        tasks, annotators, _ = FILES
        if not found.has(tasks, "estimate"):
            raise DataError(f"{folder} holds an aggregation of classes: read it with Aggregation.from_parquet.")

        def optional(column: str) -> Any:
            return found.numbers(annotators, column) if found.has(annotators, column) else None

        return cls(
            estimates=found.numbers(tasks, "estimate"),
            standard_errors=found.numbers(tasks, "standard_error"),
            biases=optional("bias"),
            precisions=optional("precision"),
            reliability=found.numbers(annotators, "reliability"),
            history=tuple(found.list_of_numbers("history", None).tolist()),
            converged=found.value("converged", bool),
            num_iterations=found.value("num_iterations", int),
            tasks=found.names(tasks, "task"),
            annotators=found.names(annotators, "annotator"),
            annotations_per_task=found.numbers(tasks, "annotations", whole=True),
            annotations_per_annotator=found.numbers(annotators, "annotations", whole=True),
            method=found.value("method", str),
        )

    def _tasks_table(self) -> pa.Table:
        import pyarrow as pa

        return pa.table(
            {
                "task": pa.array(self.tasks),
                "estimate": pa.array(self.estimates, pa.float64()),
                "standard_error": pa.array(self.standard_errors, pa.float64()),
                "annotations": pa.array(self.annotations_per_task, pa.int64()),
            }
        )

    def _annotators_table(self) -> pa.Table:
        import pyarrow as pa

        columns = {
            "annotator": pa.array(self.annotators),
            "annotations": pa.array(self.annotations_per_annotator, pa.int64()),
            "reliability": pa.array(self.reliability, pa.float64()),
        }
        for name, values in (("bias", self.biases), ("precision", self.precisions)):
            if values is not None:
                columns[name] = pa.array(values, pa.float64())
        return pa.table(columns)

    def _summary(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "kind": "regression",
            "converged": self.converged,
            "num_iterations": self.num_iterations,
            "history": list(self.history),
            "num_tasks": len(self.tasks),
            "num_annotators": len(self.annotators),
            "num_annotations": int(self.annotations_per_task.sum()),
            "num_tasks_without_annotations": int((self.annotations_per_task == 0).sum()),
        }


def check_ratings(annotations: Annotations, method: str, low: float | None, high: float | None) -> None:
    """Refuses what is not ratings, no ratings at all, and ratings outside of a scale.

    Args:
        annotations: to look at.
        method: the aggregator's title, for the message.
        low: lowest rating, or None.
        high: highest rating, or None.

    Raises:
        ConfigError: an impossible scale.
        DataError: another kind, no annotation, or a rating outside.
    """
    if annotations.kind != "regression":
        raise DataError(
            f"{method} takes annotations of kind 'regression' (ratings). Received: kind {annotations.kind!r}; "
            "read them with kind='regression', or use a method for classes."
        )
    if len(annotations) == 0:
        raise DataError(f"{method} needs at least one rating: there are no annotations.")
    check_scale(annotations, low, high)


def agreement(annotations: Annotations, estimates: NDArray[np.float64]) -> NDArray[np.float64]:
    """How reliable annotators are, judged by the mean of the others who rated the same tasks.

    `V / (V + e_r)`: V is the variance of the estimates, e_r the mean squared difference between r's ratings and the
    mean of the task's other ratings. Annotators who shared no task have the mean error of all.

    Args:
        annotations: ratings of N tasks by R annotators.
        estimates: [N].

    Returns:
        [R], from 0 to 1.
    """
    tasks, annotators, ratings = annotations.task_ids, annotations.annotator_ids, annotations.labels
    counts = annotations.redundancy
    others = counts[tasks] - 1
    shared = others > 0
    totals = np.bincount(tasks, ratings, annotations.num_tasks)
    rest = (totals[tasks] - ratings) / np.maximum(others, 1)
    squares = np.where(shared, np.square(ratings - rest), 0.0)
    number = np.bincount(annotators[shared], minlength=annotations.num_annotators)
    sums = np.bincount(annotators, squares, annotations.num_annotators)
    pooled = squares.sum() / max(shared.sum(), 1)
    errors = np.where(number > 0, sums / np.maximum(number, 1), pooled)
    spread = estimates[counts > 0].var()
    both = spread + errors
    return np.where(both > 0, spread / np.where(both > 0, both, 1.0), 1.0)
