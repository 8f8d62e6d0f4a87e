"""prediction_powered_mean: an interval of a mean from few labels of people and many of a model."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.errors import DataError


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


PSEUDO = 0.5  # of a task, for each of the four pairs of yes and no: Agresti and Min's for differences of proportions
MOST_LEVERAGE = 0.9  # of a task, so that its squared error stays finite
TINY = 1e-300


@checked(level=Number(0, 1, above=True, below=True), power=Number(0, 1, optional=True))
def prediction_powered_mean(
    truth: ArrayLike,
    predicted: ArrayLike,
    predicted_only: ArrayLike,
    *,
    level: float = 0.95,
    power: float | None = None,
    few: bool = True,
) -> PoweredMean:
    """Mean of what people would say of all tasks, from a few tasks that people labelled and many that a model labelled.

    The model's mean over the many is corrected by the model's mean error on the few, so the estimate is right on
    average however wrong the model is; a good model makes the interval narrower. For a proportion give 0 and 1; for the
    accuracy of a classifier whether it equals the people's label (`truth`) and the model's (`predicted`,
    `predicted_only`). The tasks that people labelled must be a random sample of all.

    The interval of the papers is by the normal distribution, which needs many labels: from 30 labels it covers a
    proportion in .80 to .90 of all samples. So by default

    - if people's labels are 0 and 1, half a task is added for each pair of 0 or 1 and the model's lowest or highest
      value, to the estimate as well (Agresti and Min, "Simple improved confidence intervals for comparing matched
      proportions", Statistics in Medicine 2005). Where people and model agree on all, the interval still has a length;
    - otherwise each error is divided by one less its task's leverage in the regression on the model's labels (HC3:
      MacKinnon and White, Journal of Econometrics 1985);
    - and the quantile is that of Student's distribution with n - 1 degrees of freedom.

    Source: A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic: Prediction-powered inference. Science
    382, 2023; weight of the model: A. N. Angelopoulos, J. C. Duchi, T. Zrnic: PPI++: Efficient prediction-powered
    inference. 2023, arXiv:2311.01453.

    Args:
        truth: people's labels as numbers, [n].
        predicted: the model's for the same tasks, [n].
        predicted_only: the model's for other tasks, [N].
        level: of the interval, between 0 and 1.
        power: weight of the model's labels; None takes the one with the narrowest interval.
        few: whether the interval is corrected for few labels. False gives the papers' estimate and interval.

    Returns:
        The estimate and its interval; n should be 30 or more, without `few` 300 or more.

    Raises:
        ConfigError: an option out of range.
        DataError: arrays of other shapes, fewer than two tasks in any, or a value that is no number or not finite.
    """
    y, f, more = (_numbers(*given) for given in (
        ("truth", truth), ("predicted", predicted), ("predicted_only", predicted_only)
    ))  # fmt: skip
    if len(y) != len(f):
        raise DataError(f"truth and predicted are of the same tasks, got {len(y):,} and {len(f):,} values.")
    labelled, weights = len(y), np.ones(len(y))
    yes_or_no = few and bool(np.isin(y, (0, 1)).all())
    if yes_or_no:
        ends = min(f.min(), more.min()), max(f.max(), more.max())
        y, f = np.append(y, [0, 0, 1, 1]), np.append(f, ends * 2)
        weights = np.append(weights, [PSEUDO] * 4)
    number = weights.sum()
    y_mean, f_mean = weights @ y / number, weights @ f / number
    around = weights @ (f - f_mean) ** 2
    if power is None:
        apart = (f_mean - more.mean()) ** 2 * number * len(more) / (number + len(more))
        spread = (around + len(more) * more.var() + apart) / (number + len(more) - 1)
        together = weights @ ((y - y_mean) * (f - f_mean)) / number
        power = float(np.clip(together / ((1 + number / len(more)) * spread), 0, 1)) if spread > 0 else 0.0

    def variance(power: float) -> float:
        errors = y - y_mean - power * (f - f_mean)
        if few and not yes_or_no:
            leverage = 1 / number + (power > 0 and around > 0) * (f - f_mean) ** 2 / max(around, TINY)
            errors = errors / (1 - np.minimum(leverage, MOST_LEVERAGE))
        lost = number / (number - 1) if yes_or_no else 1.0
        return float(power**2 * more.var() / len(more) + lost * (weights @ errors**2) / number**2)

    value = float(power * more.mean() + y_mean - power * f_mean)
    error = math.sqrt(variance(power))
    upper = 0.5 + level / 2
    reach = error * (special.stdtrit(number - 1, upper) if few else NormalDist().inv_cdf(upper))
    worth = labelled * variance(0.0) / error**2 if error > 0 else None
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
