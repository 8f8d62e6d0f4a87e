"""What `crowdzoo next` asks where annotators write texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.next_annotation import FEWEST, Gains

UNIT = "error rates"
NAMES = None
LEAST = 1e-6  # of an error rate


def known(result: TextAggregation, places: list[int]) -> NDArray[np.float64]:
    """Agreement, with one usual text more, [R]."""
    counts = result.annotations_per_annotator
    usual = float(counts @ result.agreement) / max(counts.sum(), 1)
    return np.asarray((counts * result.agreement + usual) / (counts + 1))


def gains(result: TextAggregation, agreement: NDArray[np.float64], crowd: Annotations) -> Gains:
    """How much nearer a further text is expected to bring the task's, as an error rate.

    Texts scatter about the true one as in RASA: by what confidence lacks, the task's, over the annotator's weight. A
    mean of weights W has the variance s / W, and a text of weight w takes s w / (W (W + w)) off. The weight is the mean
    error rate over the annotator's own; in W one usual text more stands for what is known without any.
    """
    counts, rates = result.annotations_per_annotator, np.maximum(1 - agreement, LEAST)
    weights = float(counts @ rates) / max(counts.sum(), 1) / rates
    before = 1 + np.bincount(crowd.task_ids, weights[crowd.annotator_ids], crowd.num_tasks)

    def nearer(tasks: NDArray[np.int64], annotators: NDArray[np.int64]) -> NDArray[np.float64]:
        own, more = before[tasks, None], weights[annotators]
        return np.asarray((1 - result.confidence)[tasks, None] * more / (own * (own + more)))

    return nearer


def sure(result: TextAggregation, least: float) -> NDArray[np.bool_]:
    """Tasks with two texts or more and this confidence."""
    return np.asarray((result.confidence >= least) & (result.annotations_per_task >= FEWEST))
