"""Cells of tables: means with the intervals of `crowdzoo.comparison.intervals`, and which tasks were right."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.comparison.intervals import Runs, bootstrap, mean_interval

__all__ = [
    "Runs", "bootstrap", "mean_interval", "packed", "shown", "shown_bootstrap", "unpacked",
]  # fmt: skip


def shown(groups: Sequence[Runs], digits: int = 1) -> str:
    """A table's cell: "+1.2 ± 0.4", and without ± where there is one run."""
    mean, half = mean_interval(groups)
    return f"{mean:+.{digits}f}" + ("" if np.isnan(half) else f" ± {half:.{digits}f}")


def shown_bootstrap(hits: ArrayLike, others: ArrayLike) -> str:
    """A table's cell of `bootstrap` in points: "+1.2 [+0.3, +2.1]"."""
    mean, low, high = (100 * each for each in bootstrap(hits, others))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def packed(hits: ArrayLike) -> str:
    """Which test tasks are right, as results files have it: "0110"."""
    return "".join("01"[int(hit)] for hit in np.asarray(hits, bool))


def unpacked(hits: str) -> np.ndarray:
    """What `packed` was made of, as float64 [N]."""
    return np.array([*hits], float)
