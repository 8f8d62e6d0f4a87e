"""Aggregation of regions, for CrowdAggregator."""

from collections.abc import Callable
from typing import Any

import numpy as np

from crowdzoo.data.vocabulary import is_among
from crowdzoo.records.crowd_answers import BOTH, CrowdAnswers, answers_table


def aggregated(method: Any, crowds: dict[str, Any], fit: Callable[[Any], Any], examples: str) -> CrowdAnswers:
    """Fits to train; eval's regions are those of a fit to both splits.

    Args: see `crowdzoo.kinds.parts`.
    """
    fitted, tables = fit(crowds["train"]), dict[str, Any]()
    for split, found in (("train", fitted), ("eval", fit(crowds[BOTH]))):
        own = is_among(found.tasks, crowds[split].tasks) & (found.regions != "")
        texts = [text.encode() for text in found.regions[own].tolist()]
        tables[split] = answers_table(found.tasks[own], np.array(texts, object))
    return CrowdAnswers(fitted, tables, [], b"")
