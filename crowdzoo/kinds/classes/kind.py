"""Classes: one of K names for each task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.files.writing import csv_cell
from crowdzoo.kinds.base import EXPORT_OPTIONS, RATINGS_ONLY, Kind, Rows
from crowdzoo.kinds.training_set import TrainingSet
from crowdzoo.metrics import expected_calibration_error
from crowdzoo.reading.instances.gold import read_gold
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS
from crowdzoo.training.encode_rows import encode_rows

ENOUGH_GOLD = 50  # tasks, with which a gap between probability and accuracy is worth a note
LEAST_GAP = 0.05


class Classification(Kind):
    """Labels are classes; models are classifiers of instances of any kind."""

    name = "classification"
    counted = "annotations"
    reading = ("classes", *ROW_OPTIONS, *EXPORT_OPTIONS, "image", *LAYOUT_OPTIONS)
    aggregation = "robust"
    metric = "accuracy"
    metric_title = "accuracy"
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
        known = int((gold >= 0).sum())
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
        of_gold = f"(on {known:,} tasks with gold, ties at random)"
        if not known:
            return [*rows, ("accuracy", f"unknown {of_gold}")]
        share = result.expected_accuracy(gold)
        certainty = float(result.posteriors[gold >= 0].max(axis=1).mean())
        rows += [
            ("accuracy", f"{share:.4f} {of_gold}"),
            ("mean probability there", f"{certainty:.4f}"),
            ("expected calibration error", f"{expected_calibration_error(gold, result.posteriors):.4f}"),
        ]
        gap, error = abs(certainty - share), math.sqrt(share * (1 - share) / known)
        if known >= ENOUGH_GOLD and gap > max(LEAST_GAP, 2 * error):
            side = "above" if certainty > share else "below"
            words = f"On the tasks with gold the probabilities are {gap:.2f} {side} the accuracy: correct them with "
            rows.append(("note", f"{words}--calibrate; the tasks with gold should be a random sample."))
        return rows

    def targets(self, result: Any, annotations: Annotations) -> np.ndarray:
        """Posteriors, [N, K]."""
        return result.posteriors

    # === Training ===

    def gold_column(self, table: Instances, crowd: Annotations, path: Path) -> np.ndarray:
        """Class codes, int64 [N], -1 where the table does not know."""
        return table.gold_codes(np.asarray(crowd.classes), str(path))

    # === Evaluation ===

    def scores(self, truth: np.ndarray, answers: Mapping[str, np.ndarray], **about: Any) -> dict[str, Any]:
        """Accuracy and mean cross-entropy (in nats) on class codes, int [N]."""
        probabilities = answers["probabilities"].astype(np.float64)
        likelihood = np.clip(probabilities[np.arange(len(truth)), truth], 1e-7, 1)
        return {
            "accuracy": float((probabilities.argmax(axis=1) == truth).mean()),
            "cross_entropy": float(-np.log(likelihood).mean()),
        }

    def training_rows(self, model: Any, encoder: Any, data: TrainingSet) -> Rows:
        """Accuracy on the tasks that were trained on and on the others."""
        rows = []
        for name, chosen in (("training", data.training), ("held-out", ~data.training)):
            known = chosen & (data.gold >= 0)
            if known.any():
                found = model.predict(encode_rows(data.x, known, encoder), verbose=0)
                correct = found.argmax(axis=1) == data.gold[known]
                rows.append((f"{name} accuracy against gold", f"{correct.mean():.3f} ({known.sum():,} tasks)"))
        return rows

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
