"""The recipe of `MaxMIG`: its matrices start from the votes."""

from typing import Any

import keras

from crowdzoo.training.expectation import annotation_columns, expected_counts, vote_shares


def fit(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """Starts from the votes, then descends; see `descend`."""
    layer = model.crowd
    tasks, annotators, labels = annotation_columns(data)
    shares = vote_shares(tasks, labels, data.num_tasks, layer.num_classes or 1)
    layer.start_from(shares, expected_counts(shares, tasks, annotators, labels, layer.num_annotators))
    return model.fit_batches(data.batches(**order, inputs=("annotators", "labels")), **kwargs)
