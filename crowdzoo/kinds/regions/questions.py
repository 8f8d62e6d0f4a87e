"""What `crowdzoo next` asks where annotators mark regions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.next_annotation import Gains, agreement_gains, known_agreement, sure_answers

UNIT = "of Dice"
NAMES = None
known = known_agreement


def gains(result: RegionAggregation, agreement: NDArray[Any], crowd: Annotations) -> Gains:
    """How much nearer a further answer is expected to bring an image's regions, as a Dice coefficient.

    The spread is what the Dice coefficient of two answers to the image lacks, a mean with one usual pair more.
    """
    pairs = dict(RegionTable.of(crowd, "crowdzoo next").pairs())
    apart = [1 - each for near in pairs.values() for each in near]
    usual = float(np.mean(apart)) if apart else 1.0
    sums = [(sum(pairs.get(task, [])), len(pairs.get(task, []))) for task in range(crowd.num_tasks)]
    spread = np.array([(number - near + usual) / (number + 1) for near, number in sums])
    return agreement_gains(spread, result, agreement, crowd)


def sure(result: RegionAggregation, least: float, crowd: Annotations) -> NDArray[np.bool_]:
    """Images with two answers or more, of this mean Dice coefficient, and this confidence."""
    pairs = dict(RegionTable.of(crowd, "crowdzoo next").pairs())
    near = np.array([np.mean(pairs.get(task, [0.0])) for task in range(crowd.num_tasks)])
    return sure_answers(result, least) & (near >= least)
