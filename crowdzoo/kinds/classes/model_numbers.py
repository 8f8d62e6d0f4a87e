"""Figures of a report's page on a model's predictions and on the calibration of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.page_parts import as_lists, share_and_ends
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.metrics import calibration_bins
from crowdzoo.quality.figures import interval
from crowdzoo.quality.next_annotation import SURE
from crowdzoo.reading.instances.predictions import Predictions

BINS = 15  # of equal width in a reliability diagram; as in `expected_calibration_error`
MOST_LISTED = 100  # tasks on the page on which both are sure and differ


@dataclass(frozen=True)
class ModelNumbers:
    """Comparison of aggregated labels with a model and with gold.

    Attributes:
        values: values for `--fail-if`; None where undefined.
        model: agreement and counts; None without predictions.
        calibration: calibration of the aggregated labels and of the model; None without gold.
        tables: values and rows shown of "model_pairs" and "model_tasks"; empty without predictions.
        listed: tasks listed on the page, on which both are sure and differ.
    """

    values: dict[str, float | None]
    model: dict[str, Any] | None
    calibration: dict[str, Any] | None
    tables: dict[str, tuple[Any, ...]]
    listed: list[int]


def model_numbers(
    annotations: Annotations, aggregation: Aggregation, predictions: Predictions | None, gold: Codes | None
) -> ModelNumbers:
    """Compare aggregated labels with a model's, and the probabilities of both with gold.

    Args:
        annotations: kind classification.
        aggregation: a result for the same annotations.
        predictions: predictions for the tasks; None without a model.
        gold: true classes, -1 where unknown, [N]; None without gold.

    Returns:
        The numbers. Tasks without annotations are left out, and so are tasks without a prediction if there are
        predictions: aggregate and model are measured on the same tasks.
    """
    labelled = annotations.redundancy > 0
    sure = aggregation.posteriors[np.arange(annotations.num_tasks), aggregation.labels]
    compared, model, tables, listed = labelled, None, dict[str, tuple[Any, ...]](), list[int]()
    if predictions is not None:
        compared = labelled & (predictions.labels >= 0)
        differ = np.flatnonzero(compared & (predictions.labels != aggregation.labels))
        # ordered by the probability of the less certain of the two
        least = np.minimum(sure[differ], predictions.probabilities[differ])
        order = np.lexsort((differ, -least))
        surest = differ[order][least[order] >= SURE]
        listed = surest[:MOST_LISTED].tolist()
        agreement = share_and_ends(int(compared.sum()) - len(differ), int(compared.sum()))
        model = {
            "tasks": int(compared.sum()),
            "without": int((labelled & ~compared).sum()),
            "others": predictions.others,
            **interval("agreement", *agreement),
            "sure": SURE,
            "both_sure": int((compared & (sure >= SURE) & (predictions.probabilities >= SURE)).sum()),
            "sure_and_differ": len(surest),
        }
        tables = {
            "model_pairs": (_pairs(annotations, aggregation, predictions, differ),),
            "model_tasks": (_tasks(annotations, aggregation, predictions, gold, sure, surest), [*range(len(listed))]),
        }
    aggregated, predicted = dict[str, Any](), dict[str, Any]()
    calibration = None
    if gold is not None:
        known = np.flatnonzero(compared & (gold >= 0))
        aggregated = _calibration(aggregation.labels[known] == gold[known], sure[known])
        if predictions is not None:
            predicted = _calibration(predictions.labels[known] == gold[known], predictions.probabilities[known])
        calibration = {"tasks": len(known), "aggregated": aggregated, "model": predicted or None}
    values = {
        "model_agreement": None if model is None else model["agreement"],
        "aggregate_accuracy": aggregated.get("accuracy"),
        "aggregate_ece": aggregated.get("ece"),
        "model_accuracy": predicted.get("accuracy"),
        "model_ece": predicted.get("ece"),
    }
    return ModelNumbers(values, model, calibration, tables, listed)


def _pairs(
    annotations: Annotations, aggregation: Aggregation, predictions: Predictions, differ: Codes
) -> dict[str, list[Any]]:
    """Pairs of an aggregated label and a different class by the model, most frequent first."""
    classes, labels, predicted = _names(annotations), aggregation.labels, predictions.labels
    both = (annotations.redundancy > 0) & (predicted >= 0)
    same = np.bincount(labels[both & (labels == predicted)], minlength=len(classes))
    number = np.bincount(labels[both], minlength=len(classes))
    cells, counts = np.unique(labels[differ] * len(classes) + predicted[differ], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    (label, other), counts = np.divmod(cells[order], len(classes)), counts[order]
    return as_lists(
        aggregated=[classes[code] for code in label],
        model=[classes[code] for code in other],
        tasks=counts,
        disagreement=counts / max(len(differ), 1),
        agreement=same[label] / number[label],
    )


def _tasks(
    table: Annotations, aggregation: Aggregation, model: Predictions, gold: Codes | None, sure: Floats, rows: Codes
) -> dict[str, list[Any]]:
    classes = _names(table)
    columns = as_lists(
        task=table.tasks[rows],
        annotations=table.redundancy[rows],
        label=[classes[code] for code in aggregation.labels[rows]],
        probability=sure[rows],
        predicted=[classes[code] for code in model.labels[rows]],
        model_probability=model.probabilities[rows],
    )
    if gold is not None:
        columns["gold"] = [classes[code] if code >= 0 else None for code in gold[rows]]
    return columns


def _names(annotations: Annotations) -> list[str]:
    return [str(name) for name in np.asarray(annotations.classes).tolist()]


def _calibration(right: Flags, probability: Floats) -> dict[str, Any]:
    """Compare the accuracy of answers with their probability.

    Args:
        right: whether each answer is correct, [n].
        probability: probability of each answer, [n].

    Returns:
        `accuracy` with its interval, mean `probability`, expected calibration error `ece`, and the non-empty `bins`, as
        [lower end, upper end, tasks, mean probability, share of correct answers, its interval's ends].
    """
    accuracy = share_and_ends(int(right.sum()), len(right))
    counts, confidences, rights = calibration_bins(right, probability, BINS)
    filled = np.flatnonzero(counts)
    bins = []
    for place in filled.tolist():
        count, ends = int(counts[place]), share_and_ends(int(rights[place]), int(counts[place]))
        bins.append([place / BINS, (place + 1) / BINS, count, float(confidences[place] / counts[place]), *ends])
    return {
        **interval("accuracy", *accuracy),
        "probability": float(probability.mean()) if len(right) else None,
        "ece": float(np.abs(rights - confidences).sum() / len(right)) if len(right) else None,
        "bins": bins,
    }
