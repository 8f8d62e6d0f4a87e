"""Tally: counts of any method in one form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tally"]


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of a method in one form, so that they can be added up anywhere; `a + b` is what both add.

    Attributes:
        rows: what belongs to one annotator, [R, ...].
        common: what belongs to none, a vector.
    """

    rows: NDArray[np.float64]
    common: NDArray[np.float64]

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.rows + other.rows, self.common + other.common)

    def __iadd__(self, other: Tally) -> Tally:
        np.add(self.rows, other.rows, out=self.rows)
        np.add(self.common, other.common, out=self.common)
        return self
