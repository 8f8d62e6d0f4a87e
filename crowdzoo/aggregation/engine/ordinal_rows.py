"""ordinal_rows: confusion matrices of annotators who take a class for one near it rather than for one far away."""

import numpy as np
from numpy.typing import NDArray

MOST_STEPS = 50
HALVINGS = 20
STILL = 1e-10  # of the log-likelihood an annotation, at which the fit ends
RIDGE = 1e-9  # added to the diagonal of the curvature


def ordinal_rows(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of the most probable matrices of the form P(l | k) ~ exp(-a (l - k)^2 / 2 + b l' + c l'^2).

    l' is l less the middle of the scale. Each annotator has a precision a, an inclination b to high classes and one, c,
    to both ends of the scale: three numbers for K (K - 1). The log-likelihood is concave; Newton's method with halved
    steps finds its maximum.

    Args:
        counts: how often each annotator said l where the truth is k, positive, `[annotator, said, true]`, [R, K, K].

    Returns:
        `[annotator, said, true]`, [R, K, K].
    """
    num_classes = counts.shape[1]
    said, true = np.arange(num_classes)[:, None], np.arange(num_classes)
    middle = (num_classes - 1) / 2
    place = said - middle + 0.0 * true
    features = np.stack([-((said - true) ** 2) / 2, place, place**2])  # [3, said, true]
    rows = counts.sum(axis=1)
    total = np.maximum(rows.sum(axis=1), 1e-300)
    observed = np.einsum("rlk,flk->rf", counts, features)
    weights = np.zeros((len(counts), len(features)))
    logs = _logs(weights, features)
    values = (counts * logs).sum(axis=(1, 2))
    for _ in range(MOST_STEPS):
        chances = np.exp(logs)
        means = np.einsum("rlk,flk->rfk", chances, features)
        slope = observed - np.einsum("rfk,rk->rf", means, rows)
        squares = np.einsum("rlk,flk,glk->rfgk", chances, features, features)
        curvature = np.einsum("rfgk,rk->rfg", squares - means[:, :, None] * means[:, None], rows)
        curvature += RIDGE * total[:, None, None] * np.eye(len(features))
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        size = np.ones(len(counts))
        for _ in range(HALVINGS):
            tried = weights + size[:, None] * step
            logs_tried = _logs(tried, features)
            values_tried = (counts * logs_tried).sum(axis=(1, 2))
            worse = values_tried < values
            if not worse.any():
                break
            size[worse] /= 2
        better = values_tried > values
        rise = np.where(better, values_tried - values, 0.0)
        weights[better], values[better], logs[better] = tried[better], values_tried[better], logs_tried[better]
        if (rise <= STILL * total).all():
            break
    return logs


def _logs(weights: NDArray[np.float64], features: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = np.einsum("rf,flk->rlk", weights, features)
    peak = scores.max(axis=1, keepdims=True)
    found: NDArray[np.float64] = scores - peak - np.log(np.exp(scores - peak).sum(axis=1, keepdims=True))
    return found
