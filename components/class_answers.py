"""Aggregation of classes, for CrowdAggregator."""

from collections.abc import Callable
from typing import Any

import numpy as np

from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.components.crowd_answers import CrowdAnswers, answers_table

__all__ = ["class_answers"]


def class_answers(method: Any, crowds: dict[str, Any], fit: Callable[[Any], Any], examples: str) -> CrowdAnswers:
    """Fits to train; eval's posteriors follow from what train taught about the annotators, if that is a model of them.

    Args:
        method: of aggregation.
        crowds: annotations by split.
        fit: fits the method, on Beam where it has that form.
        examples: folder of the Examples.
    """
    fitted, crowd = fit(crowds["train"]), crowds["eval"]
    if fitted.confusions is None or not fitted.history:  # without a history there was nothing to fit
        alone = method.fit(crowd)
        tasks, labels, posteriors = alone.tasks, alone.labels, alone.posteriors
    else:
        tasks, posteriors = crowd.tasks, fitted.posteriors_of(crowd)
        labels = choose_labels(posteriors, np.arange(crowd.num_tasks), seed=method.seed)
    prior = fitted.class_prior
    unknown = np.full(len(fitted.classes), 1 / len(fitted.classes)) if prior is None else prior
    return CrowdAnswers(
        fitted,
        {
            "train": answers_table(fitted.tasks, fitted.labels, fitted.posteriors),
            "eval": answers_table(tasks, labels, posteriors),
        },
        unknown.tolist(),
        int(np.argmax(unknown)),
    )
