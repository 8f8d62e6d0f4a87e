"""Aggregation of ratings, for CrowdAggregator."""

from collections.abc import Callable
from typing import Any

import numpy as np

from crowdzoo.records.crowd_answers import CrowdAnswers, answers_table


def aggregated(method: Any, crowds: dict[str, Any], fit: Callable[[Any], Any], examples: str) -> CrowdAnswers:
    """Each split by its own ratings alone; a task without ratings has the mean of train's estimates.

    Args: see `crowdzoo.kinds.parts`.
    """
    fitted, crowd = fit(crowds["train"]), crowds["eval"]
    found = fit(crowd) if len(crowd) else None
    none = answers_table(crowd.tasks[:0], np.zeros(0))
    return CrowdAnswers(
        fitted,
        {
            "train": answers_table(fitted.tasks, fitted.estimates),
            "eval": none if found is None else answers_table(found.tasks, found.estimates),
        },
        [],
        float(fitted.estimates.mean()),
    )
