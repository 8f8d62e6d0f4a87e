"""Instances with ratings as tf.Examples, and scores of exported regressors on them."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.kinds.ratings.scoring import SCORING
from crowdzoo.kinds.records import Crowds, Fit, Records, instance_scores
from crowdzoo.kinds.scoring import Scores
from crowdzoo.records.crowd_answers import CrowdAnswers, answers_table
from crowdzoo.records.example_files import DatasetInfo


class RatingRecords(Records):
    """Ratings of instances."""

    def model_scores(self, models: Mapping[str, str], files: str, info: DatasetInfo) -> dict[str, Scores]:
        """See `Records.model_scores`."""
        return instance_scores(SCORING, models, files, info, "value", tf.float32)

    def aggregate(self, method: Aggregator, crowds: Crowds, fit: Fit, examples: str) -> CrowdAnswers:
        """Each split by its own ratings alone; a task without ratings has the mean of train's estimates.

        Args: see `Records.aggregate`.
        """
        fitted, crowd = fit(crowds["train"]), crowds["eval"]
        own = fit(crowd) if len(crowd) else None
        none = answers_table(crowd.tasks[:0], np.zeros(0))
        return CrowdAnswers(
            fitted,
            {
                "train": answers_table(fitted.tasks, fitted.estimates),
                "eval": none if own is None else answers_table(own.tasks, own.estimates),
            },
            [],
            float(fitted.estimates.mean()),
        )
