"""with_median_labels: labels of classes that have an order, fewer steps from the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.aggregation.result import Aggregation

ROUNDING = 1e-9  # of sums of probabilities


def with_median_labels(aggregation: Aggregation) -> Aggregation:
    """The median of each task's probabilities as its label, for classes that are in order, such as grades.

    The most probable class is right most often; the median is the fewest steps from the truth by these probabilities
    (the mean absolute error is minimised by a median).

    Args:
        aggregation: of N tasks; its classes are in their order.

    Returns:
        The aggregation with other `labels`. What it says of the labels that it had goes: `settled`,
        `answers_to_settle`, `accuracy_interval`, `accepted` and `error_bound`.

    Raises:
        DataError: the result of an aggregation of other labels than classes.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MajorityVote, with_median_labels
        >>> labels = ["low", "low", "mid", "high", "high", "low"]
        >>> answers = Annotations.from_arrays([0] * 5 + [1], [*range(5), 0], labels, classes=["low", "mid", "high"])
        >>> result = with_median_labels(MajorityVote().fit(answers))
        >>> str(result.classes[result.labels[0]])
        'mid'
    """
    if aggregation.kind != "classification":
        raise DataError(f"with_median_labels takes labels of kind classification, got {aggregation.kind}.")
    labels = (np.cumsum(aggregation.posteriors, axis=1) >= 0.5 - ROUNDING).argmax(axis=1)
    return replace(
        aggregation,
        labels=labels,
        settled=None,
        answers_to_settle=None,
        accuracy_interval=None,
        accepted=None,
        error_bound=None,
    )
