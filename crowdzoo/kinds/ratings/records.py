"""Instances with ratings as tf.Examples, and scores of exported regressors on them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.kinds.model_answers import instance_scores
from crowdzoo.kinds.ratings.scoring import SCORING
from crowdzoo.records.crowd_answers import CrowdAnswers, answers_table
from crowdzoo.records.instance_examples import read_labelled_instances as read_labelled

__all__ = ["aggregate", "model_scores", "read_labelled"]


def model_scores(models: Mapping[str, str], files: str, info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Scores of regressors; see `crowdzoo.kinds.parts`."""
    return instance_scores(SCORING, models, files, info, "value", tf.float32)


def aggregate(method: Any, crowds: dict[str, Any], fit: Callable[[Any], Any], examples: str) -> CrowdAnswers:
    """Each split by its own ratings alone; a task without ratings has the mean of train's estimates.

    Args: see `crowdzoo.kinds.parts`.
    """
    fitted, crowd = fit(crowds["train"]), crowds["eval"]
    found = fit(crowd) if len(crowd) else None
    none = answers_table(crowd.tasks[:0], np.zeros(0))
    return CrowdAnswers(
        fitted,
        {
            "train": answers_table(fitted.tasks, fitted.estimates),
            "eval": none if found is None else answers_table(found.tasks, found.estimates),
        },
        [],
        float(fitted.estimates.mean()),
    )
