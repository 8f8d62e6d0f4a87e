"""Posteriors from votes that are correlated given the truth: a Dirichlet-multinomial in place of a multinomial."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.class_frequencies import class_prior_of
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.dirichlet import _pair, _slope
from crowdzoo.aggregation.engine.params import TINY

MOST_TASKS = 20_000  # that the two parameters are fitted on
MOST_STEPS = 400
MOST_RATIO, MOST_LEAP = 0.98, 1.0  # of one step of that logarithm to the last; of an extrapolated step
STILL = 1e-4  # change of the concentration's logarithm, and of the share, at which the fit ends
LEAST, MOST = 0.5, 1e4  # of the concentration: at most two thirds of correlation
FIRST = 5.0


@dataclass(frozen=True, eq=False)
class CorrelatedVotes:
    """What the votes of a task say, if those who agree may do so for a common reason.

    Attributes:
        posteriors: class probabilities, [N, K].
        right: expected share of the votes for the true class.
        concentration: c of the Dirichlet distribution that the shares of a task's votes are drawn from. Two votes for
            one task are correlated by 1 / (1 + c), so n votes are worth n * (1 + c) / (n + c) independent ones.
    """

    posteriors: NDArray[np.float64]
    right: float
    concentration: float


def weighted_votes(
    tasks: NDArray[np.int64], labels: NDArray[np.int64], weights: NDArray[np.float64], num_tasks: int, num_classes: int
) -> NDArray[np.float64]:
    """Sum of the weights of the annotations of each task and class, [N, K].

    Args:
        tasks: task of each annotation, [A].
        labels: its class, [A].
        weights: its weight, [A].
        num_tasks: N.
        num_classes: K.
    """
    cells = tasks * num_classes + labels
    found: NDArray[np.float64] = np.bincount(cells, weights, num_tasks * num_classes).astype(np.float64)
    return found.reshape(num_tasks, num_classes)


def effective_number(sizes: NDArray[np.int64] | NDArray[np.float64], concentration: float) -> NDArray[np.float64]:
    """How many independent votes the votes of each task are worth, [N]; see `CorrelatedVotes.concentration`.

    Args:
        sizes: number of votes of each task, [N].
        concentration: c.
    """
    found: NDArray[np.float64] = sizes * (1 + concentration) / (sizes + concentration)
    return found


def correlated_votes(
    votes: NDArray[np.float64], posteriors: NDArray[np.float64], known: NDArray[np.bool_], seed: int = 0
) -> CorrelatedVotes:
    """Fits the two numbers of the model by EM, and gives the posteriors under them.

    Given the class k of a task, the shares of its votes are drawn from Dirichlet(c * m[k]), where m[k] has `right` at k
    and the rest in equal parts elsewhere, and its votes from these shares: log p(votes | k) is
    log Gamma(v[k] + c m[k, k]) - log Gamma(c m[k, k]) and so on for all classes. Weights make votes fractional.

    The two numbers are fitted on 20,000 tasks at most, drawn at random.

    Args:
        votes: non-negative, [N, K].
        posteriors: starting point, [N, K].
        known: whose posteriors stay as they are, bool [N].
        seed: seed of the draw.
    """
    num_classes = votes.shape[1]
    informed = np.flatnonzero(votes.any(axis=1))
    if num_classes < 2 or not informed.size:
        return CorrelatedVotes(posteriors.copy(), 1.0, FIRST)
    if informed.size > MOST_TASKS:
        informed = np.sort(np.random.default_rng(seed).choice(informed, MOST_TASKS, replace=False))
    some, belief, fixed = votes[informed], posteriors[informed], known[informed]
    right, concentration, step = 0.0, FIRST, 0.0
    for number in range(MOST_STEPS):
        log_prior = _log_prior(belief)
        before = right, step
        right = (float((belief * some).sum()) + 1) / (float(some.sum()) + 2)
        right = max(right, (1 + STILL) / num_classes)
        wrong = (1 - right) / (num_classes - 1)
        tables, slope = _evidence(some, belief, concentration, right, wrong)
        step = math.log(tables / (slope * concentration)) if tables > 0 and slope > 0 else 0.0
        if number % 2 and before[1]:  # the fixed point is slow where votes are nearly independent: Aitken's leap
            ratio = min(max(step / before[1], 0.0), MOST_RATIO)
            step = min(max(step / (1 - ratio), -MOST_LEAP), MOST_LEAP)
        concentration = min(max(concentration * math.exp(step), LEAST), MOST)
        following = np.empty_like(belief)
        _write_posteriors(some, log_prior, concentration * right, concentration * wrong, following)
        following[fixed] = belief[fixed]
        belief = following
        if number % 2 == 0 and abs(right - before[0]) < STILL and abs(step) < STILL:
            break
    found = np.empty_like(posteriors)
    _write_posteriors(votes, _log_prior(belief), concentration * right, concentration * wrong, found)
    found[known] = posteriors[known]
    return CorrelatedVotes(found, right, concentration)


def _log_prior(posteriors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(np.maximum(class_prior_of(posteriors.sum(axis=0), "smoothed", 0.0), TINY))


@compiled()
def _evidence(votes, posteriors, concentration, right, wrong):  # type: ignore[no-untyped-def]  # for Numba
    """Tables and slope of Minka's fixed point for the concentration, over all tasks; see `expected_tables`."""
    num_tasks, num_classes = votes.shape
    of_right, of_wrong = concentration * right, concentration * wrong
    at_right, at_wrong, at_all = _slope(of_right), _slope(of_wrong), _slope(concentration)
    tables, slope = 0.0, 0.0
    for task in range(num_tasks):
        total = 0.0
        for k in range(num_classes):
            vote = votes[task, k]
            if vote > 0.0:
                total += vote
                q = posteriors[task, k]
                tables += q * of_right * (_slope(vote + of_right) - at_right)
                tables += (1.0 - q) * of_wrong * (_slope(vote + of_wrong) - at_wrong)
        if total > 0.0:
            slope += _slope(total + concentration) - at_all
    return tables, slope


@compiled()
def _write_posteriors(votes, log_prior, of_right, of_wrong, out):  # type: ignore[no-untyped-def]  # for Numba
    """Posteriors of each task: what differs between two classes is only which of them has the pseudo-count of right."""
    num_tasks, num_classes = votes.shape
    at_right, at_wrong = _pair(of_right)[1], _pair(of_wrong)[1]
    for task in range(num_tasks):
        most = -np.inf
        for k in range(num_classes):
            vote = votes[task, k]
            log = log_prior[k]
            if vote > 0.0:
                log += (_pair(vote + of_right)[1] - at_right) - (_pair(vote + of_wrong)[1] - at_wrong)
            out[task, k] = log
            most = max(most, log)
        total = 0.0
        for k in range(num_classes):
            out[task, k] = np.exp(out[task, k] - most)
            total += out[task, k]
        for k in range(num_classes):
            out[task, k] /= total
