"""Krippendorff's alpha: agreement beyond chance, for any number of annotators and missing annotations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.checks.constraints import SEED, Choice, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import require_annotations
from crowdzoo.errors import ConfigError, DataError, Setting, short_repr
from crowdzoo.quality.ratings import Ratings, pairable_ratings, ratings_of

METRICS = ("nominal", "ordinal", "interval", "ratio")
MAX_VALUES = 4096  # of anything that is a matrix of values by values: 128 MiB
CELLS_AT_ONCE = 1 << 22  # of tasks by values: 32 MiB
MAX_NUMBER = 1e145  # so that sums of squares are finite


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha; `float(alpha)` is its value.

    Attributes:
        value: 1 - observed / expected. 1: all agree; 0: as if labels were drawn from the pool of all labels; below 0:
            systematic disagreement.
        metric: "nominal", "ordinal", "interval" or "ratio".
        observed: mean squared distance of two annotations of the same task, D_o (nominal: share that differ).
        expected: mean squared distance of two annotations of any tasks, D_e.
        num_tasks: number of tasks with at least two annotations.
        num_annotations: number of their annotations.
        low: lower end of the bootstrap interval; None without a bootstrap, or if alpha is undefined in all samples.
        high: upper end of the bootstrap interval, or None.
        confidence: share of samples inside the interval, or None.
        num_samples: number of bootstrap samples used; alpha is undefined in samples with a single value.
    """

    value: float
    metric: str
    observed: float
    expected: float
    num_tasks: int
    num_annotations: int
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    num_samples: int = 0

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        interval = "" if self.low is None else f" ({self.low:.3f} to {self.high:.3f})"
        return f"{self.value:.3f}{interval}"


@checked(
    metric=Choice(METRICS, optional=True),
    bootstrap=Number(0, whole=True),
    confidence=Number(0, 1, above=True, below=True),
    seed=SEED,
)
def krippendorff_alpha(
    annotations: Annotations,
    metric: str | None = None,
    *,
    values: ArrayLike | None = None,
    bootstrap: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
    groups: ArrayLike | None = None,
    on_sample: Callable[[], None] | None = None,
) -> Alpha:
    """Agreement of annotations beyond chance, for any number of annotators.

    Let n_t be the number of annotations of task t, n that of all tasks with n_t >= 2, and d(c, k) a squared distance.
    D_o = 1/n sum_t 1/(n_t - 1) sum of d over ordered pairs of the task's annotations, D_e = 1/(n (n - 1)) sum of d over
    all ordered pairs, alpha = 1 - D_o / D_e. No pairs are enumerated: nominal distances need counts, interval ones sums
    of squares; ordinal distances are those of mid-ranks, so they are sums of squares as well. The cost is proportional
    to the annotations. Only ratio distances need a matrix of values by values.

    The interval is from a bootstrap over tasks (percentiles): tasks are drawn with replacement, each with all of its
    annotations, and alpha is recomputed, expected disagreement included. It shows how much alpha depends on the sample
    of tasks; annotators are fixed. A sample costs about as much as alpha itself.

    Args:
        annotations: kind classification or regression.
        metric: distance of two labels: "nominal" (equal or not), "ordinal" (number of annotations between them),
            "interval" (their difference) or "ratio" (their difference over their sum). Default: nominal for classes,
            interval for numbers.
        values: [K], numbers of the classes. Default: integer class names themselves; for ordinal the order of the
            classes, which must be given if they are words.
        bootstrap: number of samples; 0 for no interval.
        confidence: share of samples inside the interval, between 0 and 1.
        seed: seed of the bootstrap.
        groups: group of each task, int [N], such as the sentence of each token: the bootstrap draws whole groups. None:
            each task is a group.
        on_sample: function called after each sample, for a progress bar.

    Raises:
        ConfigError: a setting is out of range.
        DataError: alpha is undefined: no task has two annotations, or all of those have the same value. Or the kind
            or the values do not match the metric, or there are more than 4096 distinct values (ratio only).

    Source:
        K. Krippendorff: Content Analysis, 4th ed., 2018, chapter 12; Computing Krippendorff's Alpha-Reliability, 2011.
    """
    require_annotations(annotations, "Krippendorff's alpha")
    chosen = metric if metric is not None else "interval" if annotations.classes is None else "nominal"
    ratings = pairable_ratings(annotations, "Krippendorff's alpha", regression=True)
    if chosen != "nominal":
        ratings = _with_values(ratings, annotations, chosen, values)
    elif values is not None:
        raise ConfigError("values have no meaning for the nominal metric: leave them out.")
    measure = _Measure(ratings, chosen)
    observed, expected = measure.disagreements(np.ones(len(ratings.sizes)))
    if not expected > 0:
        raise DataError(
            f"Krippendorff's alpha is not defined: all {len(ratings.codes):,} annotations of tasks with two or more "
            f"are the same, so nothing tells agreement from chance."
        )
    alpha = Alpha(1 - observed / expected, chosen, observed, expected, len(ratings.sizes), len(ratings.codes))
    if not bootstrap:
        return alpha
    owners = _groups(annotations, groups)
    size = len(ratings.sizes) if owners is None else int(owners.max()) + 1
    samples = []
    for weights in draw_tasks(size, int(bootstrap), int(seed), on_sample):
        observed, expected = measure.disagreements(weights if owners is None else weights[owners])
        if expected > 0:
            samples.append(1 - observed / expected)
    ends = (1 - confidence) / 2, (1 + confidence) / 2
    return with_interval(alpha, samples, ends, float(confidence))


