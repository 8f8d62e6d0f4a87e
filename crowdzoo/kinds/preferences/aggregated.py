"""Aggregation of preferences, for CrowdAggregator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.kinds.preferences.records import pair_names
from crowdzoo.records.crowd_answers import CrowdAnswers, answers_table


def aggregated(method: Any, crowds: dict[str, Any], fit: Callable[[Any], Any], examples: str) -> CrowdAnswers:
    """Each split by its own preferences alone; the answers are those to the pairs that were compared.

    A pair without preferences has equal probabilities.

    Args: see `crowdzoo.kinds.parts`.
    """
    fitted, tables = {}, {}
    for split in ("train", "eval"):
        crowd = crowds[split]
        names, posteriors = pair_names(crowd), np.zeros((0, crowd.num_classes))
        if names:
            found = fitted[split] = fit(crowd)
            posteriors = found.of_pairs(crowd)
        tables[split] = answers_table(pa.array(names, pa.string()), posteriors.argmax(axis=1), posteriors)
    num_classes = crowds["train"].num_classes
    return CrowdAnswers(fitted["train"], tables, [1 / num_classes] * num_classes, 0)
