"""What `crowdzoo next` asks about classes; see `crowdzoo.kinds.parts.part_of`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.next_annotation import Gains, class_gains, sure_tasks

UNIT = "nats"
NAMES = "classes"


def known(result: Aggregation, places: list[int]) -> NDArray[np.float64] | None:
    """Confusion matrices with the classes in this order, [R, K, K]; None where the method has none."""
    return None if result.confusions is None else result.confusions[:, places][:, :, places]


def gains(result: Aggregation, confusions: NDArray[np.float64], crowd: Annotations) -> Gains:
    """What an answer is expected to tell of the class, nats."""
    return class_gains(result.posteriors, confusions)


def sure(result: Aggregation, least: float, crowd: Annotations) -> NDArray[np.bool_]:
    """Tasks with two answers or more whose class has this probability."""
    return sure_tasks(result, least)