def draw_tasks(
    size: int, number: int, seed: int, on_sample: Callable[[], None] | None = None
) -> Iterator[NDArray[np.float64]]:
    """Yields how often each item is in a bootstrap sample, [size], for each of `number` samples.

    Args:
        size: number of items.
        number: number of samples.
        seed: seed of the draws.
        on_sample: function called after each sample is used.
    """
    generator = np.random.default_rng(seed)
    for _ in range(number):
        yield np.bincount(generator.integers(0, size, size), minlength=size).astype(np.float64)
        if on_sample is not None:
            on_sample()


def with_interval(
    alpha: Alpha, samples: list[float], ends: tuple[float, float] = (0.025, 0.975), confidence: float = 0.95
) -> Alpha:
    """Adds the interval of its bootstrap samples to an alpha; unchanged without samples, as for very few tasks."""
    if not samples:
        return alpha
    low, high = np.quantile(samples, ends).tolist()
    return replace(alpha, low=low, high=high, confidence=confidence, num_samples=len(samples))


def coincidence_matrix(annotations: Annotations) -> NDArray[np.float64]:
    """Counts how often classes c and k were given to the same task, [K, K], symmetric.

    Each ordered pair of annotations of a task counts 1/(n_t - 1), so a task counts as often as it was annotated, and
    all cells sum to the number of annotations of tasks with two or more. This shows which classes the crowd confuses,
    without gold labels.

    Args:
        annotations: kind classification.

    Raises:
        DataError: wrong kind, or more than 4096 classes.
    """
    ratings = ratings_of(annotations, "The coincidence matrix")
    if ratings.num_values > MAX_VALUES:
        raise DataError(f"A coincidence matrix of {ratings.num_values:,} classes is too large: at most {MAX_VALUES:,}.")
    ratings = ratings.pairable
    votes, weights = ratings.votes, 1 / (ratings.sizes - 1)
    matrix: NDArray[np.float64] = (votes.T @ votes.multiply(weights[:, None]).tocsr()).toarray()
    diagonal = np.bincount(ratings.codes, np.repeat(weights, ratings.sizes), ratings.num_values)
    return matrix - np.diag(diagonal)  # nobody is paired with himself


class _Measure:
    """Observed and expected disagreement of pairable ratings under weights of the tasks."""

    def __init__(self, ratings: Ratings, metric: str):
        self.ratings = ratings
        self.metric = metric
        self.distances = np.zeros((0, 0))
        self.of_tasks = np.zeros(len(ratings.sizes))  # sum over ordered pairs of distances, over n_t - 1
        if metric == "nominal":
            differing = ratings.sizes - 1 - (ratings.task_sums(ratings.same - 1.0) / ratings.sizes)
            self.of_tasks = ratings.sizes * differing / (ratings.sizes - 1)
        elif metric == "interval":
            self.of_tasks = _squares(ratings, ratings.values)
        elif metric == "ratio":
            self.distances = _ratio_distances(ratings.values)
            self.of_tasks = _pair_distances(ratings, self.distances)

    def disagreements(self, weights: NDArray[np.float64]) -> tuple[float, float]:
        """D_o and D_e if task t occurs `weights[t]` times; both 0 if only one value remains."""
        ratings = self.ratings
        counts = np.bincount(ratings.codes, np.repeat(weights, ratings.sizes), ratings.num_values).astype(np.float64)
        number = counts.sum()
        if np.count_nonzero(counts) < 2:
            return 0.0, 0.0
        if self.metric == "nominal":
            expected = number * number - counts @ counts
        elif self.metric == "ratio":
            expected = counts @ self.distances @ counts
        elif self.metric == "interval":
            expected = _expected_squares(counts, ratings.values)
        of_tasks = self.of_tasks
        if self.metric == "ordinal":  # the distance of two values depends on how many annotations lie between
            middles = np.cumsum(counts) - counts / 2
            expected = _expected_squares(counts, middles)
            of_tasks = _squares(ratings, middles)
        return float(weights @ of_tasks / number), float(expected / (number * (number - 1)))


