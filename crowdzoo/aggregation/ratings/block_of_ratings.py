"""block_of_ratings: a table of ratings as one block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.aggregation.engine.block import Block

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


def block_of_ratings(annotations: Annotations) -> tuple[float, Block]:
    """All tasks as one block, whose ratings count from their mean: sums of squares then keep their digits.

    Args:
        annotations: ratings of N tasks, one or more.

    Returns:
        The mean, and the block. Where all ratings are equal they are exactly zero.
    """
    labels = annotations.labels
    origin = float(np.clip(labels.mean(), labels.min(), labels.max()))
    tasks = np.arange(annotations.num_tasks)
    return origin, Block.of_ratings(annotations.task_ids, annotations.annotator_ids, labels - origin, tasks)
