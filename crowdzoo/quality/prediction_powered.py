"""prediction_powered_mean: an interval of a mean from few labels of people and many of a model."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.constraints import Number, checked
from crowdzoo.errors import DataError

__all__ = ["PoweredMean", "prediction_powered_mean"]


@dataclass(frozen=True)
class PoweredMean:
    """A mean and its interval.

    Attributes:
        value: estimate.
        low: lower end of the interval.
        high: upper end.
        standard_error: of the estimate.
        power: weight of the model's labels, from 0 (they are not used) to 1.
        worth: number of people's labels that alone would give an interval of this width; None where they do not vary.
    """

    value: float
    low: float
    high: float
    standard_error: float
    power: float
    worth: float | None


@checked(level=Number(0, 1, above=True, below=True), power=Number(0, 1, optional=True))
def prediction_powered_mean(
    truth: ArrayLike,
    predicted: ArrayLike,
    predicted_only: ArrayLike,
    *,
    level: float = 0.95,
    power: float | None = None,
) -> PoweredMean:
    """Mean of what people would say of all tasks, from a few tasks that people labelled and many that a model labelled.

    The model's mean over the many is corrected by the model's mean error on the few, so the estimate is right on
    average however wrong the model is; a good model makes the interval narrower. For a proportion give 0 and 1; for the
    accuracy of a classifier whether it equals the people's label (`truth`) and the model's (`predicted`,
    `predicted_only`). The tasks that people labelled must be a random sample of all.

    Source: A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic: Prediction-powered inference. Science
    382, 2023; weight of the model: A. N. Angelopoulos, J. C. Duchi, T. Zrnic: PPI++: Efficient prediction-powered
    inference. 2023, arXiv:2311.01453.

    Args:
        truth: people's labels as numbers, [n].
        predicted: the model's for the same tasks, [n].
        predicted_only: the model's for other tasks, [N].
        level: of the interval, between 0 and 1.
        power: weight of the model's labels; None takes the one with the narrowest interval.

    Returns:
        The estimate, with an interval by the normal distribution: n should be 30 or more. Of 0 and 1, people and the
        model should differ on 20 tasks or more: with ten, an interval of .95 covers in about .93 of cases.

    Raises:
        ConfigError: an option out of range.
        DataError: arrays of other shapes, fewer than two tasks in any, or a value that is no number or not finite.
    """
    y, f, more = (_numbers(*given) for given in (
        ("truth", truth), ("predicted", predicted), ("predicted_only", predicted_only)
    ))  # fmt: skip
    if len(y) != len(f):
        raise DataError(f"truth and predicted are of the same tasks, got {len(y):,} and {len(f):,} values.")
    spread = np.var(np.concatenate([f, more]), ddof=1)
    if power is None:
        best = np.mean((y - y.mean()) * (f - f.mean())) / ((1 + len(y) / len(more)) * spread) if spread > 0 else 0.0
        power = float(np.clip(best, 0, 1))
    value = float(power * more.mean() + (y - power * f).mean())
    error = float(np.sqrt(power**2 * more.var() / len(more) + (y - power * f).var() / len(y)))
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    worth = float(y.var() / error**2) if error > 0 else None
    return PoweredMean(value, value - reach, value + reach, error, power, worth)


def _numbers(name: str, given: ArrayLike) -> NDArray[np.float64]:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: holds what is no number ({error}). Give 0 and 1 for no and yes.") from None
    if values.ndim != 1 or len(values) < 2:
        raise DataError(f"{name}: give two values or more in one dimension, got the shape {list(values.shape)}.")
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"{name}: value {bad} is {values[bad]}; leave tasks without a label out.")
    return values
