"""expected_accuracy: the share of correct labels in comparable crowds, where there is no gold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.quality.wilson import NORMAL_95

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

SHIFT, HALF = -0.220, 0.422  # see `expected_accuracy`; `python benchmarks/expected_accuracy.py --fit` fits them
LEAST_TASKS = 20


def expected_accuracy(annotations: Annotations, probability: ArrayLike) -> tuple[float, float, float] | None:
    """Share of correct labels to be expected without gold, and the ends of its 90 % interval.

    Answers alone do not tell how many labels are correct, since annotators may agree on mistakes. The figures are those
    of real crowds of known truth that are as sure: with p, the mean probability of the labels by `Robust`, the value is
    p + SHIFT p (1 - p), and the ends are sqrt(p (1 - p) (HALF^2 + 1.645^2 / tasks)) from it. Further facts of a crowd
    did not help. With families of crowds left out, the interval held the accuracy in about nine of ten
    (docs/quality.md has the figures).

    Args:
        annotations: kind classification.
        probability: of each label by `Robust`, [N]; `Settlement.probability` for labels by any method.

    Returns:
        Value, low and high; None for fewer than twenty tasks with annotations, or fewer than two classes.

    Source:
        Our own. The ends are those of residuals on families left out, as in the jackknife+ (R. F. Barber, E. J. Candès,
        A. Ramdas, R. J. Tibshirani, Annals of Statistics 49, 2021).

    Example:
        ```python
        state = quality.settlement(annotations, crowdzoo.aggregation.Robust().fit(annotations))
        value, low, high = quality.expected_accuracy(annotations, state.probability)
        ```
    """
    asked = annotations.redundancy > 0
    if asked.sum() < LEAST_TASKS or annotations.num_classes < 2:
        return None
    mean = float(np.asarray(probability)[asked].mean())
    variance = mean * (1 - mean)
    half = np.sqrt(variance * (HALF**2 + NORMAL_95**2 / asked.sum()))
    ends = mean + SHIFT * variance + half * np.array([0, -1, 1])
    value, low, high = np.clip(ends, 0, 1).tolist()
    return value, low, high
