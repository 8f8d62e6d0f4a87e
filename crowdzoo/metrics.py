"""Metrics that the papers report: NumPy in, plain numbers out."""

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.quality.span_scores import span_scores

__all__ = [
    "accuracy",
    "calibration_bins",
    "expected_calibration_error",
    "lost_classes",
    "mean_absolute_error",
    "pair_accuracy",
    "r2_score",
    "root_mean_squared_error",
    "span_scores",
    "spearman",
]


def __dir__() -> list[str]:
    return __all__


def accuracy(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Share of correct predictions among tasks with known truth.

    Args:
        gold: class codes, any shape; -1 where the truth is unknown.
        predicted: class codes, same shape.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: shapes differ, or no truth is known.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.metrics import accuracy
        >>> accuracy(np.array([0, 1, 1, 0, -1]), np.array([0, 1, 0, 0, 2]))  # the truth of the last task is not known
        0.75
    """
    gold, predicted = _pair(gold, predicted)
    known = gold >= 0
    if not known.any():
        raise ValueError("accuracy: the truth of no task is known")
    return float(np.mean(gold[known] == predicted[known]))


def lost_classes(predicted: np.ndarray, votes: np.ndarray, num_classes: int) -> np.ndarray:
    """Classes that a model never predicts, though a fair share of the votes is for them.

    A fair share is one in twenty, or half of an equal share if there are many classes; and at least five votes in as
    many votes as there are predictions.

    Args:
        predicted: class codes, int `[n]`.
        votes: class codes, int, of any shape; negative ones are ignored.
        num_classes: K.

    Returns:
        Class codes, int, sorted.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.metrics import lost_classes
        >>> votes = np.repeat([0, 1, 2], 10)
        >>> predicted = np.tile([0, 1], 10)  # never class 2, for which a third of the votes are
        >>> lost_classes(predicted, votes, num_classes=3).tolist()
        [2]
    """
    votes = votes[votes >= 0]
    share = np.bincount(votes, minlength=num_classes) / max(len(votes), 1)
    fair = share >= max(min(0.05, 0.5 / num_classes), 5 / max(len(predicted), 1))
    classes: np.ndarray = np.flatnonzero(fair & (np.bincount(predicted, minlength=num_classes) == 0))
    return classes


def expected_calibration_error(gold: np.ndarray, probabilities: np.ndarray, bins: int = 15) -> float:
    """Mean difference of confidence and accuracy over bins of equal width.

    The confidence is the largest probability; bin b holds confidences in (b/bins, (b+1)/bins].

    Args:
        gold: class codes `[N]`, -1 where the truth is unknown.
        probabilities: `[N, K]`, rows sum to one.
        bins: number of bins, at least 1.

    Returns:
        A number from 0 to 1: sum over bins of (share of tasks) * |accuracy - mean confidence|.

    Raises:
        ValueError: shapes do not fit, no truth is known, or bins < 1.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.metrics import expected_calibration_error
        >>> gold, probabilities = np.array([0, 1]), np.array([[0.75, 0.25], [0.75, 0.25]])
        >>> expected_calibration_error(gold, probabilities)  # sure to 75 %, right in 50 %
        0.25

    Source:
        C. Guo et al.: On Calibration of Modern Neural Networks. ICML 2017, equation 3.
    """
    gold, probabilities = np.asarray(gold), np.asarray(probabilities, dtype="float64")
    if gold.ndim != 1 or probabilities.ndim != 2 or len(gold) != len(probabilities):
        raise ValueError(
            "expected_calibration_error: gold must have shape [tasks] and probabilities [tasks, classes], got "
            f"{gold.shape} and {probabilities.shape}"
        )
    if bins < 1:
        raise ValueError(f"expected_calibration_error: bins must be at least 1, got {bins}")
    known = gold >= 0
    if not known.any():
        raise ValueError("expected_calibration_error: the truth of no task is known")
    right = probabilities[known].argmax(axis=1) == gold[known]
    counts, confidences, rights = calibration_bins(right, probabilities[known].max(axis=1), bins)
    # (share of tasks) * |mean - mean| is |sum - sum| / N: empty bins need no special case
    return float(np.abs(rights - confidences).sum() / counts.sum())


def calibration_bins(right: np.ndarray, confidence: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Data of a reliability diagram, summed over bins of equal width; bin b holds (b/bins, (b+1)/bins].

    Args:
        right: whether each answer is right, [N].
        confidence: probability of each answer, 0 to 1, [N].
        bins: number of bins B, at least 1; the first one also holds 0.

    Returns:
        Answers per bin, int64 [B]; the sum of their confidences and the number of right ones, float64 [B] each.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.metrics import calibration_bins
        >>> counts, confidences, rights = calibration_bins(np.array([True, False]), np.array([0.75, 0.25]), bins=2)
        >>> counts.tolist(), confidences.tolist(), rights.tolist()
        ([1, 1], [0.25, 0.75], [0.0, 1.0])

    Source:
        C. Guo et al.: On Calibration of Modern Neural Networks. ICML 2017, section 2.
    """
    bin_of = np.clip(np.ceil(np.asarray(confidence) * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    confidences, rights = (np.bincount(bin_of, weights=values, minlength=bins) for values in (confidence, right))
    return counts, confidences, rights


def mean_absolute_error(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Mean of `|gold - predicted|` over known truths (NaN is unknown), in the labels' unit.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.metrics import mean_absolute_error
        >>> mean_absolute_error(np.array([3.0, 1.0, np.nan]), np.array([2.0, 1.0, 5.0]))
        0.5
    """
    return float(np.mean(np.abs(_errors(gold, predicted)[0])))


def root_mean_squared_error(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Root of the mean of `(gold - predicted)^2` over known truths (NaN is unknown), in the labels' unit.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.metrics import root_mean_squared_error
        >>> root_mean_squared_error(np.array([3.0, 1.0, np.nan]), np.array([2.0, 2.0, 5.0]))
        1.0
    """
    return float(np.sqrt(np.mean(np.square(_errors(gold, predicted)[0]))))


def r2_score(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Share of the truth's variance that is explained, over known truths (NaN is unknown).

    Args:
        gold: numbers, any shape.
        predicted: numbers, same shape.

    Returns:
        `1 - sum (gold - predicted)^2 / sum (gold - mean gold)^2`: 1 is perfect, 0 is as good as the mean. If the truth
        does not vary, 1 for a perfect prediction, else 0 (scikit-learn's convention).

    Raises:
        ValueError: shapes differ, or no truth is known.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.metrics import r2_score
        >>> r2_score(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
        0.5
    """
    errors, gold = _errors(gold, predicted)
    total = np.square(gold - gold.mean()).sum()
    unexplained = np.square(errors).sum()
    if total == 0:
        return 1.0 if unexplained == 0 else 0.0
    return float(1 - unexplained / total)


def pair_accuracy(preferences: Annotations, scores: np.ndarray) -> float:
    """Share of preferences for left or right whose preferred task has the higher score; equal scores count as half.

    Args:
        preferences: annotations of kind "preference"; those with "equal" are ignored.
        scores: scores of the tasks, higher is better, [N].

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: annotations of another kind, another number of scores, or no preference for a side.

    Example:
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.metrics import pair_accuracy
        >>> left, right = ["a", "b"], ["b", "c"]
        >>> preferences = Annotations.from_arrays(left, ["ann"] * 2, ["left"] * 2, right=right, kind="preference")
        >>> pair_accuracy(preferences, np.array([3.0, 1.0, 2.0]))  # scores of a, b and c
        0.5
    """
    shares = pairs_in_order(preferences, scores)
    if not len(shares):
        raise ValueError("pair_accuracy: no preference is for left or right")
    return float(shares.mean())


def pairs_in_order(preferences: Annotations, scores: np.ndarray) -> np.ndarray:
    """For each preference for left or right, whether the preferred task has the higher score; 1/2 for equal scores.

    Arguments and errors are those of `pair_accuracy`.
    """
    if preferences.right_ids is None or np.shape(scores) != (preferences.num_tasks,):
        raise ValueError(
            f"pair_accuracy: give preferences and one score per task, got kind {preferences.kind!r} of "
            f"{preferences.num_tasks} tasks and scores of shape {np.shape(scores)}"
        )
    decided = preferences.labels < 2
    lead = (np.asarray(scores)[preferences.task_ids] - np.asarray(scores)[preferences.right_ids])[decided]
    return np.where(lead == 0, 0.5, (lead > 0) == (preferences.labels[decided] == 0))


def spearman(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Spearman's rank correlation over known truths (NaN is unknown); tied values have their mean rank.

    Args:
        gold: numbers, [N].
        predicted: numbers, [N].

    Returns:
        A number from -1 to 1; 0 if one side is constant.

    Raises:
        ValueError: shapes differ, or no truth is known.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.metrics import spearman
        >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0])), 3)
        0.5
    """
    _, known = _errors(gold, predicted)
    estimates = np.asarray(predicted, dtype="float64")[~np.isnan(gold)]
    if np.ptp(known) == 0 or np.ptp(estimates) == 0:
        return 0.0
    return float(np.corrcoef(_mean_ranks(known), _mean_ranks(estimates))[0, 1])


def _mean_ranks(values: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _errors(gold: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Differences and truths where the truth is known, both `[number known]`."""
    gold, predicted = _pair(np.asarray(gold, dtype="float64"), np.asarray(predicted, dtype="float64"))
    known = ~np.isnan(gold)
    if not known.any():
        raise ValueError("the truth of no task is known")
    return gold[known] - predicted[known], gold[known]


def _pair(gold: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gold, predicted = np.asarray(gold), np.asarray(predicted)
    # [N] against [N, 1] would broadcast to [N, N] and give a plausible wrong number
    if gold.shape != predicted.shape:
        raise ValueError(f"truth and prediction must have the same shape, got {gold.shape} and {predicted.shape}")
    return gold, predicted
