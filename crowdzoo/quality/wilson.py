"""wilson: Wilson's interval of a share."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

NORMAL_95 = 1.644854  # quantile of the normal distribution, for intervals of 90 %
NORMAL_975 = 1.959964  # quantile of the normal distribution, for intervals of 95 %


def wilson(
    shares: ArrayLike, numbers: ArrayLike, deviations: float = NORMAL_975
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval of shares, lower and upper ends.

    Args:
        shares: [n], 0 to 1; NaN if undefined.
        numbers: of how many, [n].
        deviations: half width in standard errors; that of 95 % where it is not given.

    Returns:
        Two arrays [n]; NaN where the share is.

    Source:
        E. B. Wilson: Probable Inference, the Law of Succession, and Statistical Inference. JASA 22, 1927.
    """
    share, number = np.asarray(shares, np.float64), np.maximum(np.asarray(numbers, np.float64), 1)
    square = deviations**2
    centre = (share + square / (2 * number)) / (1 + square / number)
    width = deviations / (1 + square / number) * np.sqrt(share * (1 - share) / number + square / (4 * number**2))
    return np.maximum(centre - width, 0.0), np.minimum(centre + width, 1.0)
