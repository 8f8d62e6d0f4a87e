"""What `crowdzoo next` asks about ratings."""

from __future__ import annotations

import numpy as np

from crowdzoo.aggregation.ratings.rating_aggregation import RatingAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.questions import Questions
from crowdzoo.kinds.scoring import Codes, Flags, Floats
from crowdzoo.quality.next_annotation import FEWEST, LEAST, Gains


class RatingQuestions(Questions[RatingAggregation]):
    """By the standard errors of the estimates."""

    gain_meaning = "by how much the answer lowers the standard error of the estimate, in the unit of the ratings"

    def skills(self, result: RatingAggregation, places: list[int] | slice) -> Floats:
        """Share of the variance of an annotator's ratings that the truth makes up, [R]."""
        return result.skills

    def gains(self, result: RatingAggregation, skills: Floats, crowd: Annotations) -> Gains:
        """How much a rating is expected to reduce the standard error of the task's estimate, in the labels' unit.

        An estimate of variance v and a rating of variance e about the truth together have 1 / (1 / v + 1 / e). With V,
        the variance of the estimates, a skill of s is e = V (1 - s) / s.
        """
        shares = np.clip(skills, LEAST, 1 - LEAST)
        precisions = shares / (1 - shares) / max(float(np.var(result.estimates)), LEAST)
        errors = np.maximum(result.standard_errors, LEAST)

        def reduced(tasks: Codes, annotators: Codes) -> Floats:
            before = errors[tasks, None]
            return np.asarray(before - 1 / np.sqrt(before**-2 + precisions[annotators]))

        return reduced

    def find_sure(self, result: RatingAggregation, least: float, crowd: Annotations) -> Flags:
        """Tasks with two ratings or more whose error makes up no more than the rest of the estimates' variance."""
        spread = max(float(np.var(result.estimates)), LEAST)
        reliable = 1 - result.standard_errors**2 / spread >= least
        return np.asarray(reliable & (result.annotations_per_task >= FEWEST))
