"""Dirichlet distributions: expected logarithms and divergences, for variational Bayes."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.threads import in_threads, num_threads

__all__ = ["digamma", "expected_logs", "expected_tables", "log_gamma"]

CELLS = 2**17  # what a thread takes at a time
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def digamma(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Derivative of `log_gamma` at each value (all positive), to 1e-14 of the larger of 1 and the result."""
    return _digamma_and_log_gamma(values)[0]


def log_gamma(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of the gamma function of each value (all positive), to 1e-14 of the larger of 1 and the result."""
    return _digamma_and_log_gamma(values)[1]


def expected_logs(counts: NDArray[np.float64], prior: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """E[log p] under Dirichlet(counts + prior), and how far these distributions are from Dirichlet(prior).

    Args:
        counts: non-negative, one distribution over L outcomes for each of R and S, [R, L, S].
        prior: pseudo-counts, positive, the same for all R, [L, S].

    Returns:
        E[log p], [R, L, S]: digamma(a[r, l, s]) - digamma(sum over l of a[r, l, s]) with a = counts + prior.
        The Kullback-Leibler divergence KL(Dirichlet(counts + prior) || Dirichlet(prior)) in nats, over all r and s.
    """
    counts, prior = np.ascontiguousarray(counts), np.ascontiguousarray(prior)
    logs = np.empty_like(counts)
    prior_digamma, prior_log_gamma = _digamma_and_log_gamma(prior)
    step = max(1, CELLS // max(prior.size, 1))

    def work(parts: Sequence[slice]) -> list[float]:
        return [_expect(counts[part], prior, prior_digamma, prior_log_gamma, logs[part]) for part in parts]

    parts = [slice(begin, begin + step) for begin in range(0, len(counts), step)]
    found = in_threads(work, parts, num_threads())
    return logs, math.fsum(divergence for part in found for divergence in part)


def expected_tables(counts: NDArray[np.float64], prior: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """What a common Dirichlet prior of many distributions is fitted from (Minka, Estimating a Dirichlet distribution).

    In the urn scheme that goes with the prior, `tables` counts the draws that came from the prior itself and not from
    earlier draws. The likelihood of all counts, as a function of new pseudo-counts a', is at least
    sum of tables * log a' - `slope` * (sum of a'), up to a constant, with equality at the present ones.

    Args:
        counts: non-negative, one distribution over L outcomes for each of R and S, [R, L, S].
        prior: pseudo-counts, positive, the same for all R; each column has the same sum, [L, S].

    Returns:
        The sum over r of a[l, s] * (digamma(n[r, l, s] + a[l, s]) - digamma(a[l, s])), [L, S]; and the sum over r and s
        of digamma(n[r, s] + a[s]) - digamma(a[s]), where n[r, s] and a[s] are sums over l.
    """
    counts, prior = np.ascontiguousarray(counts), np.ascontiguousarray(prior)
    prior_digamma = digamma(prior)
    step = max(1, CELLS // max(prior.size, 1))

    def work(parts: Sequence[slice]) -> tuple[NDArray[np.float64], float]:
        tables, slope = np.zeros_like(prior), 0.0
        for part in parts:
            slope += _tables(counts[part], prior, prior_digamma, tables)
        return tables, slope

    parts = [slice(begin, begin + step) for begin in range(0, len(counts), step)]
    found = in_threads(work, parts, num_threads())
    return sum((tables for tables, _ in found), np.zeros_like(prior)), math.fsum(slope for _, slope in found)


def _digamma_and_log_gamma(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    flat = np.ascontiguousarray(values, np.float64).ravel()
    result = np.empty((2, flat.size))
    _pairs(flat, result)
    return result[0].reshape(np.shape(values)), result[1].reshape(np.shape(values))


@compiled()
def _pair(value):  # type: ignore[no-untyped-def]  # for Numba
    """Digamma and log gamma of a positive number.

    Both are carried up to 10 or more by their recurrences, and found there by their asymptotic series (Abramowitz and
    Stegun, Handbook of Mathematical Functions, 6.3.5, 6.3.18; 6.1.15, 6.1.41).
    """
    inverses, product = 0.0, 1.0
    while value < 10.0:
        inverses += 1.0 / value
        product *= value
        value += 1.0
    log = math.log(value)
    inverse = 1.0 / value
    square = inverse * inverse
    slopes = 1 / 252 - square * (1 / 240 - square * (1 / 132 - square * (691 / 32760 - square / 12)))
    slope = log - 0.5 * inverse - square * (1 / 12 - square * (1 / 120 - square * slopes)) - inverses
    terms = 1 / 1260 - square * (1 / 1680 - square * (1 / 1188 - square * (691 / 360360 - square / 156)))
    series = inverse * (1 / 12 - square * (1 / 360 - square * terms))
    return slope, (value - 0.5) * log - value + HALF_LOG_TWO_PI + series - math.log(product)


@compiled()
def _pairs(values, result):  # type: ignore[no-untyped-def]  # for Numba
    for index in range(len(values)):
        result[0, index], result[1, index] = _pair(values[index])


@compiled()
def _expect(counts, prior, prior_digamma, prior_log_gamma, logs):  # type: ignore[no-untyped-def]  # for Numba
    """Fills `logs` and returns the divergence; all [R, L, S] and [L, S]. A count of zero costs no logarithm."""
    num_outcomes, num_states = prior.shape
    totals, prior_totals = np.empty(num_states), np.zeros(num_states)
    for outcome in range(num_outcomes):
        for s in range(num_states):
            prior_totals[s] += prior[outcome, s]
    divergence = 0.0
    for r in range(len(counts)):
        for s in range(num_states):
            totals[s] = prior_totals[s]
        for outcome in range(num_outcomes):
            for s in range(num_states):
                totals[s] += counts[r, outcome, s]
        for s in range(num_states):
            if totals[s] > prior_totals[s]:
                totals[s], log_gamma = _pair(totals[s])
                divergence += log_gamma - _pair(prior_totals[s])[1]
            else:
                totals[s] = _pair(totals[s])[0]
        for outcome in range(num_outcomes):
            for s in range(num_states):
                count = counts[r, outcome, s]
                if count > 0.0:
                    slope, log_gamma = _pair(count + prior[outcome, s])
                    logs[r, outcome, s] = slope - totals[s]
                    divergence += count * logs[r, outcome, s] - log_gamma + prior_log_gamma[outcome, s]
                else:
                    logs[r, outcome, s] = prior_digamma[outcome, s] - totals[s]
    return divergence


@compiled()
def _tables(counts, prior, prior_digamma, tables):  # type: ignore[no-untyped-def]  # for Numba
    """Adds to `tables` [L, S] and returns the slope; see `expected_tables`. A count of zero costs nothing."""
    num_outcomes, num_states = prior.shape
    prior_totals = np.zeros(num_states)
    for outcome in range(num_outcomes):
        for s in range(num_states):
            prior_totals[s] += prior[outcome, s]
    slope = 0.0
    totals = np.empty(num_states)
    for r in range(len(counts)):
        totals[:] = 0.0
        for outcome in range(num_outcomes):
            for s in range(num_states):
                count = counts[r, outcome, s]
                if count > 0.0:
                    totals[s] += count
                    alpha = prior[outcome, s]
                    tables[outcome, s] += alpha * (_pair(count + alpha)[0] - prior_digamma[outcome, s])
        for s in range(num_states):
            if totals[s] > 0.0:
                slope += _pair(totals[s] + prior_totals[s])[0] - _pair(prior_totals[s])[0]
    return slope
