"""Ratings: one number for each task."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from crowdzoo.checks.option_types import number
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.base import EXPORT_OPTIONS, Kind
from crowdzoo.kinds.ratings.scoring import SCORING
from crowdzoo.kinds.scoring import Rows
from crowdzoo.reading.instances.gold import read_gold_ratings
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS


class Ratings(Kind):
    """Labels are numbers on a scale; models are regressors of instances of any kind."""

    name = "regression"
    counted = "ratings"
    reading = ("low", "high", *ROW_OPTIONS, *EXPORT_OPTIONS, "image", *LAYOUT_OPTIONS)
    aggregation = "rating-em"
    metric = "r2"
    metric_title = "R²"
    scoring = SCORING
    answer = "value"
    header = ("task", "value")
    scale = ("low", "high")
    fit_aggregated = "CrowdModel(base).fit(x, result.estimates)"
    refused: ClassVar = {
        "classes": "ratings have no classes; leave it out.",
        "calibrate": "calibration is for classes; leave it out.",
        "predictions": "a report compares with predictions of classes only; leave it out.",
        "use_gold": "no method for ratings takes known values; leave it out.",
    }

    def add_arguments(self, command: argparse.ArgumentParser) -> None:
        """The scale."""
        command.add_argument(
            "--low",
            type=number(),
            metavar="X",
            help="ratings: lowest value of the scale; a rating below is an invalid row",
        )
        command.add_argument("--high", type=number(), metavar="X", help="ratings: highest value of the scale")

    # === Input ===

    def gold_of(self, crowd: Annotations, path: Path | None, layout: Layout | None = None) -> np.ndarray | None:
        """True ratings, float64 [N], NaN where the file does not know."""
        return None if path is None else read_gold_ratings(path, crowd.tasks, layout)

    # === Aggregation ===

    def result_rows(self, result: Any, crowd: Annotations, gold: np.ndarray | None, used_gold: bool) -> Rows:
        """Range of the estimates and of the annotators' biases, and the errors against gold."""
        rows = [("estimates", _span(result.estimates))] if len(crowd) else []
        if result.biases is not None:
            rows.append(("annotators' biases", _span(result.biases)))
        return rows if gold is None else rows + self.gold_rows(gold, result.estimates)

    def targets(self, result: Any, annotations: Annotations) -> np.ndarray:
        """Estimates, float64 [N]; NaN where nobody rated: the estimate there is the others' mean, nothing to learn."""
        return np.where(annotations.redundancy > 0, result.estimates, np.nan)

    # === Training ===

    def gold_column(self, table: Instances, crowd: Annotations, path: Path) -> np.ndarray:
        """True ratings, float64 [N], NaN where the table does not know."""
        return table.gold_ratings(path)


def _span(values: np.ndarray) -> str:
    return f"{values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}"


KIND = Ratings()
