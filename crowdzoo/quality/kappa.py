"""Raw agreement, Fleiss' kappa and Gwet's AC1 of the crowd, and Cohen's kappa of annotators who share tasks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.loops import compiled
from crowdzoo.checks.constraints import Choice, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import require_annotations
from crowdzoo.errors import ConfigError, DataError, unknown
from crowdzoo.quality.figures import Estimate, defined, name_column
from crowdzoo.quality.ratings import Ratings, pairable_ratings, ratings_of

MAX_PAIRS = 100_000_000  # pairs of annotations of one task that `cohen_kappas` will visit
PAIRS_AT_ONCE = 4_000_000
POWERS = {"none": 0, "linear": 1, "quadratic": 2}


def raw_agreement(annotations: Annotations) -> float:
    """Raw agreement: how often two annotations of the same task agree, without correction for chance.

    It is the share of agreeing pairs, averaged over tasks with at least two annotations, as in Fleiss' kappa.

    Args:
        annotations: kind classification.

    Raises:
        DataError: no task has two annotations, or wrong kind.
    """
    ratings = pairable_ratings(annotations, "Agreement")
    agreeing = ratings.task_sums(ratings.same - 1.0)  # ordered pairs
    return float((agreeing / (ratings.sizes * (ratings.sizes - 1))).mean())


def fleiss_kappa(annotations: Annotations) -> float:
    """Fleiss' kappa, for any number of annotations per task.

    (P - P_e) / (1 - P_e), where P is `raw_agreement` and P_e the sum over classes of the squared mean share
    of the class. Shares are computed within tasks and then averaged, so every task has the same weight. If all tasks
    have the same number of annotations, this is Fleiss' own kappa of 1971; otherwise it is Gwet's generalisation,
    except that tasks with one annotation are left out (Gwet uses them in P_e). Fleiss, Levin and Paik (2003) weight
    tasks by their number of annotations instead, and so does `krippendorff_alpha`.

    Args:
        annotations: kind classification.

    Raises:
        DataError: kappa is undefined: no task has two annotations, or all of those have the same class. Or wrong kind.

    Source:
        J. L. Fleiss: Measuring nominal scale agreement among many raters. Psychological Bulletin 76, 1971.
        K. L. Gwet: Handbook of Inter-Rater Reliability, 4th ed., 2014, chapter 2.
    """
    ratings = pairable_ratings(annotations, "Fleiss' kappa")
    observed = (ratings.task_sums(ratings.same - 1.0) / (ratings.sizes * (ratings.sizes - 1))).mean()
    shares = np.bincount(ratings.codes, np.repeat(1 / ratings.sizes, ratings.sizes)) / len(ratings.sizes)
    if np.count_nonzero(shares) < 2:
        raise DataError("Fleiss' kappa is not defined: all annotations of tasks with two or more are the same.")
    by_chance = shares @ shares
    return float((observed - by_chance) / (1 - by_chance))


@checked(confidence=Number(0, 1, above=True, below=True))
def gwet_ac1(annotations: Annotations, *, confidence: float = 0.95) -> Estimate:
    """Gwet's AC1 with its interval: agreement beyond chance that stays high if nearly all labels are of one class.

    (P - P_e) / (1 - P_e), where P is `raw_agreement` and P_e is the sum over classes of s (1 - s) / (K - 1), with s the
    mean share of the class in the labels of a task. Tasks with one annotation only count in P_e. The interval, cut at
    1, is Gwet's for a random sample of tasks and these annotators; it is rough for few tasks, and NaN for one.

    Args:
        annotations: kind classification, K classes; classes without labels count if they were passed as `classes`.
        confidence: confidence of the interval, between 0 and 1.

    Raises:
        DataError: AC1 is undefined: no task has two annotations, or there is only one class. Or wrong kind.

    Source:
        K. L. Gwet: Computing inter-rater reliability and its variance in the presence of high agreement. British
        Journal of Mathematical and Statistical Psychology 61, 2008.
    """
    from scipy.special import stdtrit

    pairable_ratings(annotations, "Gwet's AC1")
    ratings, classes = ratings_of(annotations, "Gwet's AC1"), annotations.num_classes
    if classes < 2:
        raise DataError("Gwet's AC1 is not defined: there is one class. Name all that were offered with classes=[...].")
    sizes, number = ratings.sizes, int((ratings.sizes > 0).sum())
    several, weights = sizes > 1, np.repeat(1 / np.maximum(sizes, 1), sizes)
    shares = np.bincount(ratings.codes, weights, classes) / number
    by_chance = shares @ (1 - shares) / (classes - 1)
    observed = ratings.task_sums(ratings.same - 1.0) / np.maximum(sizes * (sizes - 1), 1)
    value = (observed[several].mean() - by_chance) / (1 - by_chance)
    # what each task adds, linearised
    chance = ratings.task_sums((1 - shares[ratings.codes]) * weights) / (classes - 1)
    parts = (number / several.sum()) * (observed - by_chance * several) / (1 - by_chance)
    parts = (parts - 2 * (1 - value) * (chance - by_chance) / (1 - by_chance))[sizes > 0]
    if number < 2:
        return Estimate(float(value), np.nan, np.nan)
    error = np.sqrt(((parts - value) ** 2).sum() / (number * (number - 1)))
    half = float(stdtrit(number - 1, (1 + confidence) / 2) * error)
    return Estimate(float(value), float(value) - half, min(float(value) + half, 1.0))


@checked(weights=Choice(POWERS))
def cohen_kappa(annotations: Annotations, first: object, second: object, weights: str = "none") -> float:
    """Cohen's kappa of two annotators, over the tasks that both labelled.

    1 - (mean distance of their labels of the same task) / (mean distance of any label of one and any of the other).

    Args:
        annotations: kind classification.
        first: an annotator: code, or name of any type but int (integers are always codes).
        second: another annotator.
        weights: distance of two labels: "none" (equal or not), "linear" or "quadratic" in their class codes.

    Raises:
        DataError: an unknown annotator, no shared task, or kappa is undefined, as both always gave the same class.
        ConfigError: unknown weights, or the same annotator twice.

    Source:
        J. Cohen: A coefficient of agreement for nominal scales, 1960; Weighted kappa, 1968.
    """
    require_annotations(annotations, "Cohen's kappa")
    codes = [_annotator_code(annotations, name) for name in (first, second)]
    if codes[0] == codes[1]:
        raise ConfigError(f"Cohen's kappa takes two annotators, got {first!r} twice.")
    rows = cohen_kappas(annotations.select_rows(np.isin(annotations.annotator_ids, codes)), weights).to_pylist()
    if not rows:
        raise DataError(f"Annotators {first!r} and {second!r} have no task in common.")
    kappa: float | None = rows[0]["kappa"]
    if kappa is None:
        raise DataError(
            f"Cohen's kappa of {first!r} and {second!r} is not defined: each said but one class, the same, for their "
            f"{rows[0]['tasks']:,} tasks."
        )
    return kappa


@checked(weights=Choice(POWERS))
def cohen_kappas(annotations: Annotations, weights: str = "none") -> pa.Table:
    """Cohen's kappa of all pairs of annotators that share a task.

    Only pairs that occur are formed. The time is proportional to the pairs of annotations of a task, sum of
    n_t (n_t - 1) / 2, at most 100 million; memory to 4 million of them at a time (or those of the most active
    annotator) and the table.

    Args:
        annotations: kind classification.
        weights: as in `cohen_kappa`.

    Returns:
        Columns `first`, `second` (names), `tasks` (shared), `agreement` (share of equal labels) and `kappa` (null if
        undefined), in the order of the annotators' codes.

    Raises:
        DataError: too many pairs of annotations, or wrong kind.
        ConfigError: unknown weights.
    """
    ratings = ratings_of(annotations, "Cohen's kappa")
    number = int((ratings.sizes * (ratings.sizes - 1) // 2).sum())
    if number > MAX_PAIRS:
        raise DataError(
            f"{number:,} pairs of annotations of one task are too many for a table of Cohen's kappas: at most "
            f"{MAX_PAIRS:,}. Use some annotations of each task, as with annotations.restrict(redundancy=20)."
        )
    parts = []
    for first, second, left, right in _shared_tasks(ratings, annotations.num_annotators):
        edges = np.flatnonzero(np.diff(second, prepend=-1) | np.diff(first, prepend=-1))
        starts = np.append(edges, len(first))
        equal = np.add.reduceat((left == right).astype(np.int64), edges)
        observed, expected = _distances(starts, left, right, ratings.num_values, POWERS[weights])
        parts.append((first[edges], second[edges], np.diff(starts), equal, observed, expected))
    if not parts:
        parts = [tuple(np.empty(0, kind) for kind in (*[np.int64] * 4, float, float))]  # type: ignore[list-item]  # no pair: empty columns
    firsts, seconds, tasks, equal, observed, expected = (np.concatenate(column) for column in zip(*parts, strict=True))
    varied = expected > 0
    kappa = 1 - np.divide(tasks * observed, expected, out=np.zeros(len(tasks)), where=varied)
    return pa.table(
        {
            "first": name_column(annotations.annotators, firsts),
            "second": name_column(annotations.annotators, seconds),
            "tasks": pa.array(tasks),
            "agreement": pa.array(equal / tasks),
            "kappa": defined(kappa, varied),
        }
    )


def _annotator_code(annotations: Annotations, annotator: Any) -> int:
    if isinstance(annotator, (int, np.integer)) and not isinstance(annotator, bool):
        if not 0 <= annotator < annotations.num_annotators:
            raise DataError(f"annotator code {annotator} is not one of 0 to {annotations.num_annotators - 1}.")
        return int(annotator)
    for code, name in enumerate(annotations.annotators.tolist()):
        if name == annotator:
            return code
    raise DataError(unknown("annotator", annotator, annotations.annotators.tolist()))


def _shared_tasks(ratings: Ratings, num_annotators: int) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yields pairs of annotations of a task, sorted by annotators: (lower annotator, higher, label, label), in pieces.

    All tasks of a pair of annotators are in one piece.
    """
    order = np.lexsort((ratings.annotator_ids, ratings.tasks))
    annotators, codes = ratings.annotator_ids[order], ratings.codes[order]
    later = np.repeat(ratings.starts[1:], ratings.sizes) - np.arange(len(codes)) - 1  # partners of a higher code
    rows = np.argsort(annotators, kind="stable")
    rows = rows[later[rows] > 0]
    ends = np.cumsum(np.bincount(annotators[rows], later[rows], minlength=num_annotators))
    of_annotator = np.searchsorted(annotators[rows], np.arange(num_annotators + 1))
    begin = 0
    while begin < num_annotators:
        done = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")))
        mine = rows[of_annotator[begin] : of_annotator[end]]
        begin = end
        if not len(mine):
            continue
        counts = later[mine]
        left = np.repeat(mine, counts)
        right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs = np.argsort(annotators[left] * num_annotators + annotators[right], kind="stable")
        left, right = left[pairs], right[pairs]
        yield annotators[left], annotators[right], codes[left], codes[right]


@compiled()
def _distances(
    starts: NDArray[np.int64], left: NDArray[np.int32], right: NDArray[np.int32], num_codes: int, power: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # pragma: no cover
    """For each pair of annotators: sum of distances of their labels of the same task, and of all pairs of labels.

    The distance of c and k is [c != k] for power 0, else |c - k| to that power.
    """
    observed = np.zeros(len(starts) - 1)
    expected = np.zeros(len(starts) - 1)
    counts = np.zeros(num_codes)
    for pair in range(len(starts) - 1):
        begin, end = starts[pair], starts[pair + 1]
        for row in range(begin, end):
            counts[right[row]] += 1
        for row in range(begin, end):
            c = left[row]
            if power == 0:
                observed[pair] += c != right[row]
                expected[pair] += (end - begin) - counts[c]
            else:
                observed[pair] += abs(c - right[row]) ** power
                for k in range(num_codes):
                    expected[pair] += counts[k] * abs(c - k) ** power
        for row in range(begin, end):
            counts[right[row]] = 0
    return observed, expected
