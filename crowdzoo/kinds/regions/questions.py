"""What `crowdzoo next` asks where annotators mark regions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.columns import ratio
from crowdzoo.quality.next_annotation import Gains, agreement_gains, known_agreement, sure_answers

UNIT = "of Dice"
NAMES = None
known = known_agreement


def gains(result: RegionAggregation, agreement: NDArray[np.float64], crowd: Annotations) -> Gains:
    """How much nearer a further answer is expected to bring an image's regions, as a Dice coefficient.

    The spread is what the Dice coefficient of two answers to the image lacks, a mean with one usual pair more.
    """
    first, _, near = (table := RegionTable.of(crowd, "crowdzoo next")).pairs()
    of, number = table.tasks[first], crowd.num_tasks
    usual = 1 - near.mean() if len(near) else 1.0
    spread = (np.bincount(of, 1 - near, number) + usual) / (np.bincount(of, minlength=number) + 1)
    return agreement_gains(spread, result, agreement, crowd)


def sure(result: RegionAggregation, least: float, crowd: Annotations) -> NDArray[np.bool_]:
    """Images with two answers or more, of this mean Dice coefficient, and this confidence."""
    first, _, near = (table := RegionTable.of(crowd, "crowdzoo next")).pairs()
    of, number = table.tasks[first], crowd.num_tasks
    means = ratio(np.bincount(of, near, number), np.bincount(of, minlength=number), 0.0)
    return sure_answers(result, least) & (means >= least)
