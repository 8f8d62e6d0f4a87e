"""effective_votes: how many independent votes the votes of a task are worth."""

from __future__ import annotations

import warnings

import numpy as np

from crowdzoo.aggregation import ConvergenceWarning, OneCoinDawidSkene, VotesWarning
from crowdzoo.aggregation.engine.correlated_votes import correlated_votes, effective_number, weighted_votes
from crowdzoo.tables.annotations import Annotations

__all__ = ["effective_votes"]


def effective_votes(annotations: Annotations) -> float | None:
    """How many independent votes the annotations of a task are worth, on average over the annotated tasks.

    Annotators who err on the same tasks add less than their number: two votes for one task are correlated, given its
    true class, by 1 / (1 + c), and n of them are worth n (1 + c) / (n + c) (Kish's design effect). The concentration c
    is that of a Dirichlet-multinomial distribution of the votes, fitted with the truth unknown. Tasks that are hard for
    everybody count as a common reason for errors, as annotators who copy each other do; groups of annotators who copy
    each other are worth less here than their number of groups.

    Args:
        annotations: kind classification.

    Returns:
        At most the mean number of annotations of a task; None where there are fewer than two classes, where no task
        has two annotations, and where annotators gave a task several labels (`on_duplicate="all"`).
    """
    sizes = annotations.redundancy[annotations.redundancy > 0]
    if annotations.num_classes < 2 or sizes.max(initial=0) < 2 or annotations.repeats:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VotesWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        coin = OneCoinDawidSkene().fit(annotations)
    votes = weighted_votes(
        annotations.task_ids,
        annotations.labels,
        np.ones(len(annotations)),
        annotations.num_tasks,
        annotations.num_classes,
    )
    concentration = correlated_votes(votes, coin.posteriors, np.zeros(len(votes), bool)).concentration
    return float(effective_number(sizes, concentration).mean())
