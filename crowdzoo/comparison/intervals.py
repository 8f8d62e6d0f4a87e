"""Differences of two models on the same test tasks, with 95 % intervals that come from drawing the tasks again."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

LEVEL = 0.95
MANY = 4096  # tasks, from which on the mean of a draw has a normal distribution


def bootstrap(
    hits: ArrayLike, other_hits: ArrayLike, *, level: float = LEVEL, draws: int = 10_000, seed: int = 0
) -> tuple[float, float, float]:
    """Difference of two methods, and the ends of its interval by drawing the test tasks again.

    Args:
        hits: of one method, whether run s is right on test task i, or another score of it, [S, N].
        other_hits: of the other method, by the same seeds on the same tasks, [S, N].
        level: share of such intervals that contain the expected difference.
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
    """How much lower one model scores than another on the same tasks, and one-sided bounds of that.

    For a test of non-inferiority: the new model is not worse by more than a tolerance if the upper bound is not above
    it. One more task is counted against each bound, on which one model is right and the other wrong. So few tasks that
    all agree do not make a bound of 0 but one near 3/N, as the exact binomial bound is.

    Args:
        new: of each task, whether the new model is right, or another score of which the mean is compared, [N].
        old: the same of the old model.

    Returns:
        Mean of old less new, lower and upper bound; 95 % of such upper (and lower) bounds hold.
    """
    new, old = np.asarray(new, float), np.asarray(old, float)
    _, low, _ = bootstrap([[*old, 0]], [[*new, 1]], level=2 * LEVEL - 1)
    _, _, high = bootstrap([[*old, 1]], [[*new, 0]], level=2 * LEVEL - 1)
    return float((old - new).mean()), low, high


def tasks_needed(new: ArrayLike, old: ArrayLike, tolerance: float) -> int:
    """About how many tasks show, with a power of 95 %, that of two equally good models the new one is not worse.

    Args:
        new: see `loss_bounds`; how often the two differ is taken from here.
        old: the same of the old model.
        tolerance: how much worse the new one may be, above 0.
    """
    variance = np.var(np.asarray(new, float) - np.asarray(old, float))
    tasks = np.geomspace(3 / tolerance, 1e12, 5000)
    # the additional task is 1/N of the bound, and of its variance
    bound = 1 / tasks + special.ndtri(LEVEL) * np.sqrt(variance / tasks + 1 / tasks**2)
    enough = bound + special.ndtri(LEVEL) * np.sqrt(variance / tasks) <= tolerance
    return int(np.ceil(tasks[enough.argmax()]))


@lru_cache(maxsize=2)
def _draw_counts(tasks: int, draws: int, seed: int) -> NDArray[np.float32]:
    """How often each task is in each draw, [draws, tasks]; kept, because the rows of a table have the same draws."""
    chosen = np.random.default_rng(seed).integers(tasks, size=(draws, tasks)) + tasks * np.arange(draws)[:, None]
    return np.bincount(chosen.ravel(), minlength=draws * tasks).reshape(draws, tasks).astype("float32")
