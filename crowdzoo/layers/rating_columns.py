"""All ratings of training data as columns."""

from typing import Any

import numpy as np

__all__ = ["rating_columns"]


def rating_columns(data: Any, batch_size: int = 4096) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All ratings that training goes through, as columns.

    Args:
        data: `crowdzoo.models.TrainingData`.
        batch_size: tasks in a batch.

    Returns:
        Tasks and annotators, int64 `[A]` each, and ratings float64 `[A]`.
    """
    parts: list[tuple[np.ndarray, ...]] = []
    for x, ratings in data.batches(batch_size, 0, shuffle=False, inputs=("annotators", "tasks")):
        ratings, annotators, tasks = np.asarray(ratings), np.asarray(x["annotators"]), np.asarray(x["tasks"])
        rows, places = np.nonzero(~np.isnan(ratings))
        parts.append((tasks[rows], annotators[rows, places], ratings[rows, places]))
    task, annotator, rating = (np.concatenate(column) for column in zip(*parts, strict=True))
    return task.astype("int64"), annotator.astype("int64"), rating.astype("float64")
