"""Instances with ratings as tf.Examples, and scores of exported regressors on them."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from crowdzoo.kinds.model_answers import instance_scores
from crowdzoo.kinds.ratings.scoring import SCORING
from crowdzoo.records.instance_examples import read_labelled_instances as read_labelled

__all__ = ["model_scores", "read_labelled"]


def model_scores(models: Mapping[str, str], files: str, info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Scores of regressors; see `crowdzoo.kinds.parts`."""
    return instance_scores(SCORING, models, files, info, "value", tf.float32)
