"""Questions of `crowdzoo next` about regions."""

from __future__ import annotations

import numpy as np

from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.questions import AnswerQuestions
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.figures import means
from crowdzoo.quality.next_annotation import Gains, agreement_gains


class RegionQuestions(AnswerQuestions[RegionAggregation]):
    """Choose questions by the agreement of regions."""

    gain_meaning = "how much nearer the answer brings the regions to the true ones, as a Dice coefficient (0 to 1)"

    def gains(self, result: RegionAggregation, skills: Floats, crowd: Annotations) -> Gains:
        """Expected increase in the Dice coefficient of an image's regions by a further answer.

        The spread is one minus the mean Dice coefficient of two answers to the image, smoothed by one typical pair.
        """
        of, near = _pairs(crowd, result.distance)
        number = crowd.num_tasks
        usual = 1 - near.mean() if len(near) else 1.0
        spread = (np.bincount(of, 1 - near, number) + usual) / (np.bincount(of, minlength=number) + 1)
        return agreement_gains(spread, result, skills, crowd)

    def find_sure(self, result: RegionAggregation, least: float, crowd: Annotations) -> Flags:
        """Images with at least two answers, this mean Dice coefficient and this confidence."""
        of, near = _pairs(crowd, result.distance)
        return super().find_sure(result, least, crowd) & (means(of, near, crowd.num_tasks, 0.0) >= least)


def _pairs(crowd: Annotations, radius: float | None) -> tuple[Codes, Floats]:
    """Image of each pair of answers, and their Dice coefficient."""
    table = RegionTable.of(crowd, "crowdzoo next")
    first, _, near = table.pairs(radius)
    return table.tasks[first], near
