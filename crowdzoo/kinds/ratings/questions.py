"""Questions of `crowdzoo next` about ratings."""

from __future__ import annotations

import numpy as np

from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.questions import Questions
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.next_annotation import FEWEST, LEAST, Gains


class RatingQuestions(Questions[RatingAggregation]):
    """Choose questions by the standard errors of the estimates."""

    gain_meaning = "by how much the answer lowers the standard error of the estimate, in the unit of the ratings"

    def skills(self, result: RatingAggregation, places: list[int] | slice) -> Floats:
        """Share of the variance of each annotator's ratings that is due to the truth, [R]."""
        return result.skills

    def gains(self, result: RatingAggregation, skills: Floats, crowd: Annotations) -> Gains:
        """Expected decrease in the standard error of the task's estimate by a rating, in the labels' unit.

        Combining an estimate of variance v and a rating with error variance e gives variance 1 / (1 / v + 1 / e). With
        V the variance of the estimates, a skill s means e = V (1 - s) / s.
        """
        shares = np.clip(skills, LEAST, 1 - LEAST)
        precisions = shares / (1 - shares) / max(float(np.var(result.estimates)), LEAST)
        errors = np.maximum(result.standard_errors, LEAST)

        def reduced(tasks: Codes, annotators: Codes) -> Floats:
            before = errors[tasks, None]
            return np.asarray(before - 1 / np.sqrt(before**-2 + precisions[annotators]))

        return reduced

    def find_sure(self, result: RatingAggregation, least: float, crowd: Annotations) -> Flags:
        """Tasks with at least two ratings whose error variance is at most 1 - `least` of the estimates' variance."""
        spread = max(float(np.var(result.estimates)), LEAST)
        reliable = 1 - result.standard_errors**2 / spread >= least
        return np.asarray(reliable & (result.annotations_per_task >= FEWEST))