def _groups(annotations: Annotations, groups: ArrayLike | None) -> NDArray[np.int64] | None:
    """Groups of the tasks with at least two annotations, as codes from 0."""
    if groups is None:
        return None
    codes = np.asarray(groups)
    if codes.shape != (annotations.num_tasks,) or codes.dtype.kind not in "iu":
        raise DataError(
            f"groups holds an integer for each of the {annotations.num_tasks:,} tasks. Received: shape {codes.shape}, "
            f"type {codes.dtype}."
        )
    return np.unique(codes[annotations.redundancy > 1], return_inverse=True)[1].astype(np.int64)


def _with_values(ratings: Ratings, annotations: Annotations, metric: str, numbers: ArrayLike | None) -> Ratings:
    """Ratings with ascending numbers for their codes; classes with equal numbers are merged."""
    if annotations.classes is None:
        if numbers is not None:
            raise ConfigError("values belong to classes; annotations of kind 'regression' are numbers already.")
        values = ratings.values
    else:
        values = _class_values(annotations, metric, numbers)
    ascending, place = np.unique(values, return_inverse=True)
    codes = place.astype(np.int32)[ratings.codes]
    used = np.bincount(codes, minlength=len(ascending)) > 0
    if abs(ascending[used]).max() > MAX_NUMBER:
        raise DataError(f"Numbers beyond {MAX_NUMBER:g} have no squares: divide all of them by some number first.")
    if metric == "ratio":
        if (ascending[used] < 0).any():
            raise DataError(f"Ratio distances need numbers of 0 or more, got {ascending[used][0]:g}.")
        if used.sum() > MAX_VALUES:
            raise DataError(
                f"Ratio distances of {used.sum():,} different numbers are too many: at most {MAX_VALUES:,}. Round the "
                f"numbers, or take {Setting('metric', 'interval')} (of their logarithms, where none is 0)."
            )
    codes = (np.cumsum(used) - 1).astype(np.int32)[codes]
    return Ratings(ratings.starts, ratings.annotator_ids, codes, int(used.sum()), ascending[used])


def _class_values(annotations: Annotations, metric: str, numbers: ArrayLike | None) -> NDArray[np.float64]:
    number = annotations.num_classes
    if numbers is not None:
        values = np.asarray(numbers, np.float64)
        if values.shape != (number,) or not np.isfinite(values).all():
            raise DataError(f"values holds one finite number for each of the {number} classes.")
        return values
    if metric == "ordinal":
        annotations.check_order("metric 'ordinal'")
        return np.arange(number, dtype=np.float64)
    classes: NDArray[Any] = np.asarray(annotations.classes)
    if not np.issubdtype(classes.dtype, np.integer):
        raise DataError(
            f"Distances of metric {metric!r} need numbers, and the classes are names such as {short_repr(classes[0])}: "
            f"take {Setting('metric', 'nominal')} or 'ordinal', or in Python give values=[...], one number a class."
        )
    return classes.astype(np.float64)


def _expected_squares(counts: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Sum over ordered pairs of all annotations of squared differences."""
    number = counts.sum()
    centred = values - (counts @ values) / number
    return 2 * number * (counts @ (centred * centred))


def _squares(ratings: Ratings, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over ordered pairs of squared differences, over n_t - 1, [T]: 2 n_t / (n_t - 1) squares around the mean."""
    of_rows = values[ratings.codes]
    of_rows -= np.repeat(ratings.task_sums(of_rows) / ratings.sizes, ratings.sizes)
    return 2 * ratings.sizes / (ratings.sizes - 1) * ratings.task_sums(of_rows * of_rows)


def _ratio_distances(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """((c - k) / (c + k))^2, [V, V]; 0 if both are 0."""
    total = values[:, None] + values
    difference = values[:, None] - values
    shares: NDArray[np.float64] = np.divide(difference, total, out=np.zeros_like(total), where=total > 0)
    return shares * shares


def _pair_distances(ratings: Ratings, distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over ordered pairs of distances, over n_t - 1, [T]."""
    votes, step = ratings.votes, max(1, CELLS_AT_ONCE // ratings.num_values)
    parts = (votes[start : start + step] for start in range(0, len(ratings.sizes), step))
    sums = [np.asarray(part.multiply(part @ distances).sum(axis=1)).ravel() for part in parts]
    return np.concatenate(sums) / (ratings.sizes - 1)
