"""Aggregation of regions, for CrowdAggregator."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.vocabulary import is_among
from crowdzoo.records.crowd_answers import BOTH, CrowdAnswers, answers_table


def aggregated(
    method: object, crowds: dict[str, Annotations], fit: Callable[[Annotations], RegionAggregation], examples: str
) -> CrowdAnswers:
    """Fits to train; eval's regions are those of a fit to both splits.

    Args: see `crowdzoo.kinds.parts`.
    """
    fitted, tables = fit(crowds["train"]), dict[str, pa.Table]()
    for split, result in (("train", fitted), ("eval", fit(crowds[BOTH]))):
        rows = is_among(result.tasks, crowds[split].tasks) & result.marked.astype(bool)
        texts = [image.text.encode() for image in result.marked[rows].tolist()]
        tables[split] = answers_table(result.tasks[rows], np.array(texts, object))
    return CrowdAnswers(fitted, tables, [], b"")
