"""accept: selects labels that can be used unchecked, with a bound on their error rate from tasks of known class."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, kolmogorov, xlogy

from crowdzoo.aggregation.base import check_classification
from crowdzoo.aggregation.calibration import LEAST_GOLD
from crowdzoo.aggregation.calibration import _check as check_fitted_without
from crowdzoo.aggregation.engine.block import checked_gold
from crowdzoo.aggregation.engine.correlated_votes import weighted_votes
from crowdzoo.checks.constraints import SEED, Number, checked
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.aggregation.result import Aggregation
    from crowdzoo.data.annotations import Annotations

LOOKS = 25  # numbers of wrong gold tasks for which the bound is computed
STEPS = 10  # of bisection
NOT_RANDOM = 1e-6  # p-value below which gold tasks are not a random sample
OWN_STREAM = 57  # random stream of its own: ties must be independent of gold drawn with the same seed
ERROR = Number(0, 0.5, above=True)


@checked(error=ERROR, confidence=Number(0.5, 0.999), seed=SEED)
def accept(
    aggregation: Aggregation,
    annotations: Annotations,
    gold: ArrayLike,
    *,
    error: float = 0.05,
    confidence: float = 0.95,
    seed: int = 0,
) -> Aggregation:
    """Accepts labels such that, with a given confidence, at most a given share of them is wrong.

    Labels are ordered by their probability plus their lead in the votes (share of the votes for the label minus that
    for the next class). The longest prefix of this order is accepted for which a bound says that at most the given
    share of its tasks without gold is wrong. As gold tasks get their true class, the bound holds for all accepted
    labels.

    The bound (selective classification with a guaranteed risk: Geifman and El-Yaniv, NeurIPS 2017) is exact and holds
    for all prefixes at once: among the first D wrong labels in order, the gold tasks are a draw without replacement,
    whatever the order and the errors. Numbers D(0) < D(1) < ... are chosen such that, with the given confidence, for no
    k at most k of the first D(k) wrong labels belong to gold tasks. So a prefix with k wrong gold tasks has fewer than
    D(k) wrong labels.

    Args:
        aggregation: result of any method for these annotations, fitted without the gold.
        annotations: N tasks, R annotators, K classes; not changed.
        gold: known class codes, int [N], -1 where unknown, of tasks drawn at random; 200 tasks are a good number.
        error: maximum share of wrong labels among accepted labels of tasks without gold.
        confidence: probability, over draws of the gold tasks, that the share is not larger.
        seed: seed of the order of labels with equal scores.

    Returns:
        The aggregation with `accepted` and `error_bound`; tasks with gold are accepted, labelled with their class.

    Raises:
        DataError: too few annotated tasks have gold, they are not like a random sample, or the aggregation was fitted
            with them; or annotations, aggregation and gold do not match.

    Example:
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MajorityVote, accept
        >>> truth = np.arange(1000) % 2
        >>> annotations = Annotations.from_dense(np.stack([truth, truth, truth], axis=1))
        >>> gold = np.where(np.random.default_rng(0).random(1000) < 0.2, truth, -1)
        >>> int(accept(MajorityVote().fit(annotations), annotations, gold).accepted.sum())
        1000
    """
    check_classification(annotations, "accept")
    codes = checked_gold(gold, annotations.num_tasks, annotations.num_classes)
    if codes is None:
        codes = np.full(annotations.num_tasks, -1)
    known, annotated, level = codes >= 0, np.flatnonzero(annotations.redundancy), 1 - confidence
    number, needed = int(known[annotated].sum()), max(_needed_gold(len(annotated), error, level), LEAST_GOLD)
    if number < needed:
        raise DataError(
            f"{number:,} annotated tasks have gold, but showing an error of at most {error:g} takes {needed:,}: "
            "label more tasks yourself, chosen at random, or allow a larger error."
        )
    check_fitted_without(aggregation, annotations, codes)
    ties = np.random.default_rng((seed, OWN_STREAM)).random(len(annotated))
    order = annotated[np.lexsort((ties, -_sureness(aggregation, annotations)[annotated]))]
    _check_random(known[order])
    wrong = np.cumsum((known & (aggregation.labels != codes))[order])
    most = _most_wrong(len(order), number, error, level)
    enough = np.flatnonzero(most[wrong] <= error * np.cumsum(~known[order]))
    accepted = known.copy()
    accepted[order[: enough.max(initial=-1) + 1]] = True
    posteriors = aggregation.posteriors.copy()
    posteriors[known] = np.eye(annotations.num_classes)[codes[known]]
    labels = np.where(known, codes, aggregation.labels)
    return replace(
        aggregation, posteriors=posteriors, labels=labels, accepted=accepted, error_bound=(error, confidence)
    )


def _sureness(aggregation: Aggregation, annotations: Annotations) -> NDArray[np.float64]:
    """Score of each label: its probability plus its lead in the votes, [N]."""
    rows, labels, votes = np.arange(annotations.num_tasks), aggregation.labels, weighted_votes(annotations)
    own = votes[rows, labels]
    votes[rows, labels] = 0
    lead = (own - votes.max(axis=1)) / np.maximum(annotations.redundancy, 1)
    return aggregation.posteriors[rows, labels] + lead


def _check_random(tested: NDArray[np.bool_]) -> None:
    """Raises an error if the ranks of gold tasks are far from those of a random draw (Kolmogorov-Smirnov)."""
    places = (np.flatnonzero(tested) + 0.5) / len(tested)
    distance = np.abs(places - (np.arange(len(places)) + 0.5) / len(places)).max() + 0.5 / len(places)
    if kolmogorov(np.sqrt(len(places)) * distance) < NOT_RANDOM:
        raise DataError(
            "The tasks with gold are not like a random sample of the annotated ones: their labels are "
            f"{'more' if places.mean() < 0.5 else 'less'} certain, so they do not tell how many others are wrong. "
            "Draw the tasks that you label yourself at random."
        )


# === The bound ===
# Of `size` tasks, `gold` are drawn; S(D) is the number of draws among the first D wrong labels.


def _needed_gold(size: int, error: float, level: float) -> int:
    """Fewest gold tasks with which all labels can be accepted if none of their labels is wrong."""
    gold = np.arange(1, max(size, 1) + 1)
    too_many = np.floor(error * (size - gold)) + 1
    return int(gold[np.argmax(_log_choose(size - too_many, gold) - _log_choose(size, gold) <= np.log(level))])


@lru_cache(maxsize=64)
def _most_wrong(size: int, gold: int, error: float, level: float) -> NDArray[np.float64]:
    """Bound on wrong labels of tasks without gold in a prefix, by its number of wrong gold tasks.

    Returns:
        [gold + 1]; valid for all prefixes at once with probability 1 - level; inf if more than can be accepted.
    """
    most = np.full(gold + 1, np.inf)
    if gold == size:
        return most
    last = min(int(error * gold + gold / (size - gold)) + 1, gold - 1)
    looks = np.unique(np.linspace(0, last, LOOKS).round().astype(int)).tolist()
    low, high, used = 0.0, level, list[tuple[int, int]]()
    for _ in range(STEPS):  # largest level per look with which all looks together keep to `level`
        middle = (low + high) / 2
        bounds = [(look, _first_wrong(look, size, gold, middle)) for look in looks]
        bounds = [(look, wrong) for look, wrong in bounds if wrong - 1 - look <= error * (size - gold)]
        if _crossed(bounds, size, gold) <= level:
            low, used = middle, bounds
        else:
            high = middle
    for look, wrong in reversed(used):
        most[: look + 1] = wrong - 1 - np.arange(look + 1)
    return most


def _first_wrong(look: int, size: int, gold: int, level: float) -> int:
    """The smallest D with P(S(D) <= look) <= level."""
    return bisect_left(range(size), True, look + 1, key=lambda wrong: _crossed([(look, wrong)], size, gold) <= level)


def _crossed(bounds: Sequence[tuple[int, int]], size: int, gold: int) -> float:
    """P(S(D) <= k for some pair of k and D).

    S is a binomial process given its end, so that the steps are convolutions.
    """
    counts, share = np.arange(bounds[-1][0] + 1 if bounds else 1), gold / size
    paths, crossed, before = (counts == 0).astype(np.float64), 0.0, 0  # weights of paths that have not crossed, by S
    for look, wrong in bounds:
        paths = np.convolve(paths, np.exp(_log_binomial(counts, wrong - before, share)))[: counts.size]
        rest = _log_binomial(gold - counts, size - wrong, share) - _log_binomial(gold, size, share)
        crossed += float((paths * np.exp(rest))[: look + 1].sum())
        paths[: look + 1] = 0
        before = wrong
    return crossed


def _log_binomial(count: Any, size: int, share: float) -> Any:
    """Log-probability of the binomial distribution."""
    return _log_choose(size, count) + xlogy(count, share) + xlogy(size - count, 1 - share)


def _log_choose(above: Any, below: Any) -> Any:
    """Logarithm of the binomial coefficient; -inf where `below` is outside 0 to `above`."""
    return gammaln(above + 1.0) - gammaln(below + 1.0) - gammaln(above - below + 1.0)
