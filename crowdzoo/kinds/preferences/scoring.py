"""Comparison of tasks' scores with preferences and with true scores."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.scoring import Flags, Floats, Rows, Scores, Scoring, Sums
from crowdzoo.metrics import pair_accuracy, pairs_in_order, spearman

AT_ONCE = 1 << 24  # pairs


class PairScoring(Scoring[Annotations, Floats]):
    """Gold is preferences between N tasks; answers are scores of the tasks, [N]. Preferences count as tasks."""

    metric, metric_title = "pair_accuracy", "share of pairs"

    def known(self, gold: Annotations) -> Flags:
        """Preferences for left or right; "equal" does not count."""
        return gold.labels < 2

    def sums(self, gold: Annotations, answers: Floats) -> Sums:
        """Whether the better task of each preference for a side has the higher score; equal scores count half."""
        shares = pairs_in_order(gold, answers)
        return shares, np.ones(len(shares))

    def score(self, gold: Annotations, answers: Floats) -> Scores:
        """Share of preferences whose better task has the higher score.

        Raises:
            ValueError: no preference is for left or right.
        """
        return {"pair_accuracy": pair_accuracy(gold, answers)}

    def rows(self, gold: Annotations, answers: Floats, split: str = "") -> Rows:
        """Share of preferences; no row without preferences for left or right. `split` is the row's name."""
        number = int(self.known(gold).sum())
        if not number:
            return []
        return [(split, f"{self.score(gold, answers)['pair_accuracy']:.4f} (on {number:,} of left or right)")]


class OrderScoring(Scoring[Floats, Floats]):
    """Gold is true scores, [N], NaN where unknown; answers are scores of tasks and their groups, [n, 2].

    Scores are compared within a group.
    """

    metric, metric_title = "rho", "Spearman's rho"
    titles: ClassVar = {"rho": "Spearman's rho"}

    def known(self, gold: Floats) -> Flags:
        """Tasks whose score is a number."""
        return ~np.isnan(gold)

    def sums(self, gold: Floats, answers: Floats) -> Sums:
        """For each task, how many others of its group are on its correct side, and how many differ from it in gold."""
        scores, groups = answers.T
        sums = []
        for some in np.array_split(np.arange(len(gold)), 1 + len(gold) ** 2 // AT_ONCE):
            order = np.sign(gold[some, None] - gold)
            comparable = (order != 0) & (groups[some, None] == groups)
            shares = (1 + order * np.sign(scores[some, None] - scores)) / 2
            sums.append((shares.sum(axis=1, where=comparable), comparable.sum(axis=1)))
        totals, weights = (np.concatenate(parts).astype(float) for parts in zip(*sums, strict=True))
        return totals, weights

    def score(self, gold: Floats, answers: Floats) -> Scores:
        """Spearman's rho, mean over groups; NaN if no group has different scores."""
        correlations = self._correlations(gold, answers)
        return {"rho": float(np.mean(correlations)) if correlations else np.nan}

    def rows(self, gold: Floats, answers: Floats, split: str = "") -> Rows:
        """Spearman's rho; for a model, only if gold differs."""
        prefix, number = f"{split} " if split else "", f"{len(gold):,} tasks with gold"
        correlations = self._correlations(gold, answers)
        if split and not correlations and len(gold) > 1 and np.ptp(gold) > 0:
            correlations = [0.0]
        if not correlations:
            return [] if split else [("Spearman's rho with gold", f"unknown (on {number})")]
        groups = "" if len(correlations) == 1 else f", mean of {len(correlations):,} groups"
        return [(f"{prefix}Spearman's rho with gold", f"{np.mean(correlations):.4f} (on {number}{groups})")]

    def _correlations(self, gold: Floats, answers: Floats) -> list[float]:
        """Spearman's rho of each group of tasks in which gold and scores differ."""
        scores, groups = answers.T
        correlations = []
        for group in np.unique(groups):
            members = groups == group
            if members.sum() > 1 and np.ptp(gold[members]) > 0 and np.ptp(scores[members]) > 0:
                correlations.append(spearman(gold[members], scores[members]))
        return correlations


SCORING = PairScoring()
ORDER_SCORING = OrderScoring()
