"""Classes: one of K names for each task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.files.writing import csv_cell
from crowdzoo.kinds.base import EXPORT_OPTIONS, RATINGS_ONLY, Kind
from crowdzoo.kinds.classes.scoring import SCORING
from crowdzoo.kinds.scoring import Rows
from crowdzoo.reading.instances.gold import read_gold
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS


class Classification(Kind):
    """Labels are classes; models are classifiers of instances of any kind."""

    name = "classification"
    counted = "annotations"
    reading = ("classes", *ROW_OPTIONS, *EXPORT_OPTIONS, "image", *LAYOUT_OPTIONS)
    aggregation = "robust"
    metric = "accuracy"
    metric_title = "accuracy"
    scoring = SCORING
    answer = "class"
    header = ("task", "class", "probability")
    refused = RATINGS_ONLY

    # === Input ===

    def gold_of(self, crowd: Annotations, path: Path | None, layout: Layout | None = None) -> np.ndarray | None:
        """Class codes, int64 [N], -1 where the file does not know."""
        return None if path is None else read_gold(path, crowd.tasks, np.asarray(crowd.classes), layout)

    # === Aggregation ===

    def noted(self, result: Any, crowd: Annotations, gold: Any = None) -> Any:
        """Adds how settled labels are and `crowdzoo.quality.data_notes`; no notes to a result that gold corrected."""
        from crowdzoo.quality import data_notes, with_settled

        result = with_settled(crowd, result, gold)
        if result.accuracy_interval is not None:
            return result
        return replace(result, notes=(*result.notes, *data_notes(crowd, result.method)))

    def result_rows(self, result: Any, crowd: Annotations, gold: np.ndarray | None, used_gold: bool) -> Rows:
        """How often each class is the label, the accuracy, and how far the probabilities are from it."""
        counts = np.bincount(result.labels, minlength=len(result.classes)).tolist()
        rows = [(f"label {name}", f"{count:,}") for name, count in zip(result.classes, counts, strict=True)]
        if result.settled_share is not None:
            rows.append(("settled labels (estimated)", f"{result.settled_share:.1%}"))
        if gold is None:
            return rows
        known = int(self.scoring.known(gold).sum())
        if result.accuracy_interval is not None:
            value, low, high = result.accuracy_interval
            others = (gold < 0) & (result.annotations_per_task > 0)
            probability = f"{result.posteriors[others].max(axis=1).mean():.3f}" if others.any() else "no other tasks"
            return [
                *rows,
                ("gold tasks, for calibration", f"{known:,}"),
                ("accuracy on other tasks", f"{value:.3f} ({low:.3f} to {high:.3f}, estimated)"),
                ("mean probability there", probability),
            ]
        if result.error_bound is not None:
            error, confidence = result.error_bound
            accepted = f"{result.accepted.sum():,} of {result.accepted.size:,} labels accepted"
            bound = f"at most {100 * error:g} % wrong ({100 * confidence:g} % confidence)"
            return [*rows, ("tasks of known class", f"{known:,}"), ("bound on the error", f"{accepted}: {bound}")]
        if used_gold:
            return [*rows, ("tasks of known class", f"{known:,}")]
        return rows + self.gold_rows(gold, result.posteriors)

    def targets(self, result: Any, annotations: Annotations) -> np.ndarray:
        """Posteriors, [N, K]."""
        return result.posteriors

    # === Training ===

    def gold_column(self, table: Instances, crowd: Annotations, path: Path) -> np.ndarray:
        """Class codes, int64 [N], -1 where the table does not know."""
        return table.gold_codes(np.asarray(crowd.classes), str(path))

    # === Prediction ===

    def prediction_lines(self, tasks: Iterable[Any], outputs: Mapping[str, np.ndarray]) -> list[str]:
        """See `Kind.prediction_lines`."""
        names = [name.decode() if isinstance(name, bytes) else str(name) for name in outputs["class"]]
        confident = outputs["probabilities"].max(axis=1)
        return [
            f"{csv_cell(task)},{csv_cell(name)},{probability:.6f}"
            for task, name, probability in zip(tasks, names, confident, strict=True)
        ]


KIND = Classification()
