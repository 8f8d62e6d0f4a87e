"""Estimate: a value and the ends of its interval."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """A value and its interval.

    Attributes:
        value: what was estimated.
        low: lower end of the interval.
        high: upper end.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"
