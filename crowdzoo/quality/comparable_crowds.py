"""expected_accuracy: accuracy in real crowds that look similar, for crowds without gold."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from crowdzoo.aggregation import ConvergenceWarning, DawidSkene, VotesWarning
from crowdzoo.aggregation.base import ignored
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.quality.figures import NORMAL_95

# See `expected_accuracy`; `python benchmarks/expected_accuracy.py --fit` fits them
SHIFT = (-1.309, 1.504, -0.174)
HALF = 0.330
POWER = 0.1
ENDS = (0.001, 0.999)  # of probabilities whose logits are taken
LEAST_TASKS = 20
LEAST_VARIANCE = 0.03  # of p in the interval: that of .97


def expected_accuracy(
    annotations: Annotations, labels: ArrayLike, probability: ArrayLike
) -> tuple[float, float, float] | None:
    """Estimates the share of correct labels without gold, with the ends of its 90 % interval.

    Answers alone do not tell how many labels are correct, since annotators may agree on mistakes. The estimate comes
    from similar real crowds with known truth. With p, the mean probability of the labels by `Robust`, and s, the share
    of labels that `DawidSkene` gives as well, the value is p + p (1 - p) (a + b s + c logit p). The ends are
    sqrt(v (HALF^2 labels per task^(2 POWER) + 1.645^2 / tasks)) away, v = max(p (1 - p), .03). For held-out families of
    crowds, the interval contained the accuracy in nine of ten (figures: benchmarks/expected_accuracy.py).

    Args:
        annotations: kind classification, N tasks.
        labels: class codes by any method, int [N].
        probability: probability of each label by `Robust`, [N], such as `Settlement.probability`.

    Returns:
        Value, low and high; None for fewer than twenty annotated tasks, two annotators or two classes.

    Raises:
        DataError: `labels` or `probability` does not have one value per task.

    Source:
        Our own. The ends are those of residuals on held-out families, as in the jackknife+ (R. F. Barber, E. J. Candès,
        A. Ramdas, R. J. Tibshirani, Annals of Statistics 49, 2021).

    Example:
        ```python
        result = crowdzoo.aggregation.Robust().fit(annotations)
        state = quality.settlement(annotations, result)
        value, low, high = quality.expected_accuracy(annotations, result.labels, state.probability)
        ```
    """
    labelled = annotations.redundancy > 0
    for name, values in (("labels", labels), ("probability", probability)):
        if np.shape(values) != (annotations.num_tasks,):
            raise DataError(
                f"expected_accuracy: {name} must have one value for each of {annotations.num_tasks:,} tasks, got the "
                f"shape {np.shape(values)}; for posteriors, use posteriors.max(axis=1)."
            )
    if labelled.sum() < LEAST_TASKS or min(annotations.num_annotators, annotations.num_classes) < 2:
        return None
    with ignored(VotesWarning, ConvergenceWarning):
        same = (DawidSkene().fit(annotations).labels == labels)[labelled].mean()
    mean, size = np.asarray(probability)[labelled].mean(), annotations.redundancy[labelled].mean()
    variance = mean * (1 - mean)
    value = mean + variance * (np.array(SHIFT) @ [1, same, logit(np.clip(mean, *ENDS))])
    half = np.sqrt(max(variance, LEAST_VARIANCE) * (HALF**2 * size ** (2 * POWER) + NORMAL_95**2 / labelled.sum()))
    value, low, high = np.clip(value + half * np.array([0, -1, 1]), 0, 1).tolist()
    return value, low, high
