"""How methods for ratings are compared."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import DataError
from crowdzoo.kinds.compared import Compared, Scores
from crowdzoo.kinds.ratings.scoring import SCORING
from crowdzoo.kinds.scoring import Scoring
from crowdzoo.training.held_out_ratings import rating_evidence, rating_scores


class ComparedRatings(Compared):
    """By the mean absolute error, negative, in the labels' unit. A row of answers has a task's rating."""

    scoring: Scoring = SCORING
    title = "mean absolute error, negative"
    baseline = "mean"
    quick: ClassVar[tuple[str, ...]] = ("mean", "median", "rating-em")

    def checked(self, gold: Any) -> NDArray[Any]:
        """Numbers, NaN where unknown."""
        found = self.array_of(gold)
        if found.dtype.kind not in "iuf":
            raise DataError(f"compare: gold must be numbers, NaN where unknown, got values of type {found.dtype}.")
        return found.astype(float)

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Estimates."""
        return np.asarray(result.estimates[tasks, None])

    def told(self, tasks: NDArray[Any]) -> Scores:
        """Gold itself."""
        return np.asarray(self.gold[tasks])

    def hidden(self, rows: NDArray[np.bool_] | None = None) -> Any:
        """See `held_out_ratings.rating_scores`."""
        evidence, asked = rating_evidence(self.annotations, rows), self.annotations.task_ids
        counts = np.bincount(asked if rows is None else asked[rows], minlength=self.num_tasks)
        return lambda answers, tasks: (rating_scores(answers[:, 0], evidence.of(tasks)), counts[tasks])


COMPARED = ComparedRatings
