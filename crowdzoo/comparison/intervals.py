"""Means with 95 % intervals that hold where runs are not independent: the functions of all tables.

Two things make the runs of a comparison alike, and each makes Student's interval too narrow:

- **Overlapping training sets.** The fifths of cross-validation share three quarters of their training tasks. Nadeau and
  Bengio, Inference for the Generalization Error (Machine Learning, 2003), add the share of test to training tasks to
  1/n; Bouckaert and Frank (PAKDD, 2004) do so for repeated cross-validation.
- **One test set for all seeds.** Seeds then say nothing about other test tasks; `bootstrap` draws the tasks again.
"""

import dataclasses
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

LEVEL = 0.95
MANY = 4096  # tasks, from which on the mean of a draw has a normal distribution


@dataclasses.dataclass(frozen=True)
class Runs:
    """Values of one data set, or of several that share their draws.

    Attributes:
        values: one a run, n.
        overlap: test tasks by training tasks, where the runs' training sets overlap (1/4 for fifths); else 0.
        weight: the number of data sets that the values stand for.
    """

    values: ArrayLike
    overlap: float = 0.0
    weight: float = 1.0


def mean_interval(groups: Sequence[Runs], level: float = LEVEL) -> tuple[float, float]:
    """Mean over the data sets, and half the width of its interval.

    The groups are independent of each other. The variance of a group's mean is s² (1/n + overlap); degrees of freedom
    are Welch and Satterthwaite's.

    Args:
        groups: the runs. A group of one run has no interval of its own, so neither has the mean.
        level: share of such intervals that contain the expected value.

    Returns:
        Mean and half width, in the unit of the values; the half width is NaN where a group has one run.
    """
    values = [np.asarray(group.values, float) for group in groups]
    weights = np.array([group.weight for group in groups])
    weights = weights / weights.sum()
    mean = float(sum(weight * each.mean() for weight, each in zip(weights, values, strict=True)))
    if min(map(len, values)) < 2:
        return mean, float("nan")
    freedom = np.array([len(each) - 1 for each in values])
    variances = np.array([
        weight**2 * each.var(ddof=1) * (1 / len(each) + group.overlap)
        for weight, each, group in zip(weights, values, groups, strict=True)
    ])  # fmt: skip
    if not variances.any():
        return mean, 0.0
    total = variances.sum()
    return mean, float(special.stdtrit(total**2 / (variances**2 / freedom).sum(), (1 + level) / 2) * np.sqrt(total))


def bootstrap(
    hits: ArrayLike, others: ArrayLike, *, level: float = LEVEL, draws: int = 10_000, seed: int = 0
) -> tuple[float, float, float]:
    """Difference of two methods, and the ends of its interval by drawing the test tasks again.

    Args:
        hits: of one method, whether run s is right on test task i, or another score of it, [S, N].
        others: of the other method, by the same seeds on the same tasks, [S, N].
        level: share of such intervals that contain the expected difference.
        draws: how often the N tasks are drawn with replacement. Of more than 4,096 tasks the mean of a draw has a
            normal distribution, which takes the place of drawing.
        seed: seed of the draws.

    Returns:
        Mean difference, lower and upper end (percentiles of the draws). Both methods see the same draws.
    """
    gains = (np.asarray(hits, float) - np.asarray(others, float)).mean(axis=0)
    mean, ends = float(gains.mean()), [(1 - level) / 2, (1 + level) / 2]
    if len(gains) > MANY:
        low, high = mean + special.ndtri(ends) * gains.std() / np.sqrt(len(gains))
    else:
        means = _drawn(len(gains), draws, seed) @ gains.astype("float32") / len(gains)
        low, high = np.quantile(means, ends)
    return mean, float(low), float(high)


@lru_cache(maxsize=2)
def _drawn(tasks: int, draws: int, seed: int) -> NDArray[np.float32]:
    """How often each task is in each draw, [draws, tasks]; kept, because the rows of a table have the same draws."""
    chosen = np.random.default_rng(seed).integers(tasks, size=(draws, tasks)) + tasks * np.arange(draws)[:, None]
    return np.bincount(chosen.ravel(), minlength=draws * tasks).reshape(draws, tasks).astype("float32")
