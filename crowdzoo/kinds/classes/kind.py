"""Classes: one of K names per task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import CLASSIFICATION
from crowdzoo.files.writing import csv_cell
from crowdzoo.kinds.aggregating import Aggregating
from crowdzoo.kinds.classes.scoring import SCORING
from crowdzoo.kinds.kind import OF_IMAGES, Kind, KindOptions, Prediction, loaded, made
from crowdzoo.kinds.reading import Reading
from crowdzoo.kinds.scoring import Codes, Rows
from crowdzoo.kinds.training import Training
from crowdzoo.reading.instances.gold import read_gold
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.instances.predictions import Predictions, read_predictions
from crowdzoo.reading.tables.layout import Layout

if TYPE_CHECKING:
    from crowdzoo.aggregation.result import Aggregation


class ClassReading(Reading[Annotations, Codes]):
    """Gold is class codes, [N], -1 where unknown."""

    def gold_of(self, crowd: Annotations, path: Path | None, layout: Layout | None = None) -> Codes | None:
        """See `Reading.gold_of`."""
        return None if path is None else read_gold(path, crowd.tasks, np.asarray(crowd.classes), layout)

    def predictions_of(self, crowd: Annotations, path: Path, column: str, layout: Layout | None = None) -> Predictions:
        """See `Reading.predictions_of`; with the probability of the class."""
        return read_predictions(path, crowd.tasks, np.asarray(crowd.classes), layout)


class ClassAggregating(Aggregating[Annotations, "Aggregation", Codes]):
    """Results have a probability for each class."""

    def add_notes(self, result: Aggregation, crowd: Annotations, gold: Codes | None = None) -> Aggregation:
        """Add how settled labels are and `crowdzoo.quality.data_notes`; a calibrated result gets no notes."""
        from crowdzoo.quality import data_notes, with_settled

        result = with_settled(crowd, result, gold)
        if result.accuracy_interval is not None:
            return result
        return replace(result, notes=(*result.notes, *data_notes(crowd, result.method)))

    def rows(self, result: Aggregation, crowd: Annotations, gold: Codes | None, used_gold: bool) -> Rows:
        """Frequency of each class, accuracy, and calibration of the probabilities."""
        counts = np.bincount(result.labels, minlength=len(result.classes)).tolist()
        rows = [(f"label {name}", f"{count:,}") for name, count in zip(result.classes, counts, strict=True)]
        if result.settled_share is not None:
            rows.append(("settled labels (estimated)", f"{result.settled_share:.1%}"))
        if gold is None:
            return rows
        known = int(SCORING.known(gold).sum())
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
        if result.error_bound is not None and result.accepted is not None:
            error, confidence = result.error_bound
            accepted = f"{result.accepted.sum():,} of {result.accepted.size:,} labels accepted"
            bound = f"at most {100 * error:g} % wrong ({100 * confidence:g} % confidence)"
            return [*rows, ("tasks of known class", f"{known:,}"), ("bound on the error", f"{accepted}: {bound}")]
        if used_gold:
            return [*rows, ("tasks of known class", f"{known:,}")]
        return rows + SCORING.rows_of_known(gold, result.posteriors)

    def consensus(self, result: Aggregation, crowd: Annotations, tasks: Codes) -> Iterable[tuple[list[str], float]]:
        """Names of the tasks' classes, with their probabilities."""
        codes = result.labels[tasks]
        return zip([[str(name)] for name in result.classes[codes]], result.posteriors[tasks, codes], strict=True)


class ClassTraining(Training[Annotations, "Aggregation", Codes]):
    """Models are classifiers for any kind of instances."""

    starts_warm = True

    def gold_column(self, table: Instances, crowd: Annotations, path: Path) -> Codes:
        """Class codes, [N], -1 where the table has none."""
        return table.gold_codes(np.asarray(crowd.classes), str(path))

    def targets(self, result: Aggregation, annotations: Annotations) -> np.ndarray:
        """Posteriors, [N, K]."""
        return result.posteriors


class ClassPrediction(Prediction):
    """The most probable class of each task."""

    def lines(self, tasks: Iterable[object], outputs: Mapping[str, np.ndarray]) -> list[str]:
        """See `Prediction.lines`."""
        names = [name.decode() if isinstance(name, bytes) else str(name) for name in outputs["class"]]
        confident = outputs["probabilities"].max(axis=1)
        rows = zip(tasks, names, confident, strict=True)
        return [f"{csv_cell(task)},{csv_cell(name)},{probability:.6f}" for task, name, probability in rows]


READING = ClassReading(CLASSIFICATION, "annotations")
AGGREGATING = ClassAggregating(CLASSIFICATION, "robust", "one-coin")
CLASSES = Kind(
    labels=CLASSIFICATION,
    options=KindOptions(("classes", *OF_IMAGES), refused={}),
    reading=READING,
    aggregation=AGGREGATING,
    scoring=SCORING,
    training=ClassTraining(CLASSIFICATION, READING, AGGREGATING, SCORING),
    prediction=ClassPrediction("class", ("task", "class", "probability")),
    load_page=loaded("crowdzoo.kinds.classes.page:ClassPage"),
    load_measure=loaded("crowdzoo.kinds.classes.measure:ClassMeasure"),
    load_questions=made("crowdzoo.kinds.classes.questions:ClassQuestions"),
    load_records=made("crowdzoo.kinds.classes.records:ClassRecords"),
)
