"""Correlation of votes given the truth: a Dirichlet-multinomial instead of a multinomial."""

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import expit, gammaln, logsumexp

from crowdzoo.aggregation.engine.confusions import TINY
from crowdzoo.data.annotations import Annotations

Array = NDArray[np.float64]

MOST_TASKS = 2000  # to compute the likelihood on; for more tasks it is scaled
CONCENTRATIONS = np.geomspace(0.25, 1e4, 25)
RIGHT = expit(np.linspace(-4, 7, 45))  # logit-spaced shares of right votes


def weighted_votes(annotations: Annotations, weights: Array | None = None) -> Array:
    """Sums the weights, [A], default 1, of each task's annotations by class, [N, K]."""
    shape = annotations.num_tasks, annotations.num_classes
    cells = annotations.task_ids * shape[1] + annotations.labels
    sums: Array = np.bincount(cells, weights, shape[0] * shape[1]).astype(np.float64)
    return sums.reshape(shape)


def effective_number(sizes: NDArray[np.int64] | Array, concentration: float) -> Array:
    """Number of independent votes that the votes of each task are worth, [N]; see `likelihood_of_concentrations`.

    Args:
        sizes: number of votes of each task, [N].
        concentration: c, one of the concentrations there.
    """
    effective: Array = sizes * (1 + concentration) / (sizes + concentration)
    return effective


def likelihood_of_concentrations(votes: Array, class_prior: Array) -> tuple[Array, Array]:
    """Computes the likelihood of votes by concentration, at the most probable share of right votes.

    Given the class k of a task, the distribution of its votes is drawn from Dirichlet(c * m[k]), where m[k] is the
    share of right votes at k and the rest spread evenly over the other classes. Two votes for one task then have
    correlation 1 / (1 + c), so n votes are worth n * (1 + c) / (n + c) independent ones.

    The likelihood is computed on at most 2,000 random tasks, and scaled to all.

    Args:
        votes: votes per class, [N, K], K above 1.
        class_prior: probability of each class, [K].

    Returns:
        400 concentrations, ascending, and the profile log-likelihood at them.
    """
    num_classes, drawn = votes.shape[1], votes
    if len(votes) > MOST_TASKS:
        drawn = votes[np.random.default_rng(0).choice(len(votes), MOST_TASKS, replace=False)]
    patterns, counts = np.unique(drawn, axis=0, return_counts=True)
    sizes, log_prior = patterns.sum(axis=1), np.log(np.maximum(class_prior, TINY))
    right = (1 / num_classes + (1 - 1 / num_classes) * RIGHT)[:, None, None]
    profile = np.empty(len(CONCENTRATIONS))
    for place, concentration in enumerate(CONCENTRATIONS):
        of_right, of_wrong = concentration * right, concentration * (1 - right) / (num_classes - 1)
        wrong = gammaln(patterns + of_wrong) - gammaln(of_wrong)
        own = gammaln(patterns + of_right) - gammaln(of_right) - wrong
        logs = logsumexp(log_prior + own, axis=2) + wrong.sum(axis=2)
        logs += gammaln(concentration) - gammaln(concentration + sizes)
        profile[place] = _top(logs @ counts)
    fine = np.linspace(np.log(CONCENTRATIONS[0]), np.log(CONCENTRATIONS[-1]), 400)
    return np.exp(fine), CubicSpline(np.log(CONCENTRATIONS), profile)(fine) * len(votes) / len(drawn)


def _top(values: Array) -> float:
    """Maximum of the parabola through the largest of equally spaced values and its neighbours."""
    place = int(np.clip(values.argmax(), 1, len(values) - 2))
    before, at, after = values[place - 1 : place + 2]
    curve = before - 2 * at + after
    return float(max(values.max(), at - (before - after) ** 2 / (8 * curve) if curve < 0 else at))
