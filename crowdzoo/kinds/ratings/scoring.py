"""Comparison of ratings with gold."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crowdzoo.errors import DataError
from crowdzoo.kinds.scoring import Flags, Floats, Rows, Scores, Scoring, Sums
from crowdzoo.metrics import mean_absolute_error, r2_score, root_mean_squared_error


class RatingScoring(Scoring[Floats, Floats]):
    """Gold is ratings, float [N], NaN where unknown; answers are ratings, [n] or [n, 1]."""

    metric, metric_title = "r2", "R²"
    titles: ClassVar = {"r2": "R²", "rmse": "RMSE"}

    def known(self, gold: Floats) -> Flags:
        """Tasks whose rating is a number."""
        return ~np.isnan(gold)

    def sums(self, gold: Floats, answers: Floats) -> Sums:
        """Negative absolute errors, in the labels' unit."""
        return -np.abs(self._errors(gold, answers)), np.ones(len(gold))

    def by_task(self, gold: Floats, answers: Floats) -> Floats:
        """Contributions to R²."""
        variance = float(np.var(gold, dtype=np.float64)) or 1.0
        return np.asarray(1 - self._errors(gold, answers) ** 2 / variance)

    def score(self, gold: Floats, answers: Floats) -> Scores:
        """R², mean absolute error and root of the mean squared error (in the labels' unit).

        Raises:
            DataError: an answer that is not a finite number.
        """
        ratings = np.asarray(answers, np.float64).reshape(len(gold))
        infinite = np.flatnonzero(~np.isfinite(ratings))
        if len(infinite):
            tasks = f"{len(infinite):,} of the {len(ratings):,} tasks"
            raise DataError(f"the model answers {ratings[infinite[0]]} to {tasks}")
        return {
            "r2": r2_score(gold, ratings),
            "mae": mean_absolute_error(gold, ratings),
            "rmse": root_mean_squared_error(gold, ratings),
        }

    def rows(self, gold: Floats, answers: Floats, split: str = "") -> Rows:
        """R² and errors."""
        prefix = f"{split} " if split else ""
        if not len(gold):
            return [(f"{prefix}errors against gold", "unknown (on 0 tasks with gold)")]
        scores = self.score(gold, answers)
        return [
            (f"{prefix}R² against gold", f"{scores['r2']:.4f} (on {len(gold):,} tasks with gold)"),
            (f"{prefix}MAE", f"{scores['mae']:.4f}"),
            (f"{prefix}RMSE", f"{scores['rmse']:.4f}"),
        ]

    def _errors(self, gold: Floats, answers: Floats) -> Floats:
        return np.asarray(answers, np.float64).reshape(len(gold)) - gold


SCORING = RatingScoring()
