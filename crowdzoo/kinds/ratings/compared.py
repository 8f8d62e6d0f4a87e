"""How methods for ratings are compared."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import DataError
from crowdzoo.kinds.compared import Compared, Scores, Summed
from crowdzoo.metrics import r2_score
from crowdzoo.training.held_out_ratings import rating_evidence, rating_scores


class ComparedRatings(Compared):
    """By the mean absolute error, negative, in the labels' unit. A row of answers has a task's rating."""

    title = "mean absolute error, negative"
    baseline = "mean"
    quick: ClassVar[tuple[str, ...]] = ("mean", "median", "rating-em")

    @classmethod
    def gold_of(cls, gold: Any) -> Any:
        """Ratings; of preferences true scores."""
        values = getattr(gold, "scores", gold)
        return None if np.isnan(values).all() else values

    def checked(self, gold: Any) -> NDArray[Any]:
        """Numbers, NaN where unknown."""
        found = self.array_of(gold)
        if found.dtype.kind not in "iuf":
            raise DataError(f"compare: gold must be numbers, NaN where unknown, got values of type {found.dtype}.")
        return found.astype(float)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Those that are numbers."""
        return ~np.isnan(self.gold)

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Estimates."""
        return np.asarray(result.estimates[tasks, None])

    def told(self, tasks: NDArray[Any]) -> Scores:
        """Gold itself."""
        return np.asarray(self.gold[tasks])

    def right(self, answers: Scores, tasks: NDArray[Any]) -> Summed:
        """Negative absolute errors."""
        known = self.known[tasks]
        return np.where(known, -np.abs(answers[:, 0] - self.gold[tasks]), 0), known.astype(float)

    def hidden(self, rows: NDArray[np.bool_] | None = None) -> Any:
        """See `held_out_ratings.rating_scores`."""
        evidence, asked = rating_evidence(self.annotations, rows), self.annotations.task_ids
        counts = np.bincount(asked if rows is None else asked[rows], minlength=self.num_tasks)
        return lambda answers, tasks: (rating_scores(answers[:, 0], evidence.of(tasks)), counts[tasks])

    def figures(self, answers: Scores, tasks: NDArray[Any]) -> dict[str, float]:
        """R² and the root of the mean squared error, in the labels' unit."""
        known = self.known[tasks]
        gold, found = self.gold[tasks][known], answers[known, 0]
        return {"R²": r2_score(gold, found), "RMSE": float(np.sqrt(np.mean((found - gold) ** 2)))}


COMPARED = ComparedRatings
