"""Preferences: which of two tasks is better."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from crowdzoo.instances import read_gold_ratings
from crowdzoo.kinds.aggregated_kind import AggregatedKind, Rows
from crowdzoo.kinds.base import RATINGS_ONLY
from crowdzoo.metrics import spearman
from crowdzoo.tables.annotations import Annotations
from crowdzoo.tables.layout import LAYOUT_OPTIONS, Layout

__all__ = ["Preferences"]


class Preferences(AggregatedKind):
    """Labels say which of two tasks is better, or that they are equal. They are aggregated to scores."""

    name = "preference"
    title = counted = "preferences"
    reading = ("classes", "on_bad_rows", "on_duplicate", "rejects", *LAYOUT_OPTIONS)
    aggregation = "annotator-bradley-terry"
    refused: ClassVar = {
        **RATINGS_ONLY,
        "calibrate": "calibration is for classes; leave it out.",
        "use_gold": "no method for preferences takes known scores; leave it out.",
        "platform": "preferences are read from tables with the columns left, right, annotator, label.",
        "field": "belongs to an export of a labelling platform; leave it out.",
        "image": "belongs to an export of a labelling platform; leave it out.",
        "wide": "a wide table has one task a row, and a preference has two.",
    }

    def gold_of(self, crowd: Annotations, path: Path | None, layout: Layout | None = None) -> np.ndarray | None:
        """True scores or ranks from the worst, float64 [N], NaN where the file does not know."""
        return None if path is None else read_gold_ratings(path, crowd.tasks, layout)

    def result_rows(self, result: Any, crowd: Annotations, gold: np.ndarray | None, used_gold: bool) -> Rows:
        """Best and worst task, range of the annotators' biases, and the correlation with gold."""
        groups = len(np.unique(result.groups[result.annotations_per_task > 0]))
        rows = [("answers", ", ".join(self._counted_answers(crowd)))]
        if groups == 1 and len(crowd):
            order = np.argsort(-result.scores, kind="stable")
            order = order[result.annotations_per_task[order] > 0]
            for what, task in (("best task", order[0]), ("worst task", order[-1])):
                rows.append((what, f"{crowd.tasks[task]} ({result.scores[task]:+.3f})"))
        if (biases := result.position_biases()) is not None:
            span = f"{biases.min():+.3g} to {biases.max():+.3g}, mean {biases.mean():+.3g}"
            rows.append(("position biases", f"{span} (above 0: left)"))
        return rows if gold is None else [*rows, self._gold_row(result, gold)]

    def _counted_answers(self, crowd: Annotations) -> list[str]:
        classes = np.asarray(crowd.classes).tolist()
        counts = np.bincount(crowd.labels, minlength=len(classes))
        return [f"{count:,} {name}" for name, count in zip(classes, counts.tolist(), strict=True)]

    def _gold_row(self, result: Any, gold: np.ndarray) -> tuple[str, str]:
        found = []
        for group in np.unique(result.groups):
            chosen = (result.groups == group) & ~np.isnan(gold)
            if chosen.sum() > 1 and np.ptp(gold[chosen]) > 0 and np.ptp(result.scores[chosen]) > 0:
                found.append(spearman(gold[chosen], result.scores[chosen]))
        known = f"{(~np.isnan(gold)).sum():,} tasks with gold"
        if not found:
            return ("Spearman's rho with gold", f"unknown (on {known})")
        groups = "" if len(found) == 1 else f", mean of {len(found):,} groups"
        return ("Spearman's rho with gold", f"{np.mean(found):.4f} (on {known}{groups})")
