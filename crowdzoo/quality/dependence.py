"""Number of independent votes that the votes of a task are worth, with an interval."""

import numpy as np

from crowdzoo.aggregation import ConvergenceWarning, OneCoinDawidSkene, VotesWarning
from crowdzoo.aggregation.base import ignored
from crowdzoo.aggregation.engine.correlated_votes import effective_number, likelihood_of_concentrations, weighted_votes
from crowdzoo.data.annotations import Annotations

INSIDE = 1.92  # by which the log-likelihood falls at the ends of an interval of 95 %


def effective_votes(annotations: Annotations) -> float | None:
    """Number of independent votes that the annotations of a task are worth, averaged over the annotated tasks.

    Annotators with errors on the same tasks add less than their number: two votes for a task have correlation
    1 / (1 + c) given its true class, and n of them are worth n (1 + c) / (n + c) (Kish's design effect). The
    concentration c is that of a Dirichlet-multinomial distribution of the votes, fitted with unknown truth. Tasks that
    are hard for everybody are a common reason for errors, like annotators who copy each other; groups of copiers are
    worth less here than their number of groups.

    If the votes do not contradict independence, the value is their number.

    Args:
        annotations: kind classification.

    Returns:
        At most the mean number of annotations per task; None for fewer than two classes, if no task has two
        annotations, or if annotators gave a task several labels (`on_duplicate="all"`).
    """
    interval = effective_votes_interval(annotations)
    return None if interval is None else interval[0]


def effective_votes_interval(annotations: Annotations) -> tuple[float, float, float] | None:
    """`effective_votes` with the ends of its 95 % interval by the profile likelihood.

    If the votes carry little information, as those of annotators who hardly disagree, the interval is wide. On 36 kinds
    of generated crowds of 100 to 1,000 tasks it contained the value in 81 to 100 % of cases, 97 % on average (`python
    benchmarks/reproduce/interval_coverage.py --parts "effective votes"`); least often with ten votes per task.

    Args:
        annotations: kind classification.

    Returns:
        Value, low and high; None if there is no value.
    """
    labelled = annotations.redundancy > 0
    sizes = annotations.redundancy[labelled]
    if annotations.num_classes < 2 or sizes.max(initial=0) < 2 or annotations.repeats:
        return None
    with ignored(VotesWarning, ConvergenceWarning):
        coin = OneCoinDawidSkene().fit(annotations)
    votes = weighted_votes(annotations)[labelled]
    prior = coin.posteriors[labelled].sum(axis=0) + 1

    concentrations, likelihood = likelihood_of_concentrations(votes, prior / prior.sum())
    inside = np.flatnonzero(likelihood >= likelihood.max() - INSIDE)
    most = float(sizes.mean())
    value, low, high = (
        float(effective_number(sizes, concentrations[place]).mean())
        for place in (likelihood.argmax(), inside[0], inside[-1])
    )
    if inside[-1] == len(concentrations) - 1:  # as for independent votes
        value, high = most, most
    return value, 1.0 if inside[0] == 0 else low, high
