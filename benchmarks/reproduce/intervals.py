"""Cells of tables: means with 95 % intervals that hold where runs are not independent, and which tasks were right.

Two things make the runs of a comparison alike, and each makes Student's interval too narrow:

- **Overlapping training sets.** The fifths of cross-validation share three quarters of their training tasks. Nadeau and
  Bengio, Inference for the Generalization Error (Machine Learning, 2003), add the share of test to training tasks to
  1/n; Bouckaert and Frank (PAKDD, 2004) do so for repeated cross-validation.
- **One test set for all seeds.** Seeds then say nothing about other test tasks; `bootstrap` draws the tasks again.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from crowdzoo.comparison.intervals import LEVEL, bootstrap

__all__ = [
    "Runs", "bootstrap", "mean_interval", "packed", "shown", "shown_bootstrap", "unpacked",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Runs:
    """Values of one data set, or of several that share their draws.

    Attributes:
        values: one a run, n.
        overlap: test tasks by training tasks, where the runs' training sets overlap (1/4 for fifths); else 0.
        weight: the number of data sets that the values represent.
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
    mean = float(sum(weight * group_values.mean() for weight, group_values in zip(weights, values, strict=True)))
    if min(map(len, values)) < 2:
        return mean, float("nan")
    freedom = np.array([len(group_values) - 1 for group_values in values])
    variances = np.array([
        weight**2 * group_values.var(ddof=1) * (1 / len(group_values) + group.overlap)
        for weight, group_values, group in zip(weights, values, groups, strict=True)
    ])  # fmt: skip
    if not variances.any():
        return mean, 0.0
    total = variances.sum()
    return mean, float(special.stdtrit(total**2 / (variances**2 / freedom).sum(), (1 + level) / 2) * np.sqrt(total))


def shown(groups: Sequence[Runs], digits: int = 1) -> str:
    """A table's cell: "+1.2 ± 0.4", and without ± where there is one run."""
    mean, half = mean_interval(groups)
    return f"{mean:+.{digits}f}" + ("" if np.isnan(half) else f" ± {half:.{digits}f}")


def shown_bootstrap(hits: ArrayLike, other_hits: ArrayLike) -> str:
    """A table's cell of `bootstrap` in points: "+1.2 [+0.3, +2.1]"."""
    mean, low, high = (100 * end for end in bootstrap(hits, other_hits))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def packed(hits: ArrayLike) -> str:
    """Which test tasks are right, as results files have it: "0110"."""
    return "".join("01"[int(hit)] for hit in np.asarray(hits, bool))


def unpacked(hits: str) -> np.ndarray:
    """What `packed` was made of, as float64 [N]."""
    return np.array([*hits], float)
