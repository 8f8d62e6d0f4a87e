"""Ratings outside of their scale, found before anything learns from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.constraints import END
from crowdzoo.errors import SHOWN, BadRow, ConfigError, DataError

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["check_ends", "check_scale", "outside_scale", "scale_reason"]


def check_ends(low: float | None, high: float | None) -> None:
    """Checks the ends of a scale, either of which may be None.

    Raises:
        ConfigError: one is no finite number, or low is not below high.
    """
    low, high = END.checked("", "low", low), END.checked("", "high", high)
    if low is not None and high is not None and not low < high:
        raise ConfigError(f"low must be below high, got low={low!r}, high={high!r}")


def outside_scale(ratings: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Which ratings lie outside of a scale.

    Args:
        ratings: float of any shape.
        low: lowest one in the scale, or None.
        high: highest one, or None.

    Returns:
        bool of the ratings' shape; a NaN or an infinity is outside.
    """
    # not < and >: a NaN would pass those
    inside = np.isfinite(ratings)
    if low is not None:
        inside &= ratings >= low
    if high is not None:
        inside &= ratings <= high
    return ~inside


def scale_reason(low: float | None, high: float | None) -> str:
    """What is wrong with a rating outside, and what to do."""
    scale = f"{'...' if low is None else f'{low:g}'} to {'...' if high is None else f'{high:g}'}"
    return f"is outside of the scale {scale}. Fix the rating or remove it, or change low and high."


def check_scale(annotations: Annotations, low: float | None = None, high: float | None = None) -> None:
    """Refuses ratings outside of their scale; readers of files do so themselves and name the row (`Annotations.read`).

    Args:
        annotations: annotations of kind regression.
        low: lowest rating that there is, in the labels' unit; None asks for nothing.
        high: highest rating; None asks for nothing.

    Raises:
        ConfigError: low or high is no finite number, or low is not below high.
        DataError: annotations of another kind, or ratings outside; it names row (from 0, as the annotations stand in
            the table), task, annotator and value of the first ten, and what to do.
    """
    check_ends(low, high)
    if annotations.kind != "regression":
        raise DataError(f"a scale belongs to annotations of kind 'regression'. Received: kind {annotations.kind!r}.")
    ratings = annotations.labels
    bad = np.flatnonzero(outside_scale(ratings, low, high))
    if not len(bad):
        return
    tasks, annotators = (annotations.tasks.tolist(), annotations.annotators.tolist())
    rows = []
    for row in bad[:SHOWN].tolist():
        who = f"(task {tasks[annotations.task_ids[row]]!r}, annotator {annotators[annotations.annotator_ids[row]]!r})"
        reason = f"{who} {scale_reason(low, high)}"
        rows.append(BadRow("annotations", row, "label", ratings[row].item(), reason))
    raise DataError("Some ratings are outside of their scale.", rows, len(bad))
