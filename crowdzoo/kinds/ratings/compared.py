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
        ratings = self.array_of(gold)
        if ratings.dtype.kind not in "iuf":
            raise DataError(f"compare: gold must be numbers, NaN where unknown, got values of type {ratings.dtype}.")
        return ratings.astype(float)

    def answers(self, result: Any, tasks: NDArray[Any], rows: NDArray[np.bool_] | None) -> Scores:
        """Estimates."""
        return np.asarray(result.estimates[tasks, None])

    def gold_targets(self, tasks: NDArray[Any]) -> Scores:
        """Gold itself."""
        return np.asarray(self.gold[tasks])

    def hidden_sums(self, rows: NDArray[np.bool_] | None = None) -> Any:
        """See `held_out_ratings.rating_scores`."""
        evidence, counts = rating_evidence(self.annotations, rows), self.num_hidden(rows)
        return lambda answers, tasks: (rating_scores(answers[:, 0], evidence.of(tasks)), counts[tasks])


COMPARED = ComparedRatings
