"""Dirichlet distributions: expected logarithms and divergences, for variational Bayes."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, zeta

from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.threads import in_threads, num_threads

CELLS = 2**17  # what a thread takes at a time
SMALL = 1e-4  # of its pseudo-count: a count below has Taylor's series to the third degree, which is exact to 1e-12
U = np.uint64  # signed indices cost a wrap-around check each
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def expected_logs(counts: NDArray[np.float64], prior: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """E[log p] under Dirichlet(counts + prior), and how far these distributions are from Dirichlet(prior).

    Args:
        counts: non-negative, one distribution over L outcomes for each of R and S, [R, L, S].
        prior: pseudo-counts, positive, the same for all R, [L, S].

    Returns:
        E[log p], [R, L, S]: digamma(a[r, l, s]) - digamma(sum over l of a[r, l, s]) with a = counts + prior.
        The Kullback-Leibler divergence KL(Dirichlet(counts + prior) || Dirichlet(prior)) in nats, over all r and s.
    """
    counts = np.ascontiguousarray(counts)
    logs = np.empty_like(counts)
    cells = _with_sums(prior)
    facts = (cells, digamma(cells), gammaln(cells), _slopes(cells))
    step = max(1, CELLS // max(prior.size, 1))

    def work(parts: Sequence[slice]) -> list[float]:
        return [_expect(counts[part], *facts, logs[part]) for part in parts]

    parts = [slice(begin, begin + step) for begin in range(0, len(counts), step)]
    divergences = in_threads(work, parts, num_threads())
    return logs, math.fsum(divergence for part in divergences for divergence in part)


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
    counts = np.ascontiguousarray(counts)
    cells = _with_sums(prior)
    facts = (cells, digamma(cells), _slopes(cells))
    step = max(1, CELLS // max(prior.size, 1))

    def work(parts: Sequence[slice]) -> NDArray[np.float64]:
        tables = np.zeros_like(cells)
        for part in parts:
            _tables(counts[part], *facts, tables)
        return tables

    parts = [slice(begin, begin + step) for begin in range(0, len(counts), step)]
    divergence = np.sum(in_threads(work, parts, num_threads()), axis=0)
    return divergence[:-1], float((divergence[-1] / cells[-1]).sum())


def _with_sums(prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """The pseudo-counts [L, S] and below them their sums, [L + 1, S]."""
    return np.concatenate([prior, prior.sum(axis=0, keepdims=True)])


@compiled()
def _pair(value):  # type: ignore[no-untyped-def]  # for Numba
    """Digamma and log gamma of a positive number.

    Both are carried up to 10 or more by their recurrences, and found there by their asymptotic series (Abramowitz and
    Stegun, Handbook of Mathematical Functions, 6.3.5, 6.3.18; 6.1.15, 6.1.41).
    """
    value, inverses, product = _carried(value)
    log = math.log(value)
    inverse = 1.0 / value
    square = inverse * inverse
    terms = 1 / 1260 - square * (1 / 1680 - square * (1 / 1188 - square * (691 / 360360 - square / 156)))
    series = inverse * (1 / 12 - square * (1 / 360 - square * terms))
    log_gamma = (value - 0.5) * log - value + HALF_LOG_TWO_PI + series - math.log(product)
    return _asymptotic(log, inverse) - inverses, log_gamma


@compiled()
def _slope(value):  # type: ignore[no-untyped-def]  # for Numba
    """Digamma of a positive number; see `_pair`."""
    value, inverses, _ = _carried(value)
    return _asymptotic(math.log(value), 1.0 / value) - inverses


@compiled(inline="always")
def _carried(value):  # type: ignore[no-untyped-def]  # for Numba
    """A number of 10 or more, ten steps of 1 higher if need be; sum of the inverses, and product, of those on the way.

    With u = x (x + 9) the product of x to x + 9 is u (u + 8) (u + 14) (u + 18) (u + 20), and the sum of their inverses
    is the derivative of its logarithm: one division, and no loop of unknown length.
    """
    if value >= 10.0:
        return value, 0.0, 1.0
    pair = value * (value + 9.0)
    derivative, product = 1.0, pair
    for more in (8.0, 14.0, 18.0, 20.0):
        derivative = derivative * (pair + more) + product
        product *= pair + more
    return value + 10.0, (2.0 * value + 9.0) * derivative / product, product


@compiled(inline="always")
def _asymptotic(log, inverse):  # type: ignore[no-untyped-def]  # for Numba
    """Digamma of a number of 10 or more, from its logarithm and its inverse."""
    square = inverse * inverse
    terms = 1 / 252 - square * (1 / 240 - square * (1 / 132 - square * (691 / 32760 - square / 12)))
    return log - 0.5 * inverse - square * (1 / 12 - square * (1 / 120 - square * terms))


def _slopes(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """First, second and third derivative of digamma at each value, by 1, 2 and 6: Taylor's coefficients, [3, ...].

    They are Hurwitz's zeta functions of 2, 3 and 4, the second with the other sign (Abramowitz and Stegun, 6.4.10).
    """
    distinct, places = np.unique(values, return_inverse=True)  # most priors have few
    derivatives = np.stack([zeta(2, distinct), -zeta(3, distinct), zeta(4, distinct)])
    return derivatives[:, places].reshape(3, *values.shape)


@compiled()
def _expect(counts, prior, prior_digamma, prior_log_gamma, slopes, logs):  # type: ignore[no-untyped-def]  # for Numba
    """Fills `logs` and returns the divergence; the last row of what is of the prior, [L + 1, S], is of its sums.

    Most counts are zero or small, and cost no logarithm.
    """
    num_outcomes, num_states = U(logs.shape[1]), U(logs.shape[2])
    totals, at_totals = np.empty(num_states), np.empty(num_states)
    divergence = 0.0
    for r in range(U(len(counts))):
        totals[:] = 0.0
        for outcome in range(num_outcomes):
            for s in range(num_states):
                totals[s] += counts[r, outcome, s]
        for s in range(num_states):
            at_totals[s] = prior_digamma[num_outcomes, s]
            if totals[s] > 0.0:
                at_totals[s], log_gamma = _pair(totals[s] + prior[num_outcomes, s])
                divergence += log_gamma - prior_log_gamma[num_outcomes, s]
        for outcome in range(num_outcomes):
            for s in range(num_states):
                count, alpha = counts[r, outcome, s], prior[outcome, s]
                log = prior_digamma[outcome, s] - at_totals[s]
                if count > SMALL * alpha:
                    slope, log_gamma = _pair(count + alpha)
                    log = slope - at_totals[s]
                    divergence += count * log - log_gamma + prior_log_gamma[outcome, s]
                elif count > 0.0:
                    slope_at, curve_at, third_at = slopes[0, outcome, s], slopes[1, outcome, s], slopes[2, outcome, s]
                    log += count * (slope_at + count * (curve_at + count * third_at))
                    more = slope_at * (1 / 2) + count * (curve_at * (2 / 3) + count * third_at * (3 / 4))
                    divergence += count * (count * more - at_totals[s])
                logs[r, outcome, s] = log
    return divergence


@compiled()
def _tables(counts, prior, prior_digamma, slopes, tables):  # type: ignore[no-untyped-def]  # for Numba
    """Adds to `tables` [L + 1, S], see `expected_tables`; the last row is of the sums, as those of `_expect`."""
    num_outcomes, num_states = U(counts.shape[1]), U(counts.shape[2])
    totals = np.empty(num_states)
    for r in range(U(len(counts))):
        totals[:] = 0.0
        for outcome in range(num_outcomes):
            for s in range(num_states):
                count, alpha = counts[r, outcome, s], prior[outcome, s]
                totals[s] += count
                if count > SMALL * alpha:
                    tables[outcome, s] += alpha * (_slope(count + alpha) - prior_digamma[outcome, s])
                elif count > 0.0:
                    slope_at, curve_at, third_at = slopes[0, outcome, s], slopes[1, outcome, s], slopes[2, outcome, s]
                    tables[outcome, s] += alpha * count * (slope_at + count * (curve_at + count * third_at))
        for s in range(num_states):
            if totals[s] > 0.0:
                alpha = prior[num_outcomes, s]
                tables[num_outcomes, s] += alpha * (_slope(totals[s] + alpha) - prior_digamma[num_outcomes, s])
