"""How far votes are correlated, given the truth: a Dirichlet-multinomial in place of a multinomial."""

import math

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.class_frequencies import class_prior_of
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.dirichlet import _pair, _slope
from crowdzoo.aggregation.engine.params import TINY
from crowdzoo.data.annotations import Annotations

MOST_TASKS = 20_000  # that the two parameters are fitted on
MOST_STEPS = 400
MOST_RATIO, MOST_LEAP = 0.98, 1.0  # of one step of that logarithm to the last; of an extrapolated step
STILL = 1e-4  # change of the concentration's logarithm, and of the share, at which the fit ends
LEAST, MOST = 0.5, 1e4  # of the concentration: at most two thirds of correlation
FIRST = 5.0


def weighted_votes(annotations: Annotations, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of the weights, [A], of the annotations of each task and class, [N, K]."""
    shape = annotations.num_tasks, annotations.num_classes
    cells = annotations.task_ids * shape[1] + annotations.labels
    found: NDArray[np.float64] = np.bincount(cells, weights, shape[0] * shape[1]).astype(np.float64)
    return found.reshape(shape)


def effective_number(sizes: NDArray[np.int64] | NDArray[np.float64], concentration: float) -> NDArray[np.float64]:
    """How many independent votes the votes of each task are worth, [N]; see `concentration_of`.

    Args:
        sizes: number of votes of each task, [N].
        concentration: c.
    """
    found: NDArray[np.float64] = sizes * (1 + concentration) / (sizes + concentration)
    return found


def concentration_of(votes: NDArray[np.float64], posteriors: NDArray[np.float64]) -> float:
    """How far the votes of a task are independent given its class: fits a Dirichlet-multinomial to them by EM.

    Given the class k of a task, the shares of its votes are drawn from Dirichlet(c * m[k]), where m[k] has a share of
    right votes at k and the rest in equal parts elsewhere, and its votes from these shares: log p(votes | k) is
    log Gamma(v[k] + c m[k, k]) - log Gamma(c m[k, k]) and so on for all classes. Weights make votes fractional.

    The two numbers are fitted on 20,000 tasks at most, drawn at random.

    Args:
        votes: non-negative, [N, K].
        posteriors: starting point, [N, K].

    Returns:
        c. Two votes for one task are correlated by 1 / (1 + c), so n votes are worth n * (1 + c) / (n + c) independent
        ones.
    """
    num_classes = votes.shape[1]
    informed = np.flatnonzero(votes.any(axis=1))
    if num_classes < 2 or not informed.size:
        return FIRST
    if informed.size > MOST_TASKS:
        informed = np.sort(np.random.default_rng(0).choice(informed, MOST_TASKS, replace=False))
    some, belief = votes[informed], posteriors[informed]
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
        belief = np.empty_like(belief)
        _write_posteriors(some, log_prior, concentration * right, concentration * wrong, belief)
        if number % 2 == 0 and abs(right - before[0]) < STILL and abs(step) < STILL:
            break
    return concentration


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
