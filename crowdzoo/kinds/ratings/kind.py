"""Ratings: one number per task."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import REGRESSION
from crowdzoo.kinds.aggregating import Aggregating
from crowdzoo.kinds.kind import FOR_CLASSES, OF_IMAGES, Kind, KindOptions, Option, Prediction, loaded, made
from crowdzoo.kinds.ratings.scoring import SCORING
from crowdzoo.kinds.reading import Reading
from crowdzoo.kinds.scoring import Codes, Floats, Rows
from crowdzoo.kinds.training import Training
from crowdzoo.reading.instances.gold import read_gold_ratings
from crowdzoo.reading.instances.instances import Instances

if TYPE_CHECKING:
    from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation

NO_SCALE = "an end of a scale of ratings belongs to --kind regression."


class RatingAggregating(Aggregating[Annotations, "RatingAggregation", Floats]):
    """Results have one estimate per task."""

    def rows(self, result: RatingAggregation, crowd: Annotations, gold: Floats | None, used_gold: bool) -> Rows:
        """Ranges of estimates and of annotators' biases, and errors against gold."""
        rows = [("estimates", _span(result.estimates))] if len(crowd) else []
        if result.biases is not None:
            rows.append(("annotators' biases", _span(result.biases)))
        return rows if gold is None else rows + SCORING.rows_of_known(gold, result.estimates)

    def consensus(self, result: RatingAggregation, crowd: Annotations, tasks: Codes) -> Iterable[tuple[float, float]]:
        """Estimates; certainty depends on the standard error relative to the spread of the estimates."""
        estimates = result.estimates[tasks]
        spread = max(estimates.std(), 1e-9) if len(tasks) else 1.0
        return zip(estimates.tolist(), 1 - result.standard_errors[tasks] / spread, strict=True)


class RatingTraining(Training[Annotations, "RatingAggregation", Floats]):
    """Models are regressors for any kind of instances."""

    fit_aggregated = "CrowdModel(base).fit(x, result.estimates)"
    starts_warm = True

    def gold_column(self, table: Instances, crowd: Annotations, path: Path) -> Floats:
        """True ratings, [N], NaN where the table has none."""
        return table.gold_ratings(path)

    def targets(self, result: RatingAggregation, annotations: Annotations) -> Floats:
        """Estimates, [N]; NaN for tasks without ratings, whose estimate is just the mean of the others."""
        return np.where(annotations.redundancy > 0, result.estimates, np.nan)


def _span(values: Floats) -> str:
    return f"{values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}"


# Gold is true ratings, [N], NaN where unknown
READING = Reading[Annotations, Floats](REGRESSION, "ratings", read_gold_ratings)
AGGREGATING = RatingAggregating(REGRESSION, "rating-em")
RATINGS = Kind(
    labels=REGRESSION,
    options=KindOptions(
        ("low", "high", *OF_IMAGES),
        refused={
            **FOR_CLASSES,
            "classes": "ratings have no classes; leave it out.",
            "use_gold": "no method for ratings takes known values; leave it out.",
        },
        own=(
            Option(
                "low",
                "ratings: lowest value of the scale; a rating below is an invalid row",
                metavar="X",
                is_number=True,
                refusal=NO_SCALE,
            ),
            Option("high", "ratings: highest value of the scale", metavar="X", is_number=True, refusal=NO_SCALE),
        ),
        scale=("low", "high"),
    ),
    reading=READING,
    aggregation=AGGREGATING,
    scoring=SCORING,
    training=RatingTraining(REGRESSION, READING, AGGREGATING, SCORING),
    prediction=Prediction("value", ("task", "value")),
    load_page=loaded("crowdzoo.kinds.ratings.page:RatingPage"),
    load_measure=loaded("crowdzoo.kinds.ratings.measure:RatingMeasure"),
    load_questions=made("crowdzoo.kinds.ratings.questions:RatingQuestions"),
    load_records=made("crowdzoo.kinds.ratings.records:RatingRecords"),
)
