"""Differences of two models on the same test tasks, with 95 % bootstrap intervals over the tasks."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

LEVEL = 0.95
MANY = 4096  # tasks; with more, the mean of a draw is taken as normally distributed


def bootstrap(
    hits: ArrayLike, other_hits: ArrayLike, *, level: float = LEVEL, draws: int = 10_000, seed: int = 0
) -> tuple[float, float, float]:
    """Difference of two methods with a bootstrap interval over the test tasks.

    Args:
        hits: for one method, whether run s is right on test task i, or another score, [S, N].
        other_hits: the same for the other method, with the same seeds and tasks, [S, N].
        level: confidence level of the interval.
        draws: how often the N tasks are drawn with replacement. With more than 4,096 tasks the mean of a draw is
            taken as normally distributed instead.
        seed: seed of the draws.

    Returns:
        Mean difference, lower and upper end (percentiles of the draws). Both methods see the same draws.
    """
    gains = (np.asarray(hits, float) - np.asarray(other_hits, float)).mean(axis=0)
    mean, ends = float(gains.mean()), [(1 - level) / 2, (1 + level) / 2]
    if len(gains) > MANY:
        low, high = mean + special.ndtri(ends) * gains.std() / np.sqrt(len(gains))
    else:
        means = _draw_counts(len(gains), draws, seed) @ gains.astype("float32") / len(gains)
        low, high = np.quantile(means, ends)
    return mean, float(low), float(high)


def loss_bounds(new: ArrayLike, old: ArrayLike) -> tuple[float, float, float]:
    """How much lower a new model scores than an old one on the same tasks, with one-sided bounds.

    For a test of non-inferiority: the new model is not worse by more than a tolerance if the upper bound is not above
    it. Each bound includes one additional task on which the models differ, in the unfavourable direction. If all of a
    few tasks agree, the bound is therefore not 0 but near 3/N, like the exact binomial bound.

    Args:
        new: for each task, whether the new model is right, or another score whose mean is compared, [N].
        old: the same for the old model.

    Returns:
        Mean of old less new, lower and upper bound; 95 % of such upper (and lower) bounds hold.
    """
    new, old = np.asarray(new, float), np.asarray(old, float)
    _, low, _ = bootstrap([[*old, 0]], [[*new, 1]], level=2 * LEVEL - 1)
    _, _, high = bootstrap([[*old, 1]], [[*new, 0]], level=2 * LEVEL - 1)
    return float((old - new).mean()), low, high


def tasks_needed(new: ArrayLike, old: ArrayLike, tolerance: float) -> int:
    """Approximate number of tasks that show, with a power of 95 %, that an equally good new model is not worse.

    Args:
        new: see `loss_bounds`; the variance of the difference is estimated from it.
        old: the same for the old model.
        tolerance: how much worse the new one may be, above 0.
    """
    variance = np.var(np.asarray(new, float) - np.asarray(old, float))
    tasks = np.geomspace(3 / tolerance, 1e12, 5000)
    # the additional task adds 1/N to the bound, and to its variance
    bound = 1 / tasks + special.ndtri(LEVEL) * np.sqrt(variance / tasks + 1 / tasks**2)
    enough = bound + special.ndtri(LEVEL) * np.sqrt(variance / tasks) <= tolerance
    return int(np.ceil(tasks[enough.argmax()]))


@lru_cache(maxsize=2)
def _draw_counts(tasks: int, draws: int, seed: int) -> NDArray[np.float32]:
    """How often each task is in each draw, [draws, tasks]; cached, because the rows of a table share the draws."""
    chosen = np.random.default_rng(seed).integers(tasks, size=(draws, tasks)) + tasks * np.arange(draws)[:, None]
    return np.bincount(chosen.ravel(), minlength=draws * tasks).reshape(draws, tasks).astype("float32")
