"""Comparison of several labels per task with gold."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crowdzoo.kinds.scoring import Codes, Flags, Floats, Scores, Scoring, Sums


class LabelScoring(Scoring[Codes, Floats]):
    """Gold is 1, 0 or -1 (unknown) for each label, int [N, J]; answers are probabilities of the labels, [n, J].

    A label is given if its probability is above one half. Labels with unknown gold are ignored.
    """

    metric, metric_title = "f1", "F1"
    titles: ClassVar = {"accuracy": "accuracy", "mean_f1": "mean F1"}

    def known(self, gold: Codes) -> Flags:
        """Tasks with at least one known label."""
        return np.asarray((gold >= 0).any(axis=1))

    def sums(self, gold: Codes, answers: Floats) -> Sums:
        """Twice the number of correct labels, and the number of true plus given labels."""
        return self._sums(gold, answers, 1)

    def score(self, gold: Codes, answers: Floats) -> Scores:
        """F1 over all labels, share of correct answers, and mean F1 of the labels that apply to some task."""
        totals, weights = self._sums(gold, answers, 0)
        rates = (totals / np.maximum(weights, 1))[(gold == 1).any(axis=0)]
        return {
            "f1": float(totals.sum() / max(weights.sum(), 1)),
            "accuracy": float(((answers > 0.5) == gold)[gold >= 0].mean()),
            "mean_f1": float(rates.mean()) if len(rates) else np.nan,
        }

    def _sums(self, gold: Codes, answers: Floats, axis: int) -> Sums:
        given, holds = (answers > 0.5) & (gold >= 0), gold == 1
        totals = 2.0 * (given & holds).sum(axis=axis)
        return totals, (given.sum(axis=axis) + holds.sum(axis=axis)).astype(float)


SCORING = LabelScoring()
