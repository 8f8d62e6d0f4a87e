"""RatingAggregation: the result of every aggregator of ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Columns, Result

if TYPE_CHECKING:
    from crowdzoo.aggregation.result_files import ReadResult


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RatingAggregation(Result):
    """Result for ratings: one number per task, and what was learned about the annotators.

    `to_parquet` writes `tasks.parquet` (task, estimate, standard_error, annotations), `annotators.parquet` (annotator,
    annotations, skill, bias, precision) and `summary.json`.

    With N tasks and R annotators; ratings, estimates, errors and biases are in the unit of the labels:

    Attributes:
        estimates: estimates of the true rating, [N]. A task without annotations has the mean of the others.
        standard_errors: standard errors of the estimates under the method's model, [N]; the spread of the tasks for
            tasks without ratings.
        biases: mean difference of an annotator's ratings from the truth, [R], anchored so that biases sum to zero over
            all annotations. None if the method has none.
        precisions: inverse variance of an annotator's rating around truth plus bias, [R]; None if the method has none.
        skills: share of the truth in the variance of an annotator's ratings, V / (V + e_r) with V the variance of the
            true ratings and e_r the annotator's mean squared error, [R], from 0 to 1. The estimate of e_r depends on
            the method (see its class); `rating-em` also multiplies by the probability that the ratings follow the
            truth.
        history: objective (nats, for ratings in units of their standard deviation) after each iteration; never falls.
        converged: whether the objective converged within the tolerance.
        num_iterations: number of iterations; 0 if the method does not iterate.
        tasks: names of the tasks, [N].
        annotators: names of the annotators, [R].
        annotations_per_task: int64 [N]; 0 marks the tasks whose estimate is only the mean of the others.
        annotations_per_annotator: int64 [R].
        method: name of the method, as in `crowdzoo.aggregation.RATING_METHODS`.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import RatingMean
        >>> ratings = Annotations.from_arrays([1, 1, 2, 2], ["ann", "bob"] * 2, [3, 4, 1, 2], kind="regression")
        >>> result = RatingMean().fit(ratings)
        >>> result.estimates.tolist()
        [3.5, 1.5]
        >>> result.annotations_per_task.tolist()
        [2, 2]
    """

    kind: ClassVar[str] = "regression"
    answered: ClassVar = (["task"], "estimate", "agg_label")

    estimates: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    biases: NDArray[np.float64] | None = None
    precisions: NDArray[np.float64] | None = None
    skills: NDArray[np.float64]
    num_iterations: int = 0
    annotations_per_task: NDArray[np.int64]
    annotations_per_annotator: NDArray[np.int64]

    @classmethod
    def _read(cls, stored: ReadResult) -> dict[str, Any]:
        tasks, annotators, _ = cls.files
        return {
            "estimates": stored.numbers(tasks, "estimate"),
            "standard_errors": stored.numbers(tasks, "standard_error"),
            "biases": stored.optional(annotators, "bias"),
            "precisions": stored.optional(annotators, "precision"),
            **stored.names_and_counts(tasks, annotators),
        }

    def _answer_columns(self) -> Columns:
        return {
            "task": self.tasks,
            "estimate": self.estimates,
            "standard_error": self.standard_errors,
            "annotations": self.annotations_per_task,
        }

    def _of_annotators(self) -> Columns:
        return {"skill": self.skills, "bias": self.biases, "precision": self.precisions}

    def _more(self) -> dict[str, Any]:
        return {"kind": self.kind}
