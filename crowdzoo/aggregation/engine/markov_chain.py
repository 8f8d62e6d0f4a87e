"""Chains of classes: exact forward-backward and Viterbi over many sentences, in log space."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.loops import compiled, in_threads, num_threads

TOKENS = 2**13  # that a thread processes at a time; sums are over these parts, whatever the number of threads


@dataclass(frozen=True, eq=False)
class LogChain:
    """Log-weights of a Markov chain over K classes, which need not sum to one. -inf forbids.

    Attributes:
        first: log-weight of the first token's class, [K].
        after: log-weight of a class after another, `[before, after]`, [K, K].
        last: log-weight of the last token's class, [K].
    """

    first: NDArray[np.float64]
    after: NDArray[np.float64]
    last: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ChainCounts:
    """Expected counts from forward-backward.

    Attributes:
        posteriors: class probabilities of each token given its whole sentence, [T, K], rows sum to one.
        first: expected number of sentences that start with each class, [K].
        after: expected number of transitions, `[before, after]`, [K, K].
        log_normaliser: log of the sum over all paths of their weights, nats, for all sentences together.
    """

    posteriors: NDArray[np.float64]
    first: NDArray[np.float64]
    after: NDArray[np.float64]
    log_normaliser: float


def forward_backward(chain: LogChain, emissions: NDArray[np.float64], starts: NDArray[np.int64]) -> ChainCounts:
    """Sums over all paths of classes (Rabiner, Proc. IEEE 77(2), 1989, section III).

    Sums of exponentials are scaled by their largest term, so nothing underflows.

    Args:
        chain: chain of K classes, with at least one allowed path for every sentence.
        emissions: log-weight of each class at each token, finite, [T, K].
        starts: where each sentence begins, and the end of the last, int64 [N + 1]; sentences may be empty.
    """
    num_classes, parts = emissions.shape[1], list(enumerate(_parts(starts)))
    posteriors = np.empty_like(emissions, order="C")
    first, after = np.zeros((len(parts), num_classes)), np.zeros((len(parts), num_classes, num_classes))
    weights = (chain.first, chain.after, chain.last)

    def work(some: Sequence[tuple[int, tuple[int, int]]]) -> list[float]:
        return [
            _sum_paths(*weights, emissions, starts[begin : end + 1], posteriors, first[place], after[place])
            for place, (begin, end) in some
        ]

    totals = in_threads(work, parts, num_threads())
    return ChainCounts(posteriors, first.sum(axis=0), after.sum(axis=0), float(sum(map(sum, totals))))


def viterbi(chain: LogChain, emissions: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Finds the path of greatest weight of each sentence; ties go to lower classes, from the end backwards.

    Args:
        chain: as in `forward_backward`.
        emissions: as in `forward_backward`.
        starts: as in `forward_backward`.

    Returns:
        Class of each token, int64 [T].
    """
    path = np.zeros(len(emissions), np.int64)
    emissions = np.ascontiguousarray(emissions)

    def work(parts: Sequence[tuple[int, int]]) -> None:
        for begin, end in parts:
            _best_paths(chain.first, chain.after, chain.last, emissions, starts[begin : end + 1], path)

    in_threads(work, _parts(starts), num_threads())
    return path


def _parts(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of sentences with about TOKENS tokens each."""
    cuts = np.unique(np.searchsorted(starts, np.arange(0, int(starts[-1]) + TOKENS, TOKENS))).tolist()
    cuts = sorted({0, *(min(cut, len(starts) - 1) for cut in cuts), len(starts) - 1})
    return list(pairwise(cuts))


@compiled()
def _log_sum(values):  # type: ignore[no-untyped-def]  # for Numba
    largest = -np.inf
    for value in values:
        if value > largest:
            largest = value
    if largest == -np.inf:
        return largest
    total = 0.0
    for value in values:
        if value > -np.inf:
            total += np.exp(value - largest)
    return largest + np.log(total)


@compiled()
def _sum_paths(first, after, last, emissions, starts, posteriors, first_counts, after_counts):  # type: ignore[no-untyped-def]  # for Numba
    """Writes posteriors, adds to the counts, and returns the sum of the sentences' log normalisers."""
    num_classes = len(first)
    longest = np.diff(starts).max()
    forward = np.empty((longest, num_classes))
    backward, next_backward = np.empty(num_classes), np.empty(num_classes)
    terms, later = np.empty(num_classes), np.empty(num_classes)
    total = 0.0
    for sentence in range(len(starts) - 1):
        begin, length = starts[sentence], starts[sentence + 1] - starts[sentence]
        if length == 0:
            continue
        for k in range(num_classes):
            forward[0, k] = first[k] + emissions[begin, k]
        for t in range(1, length):
            for k in range(num_classes):
                for j in range(num_classes):
                    terms[j] = forward[t - 1, j] + after[j, k]
                forward[t, k] = _log_sum(terms) + emissions[begin + t, k]
        for k in range(num_classes):
            backward[k] = last[k]
            terms[k] = forward[length - 1, k] + last[k]
        normaliser = _log_sum(terms)
        total += normaliser
        for t in range(length - 1, -1, -1):
            row_sum = 0.0
            for k in range(num_classes):
                posteriors[begin + t, k] = np.exp(forward[t, k] + backward[k] - normaliser)
                row_sum += posteriors[begin + t, k]
            for k in range(num_classes):
                posteriors[begin + t, k] /= row_sum
            if t == 0:
                break
            for k in range(num_classes):
                later[k] = emissions[begin + t, k] + backward[k]
            for j in range(num_classes):
                largest = -np.inf
                for k in range(num_classes):
                    terms[k] = after[j, k] + later[k]
                    largest = max(largest, terms[k])
                next_backward[j] = largest
                if largest == -np.inf:
                    continue
                part = 0.0
                for k in range(num_classes):
                    terms[k] = np.exp(terms[k] - largest) if terms[k] > -np.inf else 0.0
                    part += terms[k]
                next_backward[j] += np.log(part)
                # the probability of the pair is that of the first, times that of the second given the first
                chance = np.exp(forward[t - 1, j] + next_backward[j] - normaliser) / part
                for k in range(num_classes):
                    after_counts[j, k] += chance * terms[k]
            for j in range(num_classes):
                backward[j] = next_backward[j]
        for k in range(num_classes):
            first_counts[k] += posteriors[begin, k]
    return total


@compiled()
def _best_paths(first, after, last, emissions, starts, path):  # type: ignore[no-untyped-def]  # for Numba
    num_classes = len(first)
    longest = np.diff(starts).max()
    came_from = np.zeros((longest, num_classes), np.int64)
    score, next_score = np.empty(num_classes), np.empty(num_classes)
    for sentence in range(len(starts) - 1):
        begin, length = starts[sentence], starts[sentence + 1] - starts[sentence]
        if length == 0:
            continue
        for k in range(num_classes):
            score[k] = first[k] + emissions[begin, k]
        for t in range(1, length):
            for k in range(num_classes):
                best = 0
                for j in range(1, num_classes):
                    if score[j] + after[j, k] > score[best] + after[best, k]:
                        best = j
                came_from[t, k] = best
                next_score[k] = score[best] + after[best, k] + emissions[begin + t, k]
            for k in range(num_classes):
                score[k] = next_score[k]
        best = 0
        for k in range(1, num_classes):
            if score[k] + last[k] > score[best] + last[best]:
                best = k
        for t in range(length - 1, -1, -1):
            path[begin + t] = best
            best = came_from[t, best]
