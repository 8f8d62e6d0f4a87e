"""Instances with ratings as tf.Examples, and scores of exported regressors on them."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from crowdzoo.aggregation.base import Aggregator
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
        """Fit to each split separately; tasks without ratings get the mean of train's estimates.

        Args: see `Records.aggregate`.
        """
        fitted, crowd = fit(crowds["train"]), crowds["eval"]
        tables = {"train": answers_table(fitted.tasks, fitted.estimates)}
        estimates = fit(crowd).estimates if len(crowd) else np.zeros(0)
        tables["eval"] = answers_table(crowd.tasks[: len(estimates)], estimates)
        return CrowdAnswers(fitted, tables, [], float(fitted.estimates.mean()))
