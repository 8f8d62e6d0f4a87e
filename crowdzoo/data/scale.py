"""The scale of ratings: its ends, and ratings outside of it."""

import numpy as np

from crowdzoo.checks.constraints import END
from crowdzoo.errors import ConfigError


def check_ends(low: float | None, high: float | None) -> None:
    """Checks the ends of a scale, either of which may be None.

    Raises:
        ConfigError: one is no finite number, or low is not below high.
    """
    low, high = END.checked("", "low", low), END.checked("", "high", high)
    if low is not None and high is not None and not low < high:
        raise ConfigError(f"low must be below high, got low={low!r}, high={high!r}")


def outside_scale(ratings: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Which ratings lie outside of a scale.

    Args:
        ratings: float of any shape.
        low: lowest one in the scale, or None.
        high: highest one, or None.

    Returns:
        bool of the ratings' shape; a NaN or an infinity is outside.
    """
    # not < and >: a NaN would pass those
    inside = np.isfinite(ratings)
    if low is not None:
        inside &= ratings >= low
    if high is not None:
        inside &= ratings <= high
    return ~inside


def scale_reason(low: float | None, high: float | None) -> str:
    """What is wrong with a rating outside, and what to do."""
    scale = f"{'...' if low is None else f'{low:g}'} to {'...' if high is None else f'{high:g}'}"
    return f"is outside of the scale {scale}. Fix the rating or remove it, or change low and high."
