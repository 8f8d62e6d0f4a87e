"""Comparison of methods for ratings."""

from typing import ClassVar

import numpy as np

from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.measure import Deep, Measure, Scores, Sum
from crowdzoo.kinds.ratings.scoring import SCORING
from crowdzoo.kinds.scoring import Codes, Flags
from crowdzoo.training.held_out_ratings import rating_evidence, rating_scores
from crowdzoo.training.methods import AGGREGATED


class RatingMeasure(Measure[Annotations, RatingAggregation]):
    """Compare by the negative mean absolute error, in the labels' unit. A row of answers has a task's rating."""

    scoring = SCORING
    title = "mean absolute error, negative"
    baseline = "mean"
    quick: ClassVar[tuple[str, ...]] = ("mean", "median", "rating-em")
    quick_deep: ClassVar[Deep] = (  # those of docs/ratings.md
        (AGGREGATED, {}),
        ("crowdsourced-layer", {"connection": "B"}),
        ("crowdsourced-layer", {"connection": "S+B"}),
        ("rating-em", {}),
    )

    check = Measure.numbers_of

    def answers(self, result: RatingAggregation, tasks: Codes, rows: Flags | None) -> Scores:
        """Estimates."""
        return np.asarray(result.estimates[tasks, None])

    def gold_targets(self, tasks: Codes) -> Scores:
        """Gold itself."""
        return np.asarray(self.gold[tasks])

    def hidden_sums(self, rows: Flags | None = None) -> Sum:
        """See `held_out_ratings.rating_scores`."""
        evidence, counts = rating_evidence(self.annotations, rows), self.num_hidden(rows)
        return lambda answers, tasks: (rating_scores(answers[:, 0], evidence.of(tasks)), counts[tasks])
