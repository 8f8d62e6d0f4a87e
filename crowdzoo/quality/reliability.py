"""judged_by_others: how often an annotator is right, as the others who labelled the same tasks see it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import DataError
from crowdzoo.label_kinds import CLASSIFICATION, require_kind
from crowdzoo.quality.tasks import check_same
from crowdzoo.tables.annotations import Annotations

__all__ = ["judged_by_others"]

NUMBERS_AT_ONCE = 1 << 22  # of annotations by classes
LEAST = 1e-12  # of a probability, so that its logarithm is finite


def judged_by_others(annotations: Annotations, aggregation: Aggregation) -> NDArray[np.float64]:
    """Share of each annotator's labels that is expected to be right, [R], judged by the other annotators alone.

    The probability that a label is right comes from Bayes' rule with the aggregation's confusion matrices and class
    prior (Dawid & Skene 1979, eq. 2.5), over the other annotations of the task. So no label counts in its own favour,
    except that the matrices were fitted with it. Only annotations of tasks that others labelled, too, are counted.

    Args:
        annotations: kind classification; R annotators.
        aggregation: a result for the same annotations, with confusions and class prior.

    Returns:
        [R], 0 to 1; NaN where an annotator shares no task.

    Raises:
        DataError: another kind, an aggregation of other tasks, annotators or classes, or one without confusions.
    """
    require_kind(annotations.label_kind, "judged_by_others", CLASSIFICATION)
    annotations.check_no_repeats("judged_by_others")
    check_same(annotations, aggregation)
    if aggregation.confusions is None or aggregation.class_prior is None:
        raise DataError(
            f"judged_by_others needs confusion matrices and a class prior, and {aggregation.method!r} gives none: "
            "take a method that does, such as 'dawid-skene'."
        )
    number = annotations.num_annotators
    right, shared = np.zeros(number), np.zeros(number)
    log_prior = np.log(np.maximum(aggregation.class_prior, LEAST))
    for tasks, who, said in annotations.blocks(max(1, NUMBERS_AT_ONCE // max(annotations.num_classes, 1))):
        starts = np.flatnonzero(np.diff(tasks, prepend=-1))
        sizes = np.diff(np.append(starts, len(tasks)))
        evidence = np.log(np.maximum(aggregation.confusions[who, :, said], LEAST))
        others = np.repeat(np.add.reduceat(evidence, starts) + log_prior, sizes, axis=0) - evidence
        others = np.exp(others - others.max(axis=1, keepdims=True))
        probability = others[np.arange(len(said)), said] / others.sum(axis=1)
        several = np.repeat(sizes > 1, sizes)
        right += np.bincount(who[several], probability[several], minlength=number)
        shared += np.bincount(who[several], minlength=number)
    return np.divide(right, shared, out=np.full(number, np.nan), where=shared > 0)
