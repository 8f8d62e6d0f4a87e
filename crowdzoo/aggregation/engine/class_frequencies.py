"""How often each class is the truth: learnt, learnt and drawn to equal frequencies, or taken as equal."""

import numpy as np
from numpy.typing import NDArray

CLASS_PRIORS = ("smoothed", "estimated", "uniform")
GUARD = 1.5
HALVINGS = 60


def _pseudo_counts(counts: NDArray[np.float64], class_prior: str, pseudo_count: float) -> float:
    """What is added to each class: as many as there are tasks, shared by the classes, or a fixed number."""
    return float(counts.sum()) / len(counts) if class_prior == "smoothed" else pseudo_count


def class_prior_of(counts: NDArray[np.float64], class_prior: str, pseudo_count: float) -> NDArray[np.float64]:
    """The most probable class probabilities.

    With "smoothed" the prior is Dirichlet, with as many pseudo-counts as there are tasks, shared equally: the result
    is half way between the shares and equal frequencies. A class that is frequent among the posteriors draws doubtful
    tasks, and more so in the next iteration; half the way is what keeps that from running to one class.

    Args:
        counts: expected number of tasks of each class, [K].
        class_prior: one of `CLASS_PRIORS`.
        pseudo_count: of each class, with "estimated".
    """
    if class_prior == "uniform":
        return shares_of(np.ones(len(counts)))
    return shares_of(counts + _pseudo_counts(counts, class_prior, pseudo_count))


def guarded_prior(counts: NDArray[np.float64], votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The most probable class probabilities within a factor of 1.5 of the shares of the votes, [K].

    A class that is frequent among the posteriors draws doubtful tasks, and more so in the next iteration. The votes say
    how frequent it can be at most, and a class that is rare among them stays rare.

    Args:
        counts: expected number of tasks of each class, [K].
        votes: annotations that name each class, [K].
    """
    shares = shares_of(votes + 1.0)
    low, high = shares / GUARD, shares * GUARD
    counts = np.maximum(counts, 1e-300)
    least, most = np.log((counts / high).min()), np.log((counts / low).max())
    for _ in range(HALVINGS):  # of the multiplier of the constraint that they sum to one
        middle = (least + most) / 2
        if np.clip(counts / np.exp(middle), low, high).sum() > 1:
            least = middle
        else:
            most = middle
    return shares_of(np.clip(counts / np.exp(most), low, high))


def shares_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Counts as shares of their sum; equal shares where it is zero."""
    total = counts.sum()
    return counts / total if total > 0 else np.full_like(counts, 1 / len(counts))


def log_class_density(
    counts: NDArray[np.float64], log_prior: NDArray[np.float64], class_prior: str, pseudo_count: float
) -> float:
    """Log density of the prior that `class_prior_of` goes with, up to a constant, nats.

    Args:
        counts: counts of this iteration, [K]; only their sum matters, which no iteration changes.
        log_prior: log class probabilities, [K].
        class_prior: as there.
        pseudo_count: as there.
    """
    pseudo_counts = 0.0 if class_prior == "uniform" else _pseudo_counts(counts, class_prior, pseudo_count)
    return pseudo_counts * float(log_prior.sum()) if pseudo_counts else 0.0
