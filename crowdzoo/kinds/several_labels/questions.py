"""What `crowdzoo next` asks where several labels may hold for a task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.multi_label_aggregation import MultiLabelAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.next_annotation import FEWEST, Gains, information_gain

UNIT = "nats"
NAMES = "label_names"


def known(result: MultiLabelAggregation, places: list[int]) -> NDArray[np.float64]:
    """Specificity and sensitivity for the labels in this order, [R, J, 2]."""
    return np.stack([result.specificity[:, places], result.sensitivity[:, places]], axis=2)


def gains(result: MultiLabelAggregation, rates: NDArray[np.float64], crowd: Annotations) -> Gains:
    """What an answer is expected to tell, the labels one by one, nats."""
    right = np.stack([rates, 1 - rates], axis=3)  # [R, J, true, said]: rows of no and yes
    right[:, :, 1] = right[:, :, 1, ::-1]
    beliefs = np.stack([1 - result.probabilities, result.probabilities], axis=2)

    def gain(tasks: NDArray[np.int64], annotators: NDArray[np.int64]) -> NDArray[np.float64]:
        total = np.zeros(annotators.shape)
        for label in range(beliefs.shape[1]):
            total += information_gain(beliefs[tasks, None, label], right[annotators, label])
        return total

    return gain


def sure(result: MultiLabelAggregation, least: float, crowd: Annotations) -> NDArray[np.bool_]:
    """Tasks with two answers or more of which each label holds, or does not, with this probability."""
    certain = np.maximum(result.probabilities, 1 - result.probabilities).min(axis=1) >= least
    return np.asarray(certain & (result.annotations_per_task >= FEWEST))
