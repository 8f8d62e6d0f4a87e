"""Ratings: one number for each task."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from crowdzoo.checks.option_types import number
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.kinds.base import EXPORT_OPTIONS, Kind, Rows
from crowdzoo.kinds.training_set import TrainingSet
from crowdzoo.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from crowdzoo.reading.instances.gold import read_gold_ratings
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS
from crowdzoo.training.encode_rows import encode_rows


class Ratings(Kind):
    """Labels are numbers on a scale; models are regressors of instances of any kind."""

    name = "regression"
    counted = "ratings"
    reading = ("low", "high", *ROW_OPTIONS, *EXPORT_OPTIONS, "image", *LAYOUT_OPTIONS)
    aggregation = "rating-em"
    metric = "r2"
    metric_title = "R²"
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
        return rows if gold is None else rows + self._gold_rows("", gold, result.estimates)

    def targets(self, result: Any, annotations: Annotations) -> np.ndarray:
        """Estimates, float64 [N]; NaN where nobody rated: the estimate there is the others' mean, nothing to learn."""
        return np.where(annotations.redundancy > 0, result.estimates, np.nan)

    # === Training ===

    def gold_column(self, table: Instances, crowd: Annotations, path: Path) -> np.ndarray:
        """True ratings, float64 [N], NaN where the table does not know."""
        return table.gold_ratings(path)

    # === Evaluation ===

    def scores(self, truth: np.ndarray, answers: Mapping[str, np.ndarray], **about: Any) -> dict[str, Any]:
        """R², mean absolute error and root of the mean squared error (in the labels' unit) on ratings, float [N].

        Raises:
            DataError: an answer that is no finite number.
        """
        found = answers["value"].astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(found))
        if len(bad):
            raise DataError(f"the model answers {found[bad[0]]} to {len(bad):,} of the {len(found):,} tasks")
        return {
            "r2": r2_score(truth, found),
            "mae": mean_absolute_error(truth, found),
            "rmse": root_mean_squared_error(truth, found),
        }

    def training_rows(self, model: Any, encoder: Any, data: TrainingSet) -> Rows:
        """Errors on the tasks that were trained on and on the others."""
        rows = []
        for name, chosen in (("training ", data.training), ("held-out ", ~data.training)):
            known = chosen & ~np.isnan(data.gold)
            if known.any():
                found = model.predict(encode_rows(data.x, known, encoder), verbose=0)
                rows += self._gold_rows(name, data.gold[known], found[:, 0])
        return rows

    def _gold_rows(self, name: str, gold: np.ndarray, found: np.ndarray) -> Rows:
        known = ~np.isnan(gold)
        if not known.any():
            return [(f"{name}errors against gold", "unknown (on 0 tasks with gold)")]
        scores = self.scores(gold[known], {"value": found[known]})
        return [
            (f"{name}R² against gold", f"{scores['r2']:.4f} (on {known.sum():,} tasks with gold)"),
            (f"{name}MAE", f"{scores['mae']:.4f}"),
            (f"{name}RMSE", f"{scores['rmse']:.4f}"),
        ]


def _span(values: np.ndarray) -> str:
    return f"{values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}"


KIND = Ratings()
