"""Dirichlet distributions: expected logarithms and divergences, for variational Bayes."""

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from crowdzoo.aggregation.engine.loops import in_threads, num_threads

CELLS = 2**17  # that a thread processes at a time
T = TypeVar("T")


def expected_logs(counts: NDArray[np.float64], prior: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Computes E[log p] under Dirichlet(counts + prior), and the divergence of these distributions from the prior.

    Args:
        counts: non-negative, one distribution over L outcomes for each of R and S, [R, L, S].
        prior: pseudo-counts, positive, the same for all R, [L, S].

    Returns:
        E[log p], [R, L, S]: digamma(a[r, l, s]) - digamma(sum over l of a[r, l, s]) with a = counts + prior.
        The Kullback-Leibler divergence KL(Dirichlet(counts + prior) || Dirichlet(prior)) in nats, over all r and s.
    """
    logs = np.empty(counts.shape)
    of_prior, of_sums = gammaln(prior), gammaln(prior.sum(axis=0))

    def expect(part: slice) -> float:
        cells = counts[part] + prior
        totals = cells.sum(axis=1)
        np.subtract(digamma(cells), digamma(totals)[:, None], out=logs[part])
        moved = counts[part] * logs[part] - (gammaln(cells) - of_prior)
        return float(moved.sum() + (gammaln(totals) - of_sums).sum())

    return logs, math.fsum(_by_parts(expect, counts))


def expected_tables(counts: NDArray[np.float64], prior: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Computes statistics to fit a common Dirichlet prior (Minka, Estimating a Dirichlet distribution).

    In the prior's urn scheme, `tables` counts the draws that came from the prior itself, not from earlier draws. The
    log-likelihood of all counts, as a function of new pseudo-counts a', is at least
    sum of tables * log a' - `slope` * (sum of a'), up to a constant, with equality at the current ones.

    Args:
        counts: non-negative, one distribution over L outcomes for each of R and S, [R, L, S].
        prior: pseudo-counts, positive, the same for all R; each column has the same sum, [L, S].

    Returns:
        The sum over r of a[l, s] * (digamma(n[r, l, s] + a[l, s]) - digamma(a[l, s])), [L, S]; and the sum over r and s
        of digamma(n[r, s] + a[s]) - digamma(a[s]), where n[r, s] and a[s] are sums over l.
    """
    sums = prior.sum(axis=0)

    def add(part: slice) -> tuple[NDArray[np.float64], float]:
        cells = counts[part] + prior
        slopes = digamma(cells.sum(axis=1)) - digamma(sums)
        return (digamma(cells) - digamma(prior)).sum(axis=0), float(slopes.sum())

    tables, slope = np.zeros_like(prior), 0.0
    for part_tables, part_slope in _by_parts(add, counts):
        tables, slope = tables + part_tables, slope + part_slope
    return prior * tables, slope


def _by_parts(function: Callable[[slice], T], counts: NDArray[np.float64]) -> list[T]:
    """Applies a function to parts of the distributions on all cores; SciPy releases the interpreter's lock."""
    step = max(1, CELLS // max(int(np.prod(counts.shape[1:])), 1))
    parts = [slice(begin, begin + step) for begin in range(0, len(counts), step)]
    results = in_threads(lambda some: [function(part) for part in some], parts, num_threads())
    return [result for some in results for result in some]
