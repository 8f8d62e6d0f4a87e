"""Ratings outside of their scale, found before anything learns from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.errors import SHOWN, BadRow, ConfigError, DataError

if TYPE_CHECKING:
    from crowdzoo.annotations import Annotations

__all__ = ["check_scale"]


def check_scale(annotations: Annotations, low: float | None = None, high: float | None = None) -> None:
    """Refuses ratings outside of their scale; the readers of `Annotations` know of no scale.

    Args:
        annotations: of kind regression.
        low: lowest rating that there is, in the labels' unit; None asks for nothing.
        high: highest rating; None asks for nothing.

    Raises:
        ConfigError: low or high is no finite number, or low is not below high.
        DataError: annotations of another kind, or ratings outside; it names row (from 0, as the annotations stand in
            the table), task, annotator and value of the first ten, and what to do.
    """
    for name, value in (("low", low), ("high", high)):
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if value is not None and not (number and np.isfinite(value)):
            raise ConfigError(f"{name} is a finite number or None. Received: {name}={value!r}.")
    if low is not None and high is not None and not low < high:
        raise ConfigError(f"low is below high. Received: low={low!r}, high={high!r}.")
    if annotations.kind != "regression":
        raise DataError(f"a scale belongs to annotations of kind 'regression'. Received: kind {annotations.kind!r}.")
    ratings = annotations.labels
    # not >= and <=: a NaN (which the readers refuse) would pass those
    inside = np.isfinite(ratings)
    if low is not None:
        inside &= ratings >= low
    if high is not None:
        inside &= ratings <= high
    bad = np.flatnonzero(~inside)
    if not len(bad):
        return
    scale = f"{'...' if low is None else f'{low:g}'} to {'...' if high is None else f'{high:g}'}"
    tasks, annotators = (annotations.tasks.tolist(), annotations.annotators.tolist())
    rows = []
    for row in bad[:SHOWN].tolist():
        who = f"(task {tasks[annotations.task_ids[row]]!r}, annotator {annotators[annotations.annotator_ids[row]]!r})"
        reason = f"{who} is outside of the scale {scale}. Mend the rating or leave it out, or change low and high."
        rows.append(BadRow("annotations", row, "label", ratings[row].item(), reason))
    raise DataError("Some ratings are outside of their scale.", rows, len(bad))
