"""rate: the mean or the pass rate of a system, from a few labels of people and many labels of judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.checks.constraints import FLAG, Number, checked
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import CLASSIFICATION, REGRESSION, require_annotations, require_kind
from crowdzoo.errors import SHOWN, ConfigError, DataError, Setting, short_repr, unknown
from crowdzoo.quality.figures import Estimate
from crowdzoo.quality.model_agreement import codes_of

LEAST = 30  # tasks that people labelled, from which judges count
SEEN = 5  # and of them, those that pass and those that do not
COVERED = 0.9  # share of the tasks that a judge has to have labelled
UNTOLD = 8  # of people's labels, about which judges are taken to tell nothing
PENALTIES = 10 ** np.arange(-2, 3.01, 0.5)  # by the number of people's labels


@dataclass(frozen=True)
class Rate:
    """A mean or a share, with its interval.

    Attributes:
        value: the estimate, in the unit of the labels; for classes that pass, between 0 and 1.
        low: lower end of the interval.
        high: upper end of the interval.
        people: the estimate from only people's labels, with its interval.
        num_labelled: n, number of tasks that people labelled.
        num_tasks: N, number of tasks that anybody labelled.
        num_judges: number of judges used; 0 if people's labels are too few, or if judges do not help.
        worth: number of tasks that people alone would have to label for an equally narrow interval; n without judges.
    """

    value: float
    low: float
    high: float
    people: Estimate
    num_labelled: int
    num_tasks: int
    num_judges: int
    worth: float

    def __str__(self) -> str:
        return str(Estimate(self.value, self.low, self.high))


@checked(these_tasks=FLAG, confidence=Number(0, 1, above=True, below=True))
def rate(
    annotations: Annotations,
    people: Sequence[object] | None = None,
    judges: Sequence[object] | None = None,
    *,
    passes: Sequence[object] | None = None,
    these_tasks: bool = False,
    confidence: float = 0.95,
) -> Rate:
    """Estimates the mean label of people for a system's answers, from a few of their labels and many labels of judges.

    People label n random tasks, judges all N. The labels of all judges are combined into one prediction g by ridge
    regression on people's labels, with the penalty that minimises the squared error r of leave-one-out predictions. The
    estimate is `mean of y - g over n + mean of g over N`, with y people's labels: prediction-powered inference with a
    regression on several judges instead of a power. No judge needs to be right. Judges who agree with people make r
    smaller than the variance v of y; penalties up to infinity are tried, so that useless judges do no harm.

    The variance is `(1/n - 1/N) (r + (v - r) 8/n) + v/N`: as r was chosen, judges are assumed to say nothing about
    eight labels. The interval is that of Clopper and Pearson for the number of independent labels with this variance
    (Korn and Graubard), so that it is exact for only people's labels of two classes. For a mean, the ends of the scale
    are the lowest and highest class, or rating by anybody. Judges are used from n = 30 on, if people let at least five
    tasks pass and five not (a mean must be five labels away from the ends of the scale): a rare class says too little
    about judges.

    Args:
        annotations: kind classification or regression. Several labels of a task by people, or by the same judge, are
            averaged.
        people: names of annotators; None: all who are not judges.
        judges: names of annotators who each labelled at least 90 % of the tasks; the judge's mean replaces missing
            labels. None: all who are not people.
        passes: names of classes; the rate is the share of tasks to which people would give one of them. None: the mean
            of ratings, or of classes that are integers.
        these_tasks: whether the rate is for exactly the N tasks. False: for all tasks of which they are a random
            sample.
        confidence: confidence of the interval, between 0 and 1.

    Raises:
        ConfigError: an unknown name, a judge among the people, or neither `people` nor `judges` is passed.
        DataError: wrong kind, classes that are not numbers without `passes`, no label by people, labels that are all
            equal, or a judge who labelled too few tasks.

    Source:
        A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic: Prediction-powered inference. Science 382,
        2023. A. N. Angelopoulos, J. C. Duchi, T. Zrnic: PPI++. arXiv:2311.01453, 2023. E. L. Korn, B. I. Graubard:
        Confidence intervals for proportions with small expected number of positive counts estimated from survey data.
        Survey Methodology 24, 1998.

    Example:
        >>> import numpy as np
        >>> import crowdzoo
        >>> from crowdzoo.quality import rate
        >>> rng = np.random.default_rng(0)
        >>> good = rng.random(500) < 0.6
        >>> labels = np.stack([np.where(rng.random(500) < 0.9, good, ~good) for _ in range(3)], axis=1).astype(int)
        >>> labels[50:, 0] = -1  # ann labels 50 answers only
        >>> annotations = crowdzoo.Annotations.from_dense(labels, annotators=["ann", "judge-a", "judge-b"])
        >>> found = rate(annotations, ["ann"], passes=[1])
        >>> found.high - found.low < 0.8 * (found.people.high - found.people.low)
        True
    """
    require_annotations(annotations, "A rate")
    require_kind(annotations.label_kind, "A rate", CLASSIFICATION, REGRESSION)
    if not len(annotations):
        raise DataError("A rate is not defined: there are no annotations.")
    of_people, of_judges = _sides(annotations, people, judges)
    targets, numbers, (lowest, highest) = _numbers(annotations, passes)
    used = annotations.redundancy > 0
    means = _means(annotations, of_people, targets, pooled=True)[0, used]
    labelled = ~np.isnan(means)
    labels, size, total = means[labelled], int(labelled.sum()), len(means)
    if not size:
        raise DataError("A rate is not defined: no task was labelled by people.")
    columns = _means(annotations, of_judges, numbers)[:, used]
    for code, number in zip(of_judges, (~np.isnan(columns)).sum(axis=1).tolist(), strict=True):
        if number < COVERED * total:
            raise DataError(
                f"rate: judge {short_repr(annotations.annotators[code])} labelled {number:,} of the {total:,} tasks. A "
                f"judge has to label {COVERED:.0%} or more: leave it out of the judges, or have it label the rest."
            )
    columns = np.nan_to_num(columns - np.nanmean(columns, axis=1, keepdims=True))
    deviations = columns.std(axis=1)
    varied = deviations > 1e-9 * np.abs(numbers).max()
    features = columns[varied] / deviations[varied, None]
    center, spread = labels.mean(), labels.var()
    shift, rest = 0.0, spread
    away = min(center - lowest, highest - center) / (highest - lowest) * size  # from the ends of the scale
    if size >= LEAST and away > SEEN - 1e-9 and len(features):
        shift, rest = _adjusted(labels, features[:, labelled].T)
    rest += (spread - rest) * UNTOLD / max(size, UNTOLD)
    drawn, sampled = 1 / size - 1 / total, 0.0 if these_tasks else spread / total

    def estimate(value: float, variance: float) -> Estimate:
        if these_tasks and size == total:
            return Estimate(value, value, value)
        share = (value - lowest) / (highest - lowest)
        ends = _ends(share, variance / (highest - lowest) ** 2, size, confidence)
        return Estimate(value, *(lowest + (highest - lowest) * end for end in ends))

    value, low, high = estimate(float(np.clip(center + shift, lowest, highest)), rest * drawn + sampled)
    alone = estimate(float(center), spread * drawn + sampled)
    helps = rest < spread
    worth = size * spread / rest if helps and rest > 0 else float(size)
    return Rate(value, low, high, alone, size, total, len(features) if helps else 0, float(worth))


def _sides(
    annotations: Annotations, people: Sequence[object] | None, judges: Sequence[object] | None
) -> tuple[list[int], list[int]]:
    """Annotator codes of people and of judges."""
    if people is None and judges is None:
        raise ConfigError("rate: say with people=[...] or judges=[...] who is a person and who is a judge.")
    named = [None if names is None else codes_of(annotations, names, "rate: ") for names in (people, judges)]
    rest = [code for code in range(annotations.num_annotators) if code not in (named[0] or named[1] or ())]
    first, second = (rest if codes is None else codes for codes in named)
    if both := sorted({*first} & {*second}):
        raise ConfigError(f"rate: {short_repr(annotations.annotators[both[0]])} cannot be both a person and a judge.")
    return first, second


def _numbers(
    annotations: Annotations, passes: Sequence[object] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[float, float]]:
    """Numbers of labels in the rate, and as predictions, [A] each; and the ends of the rate's scale."""
    labels = annotations.labels
    if annotations.label_kind.has_numbers:
        if passes is not None:
            raise ConfigError(f"{Setting('passes')}: ratings have no classes; leave it out, for their mean.")
        numbers, ends = labels.astype(np.float64), (float(labels.min()), float(labels.max()))
    else:
        names = [str(name) for name in np.asarray(annotations.classes).tolist()]
        values = np.asarray(annotations.classes)
        if passes is None and not np.issubdtype(values.dtype, np.integer):
            raise DataError(
                f"rate: the mean needs classes that are whole numbers, and these are {short_repr(names[:SHOWN])}. Name "
                f"those whose share of the tasks you want, such as {Setting('passes', [names[0]])}."
            )
        for name in passes or ():
            if str(name) not in names:
                raise ConfigError(f"{Setting('passes')}: {unknown('class', str(name), names)}")
        counts = values if passes is None else np.isin(names, [str(name) for name in passes])
        predictors = values if np.issubdtype(values.dtype, np.integer) else counts
        targets, numbers = counts.astype(np.float64)[labels], predictors.astype(np.float64)[labels]
        if passes is not None:
            return targets, numbers, (0.0, 1.0)
        ends = float(values.min()), float(values.max())
    if ends[0] == ends[1]:
        raise DataError(f"A rate is not defined: all labels are {ends[0]:g}.")
    return numbers, numbers, ends


def _means(
    annotations: Annotations, codes: Sequence[int], values: NDArray[np.float64], pooled: bool = False
) -> NDArray[np.float64]:
    """Mean label of each annotator (pooled: of all of them) for each task, [J, N]; NaN without labels."""
    place = np.full(annotations.num_annotators, -1)
    place[codes] = 0 if pooled else np.arange(len(codes))
    shape = 1 if pooled else len(codes), annotations.num_tasks
    rows = place[annotations.annotator_ids] >= 0
    cells = place[annotations.annotator_ids[rows]] * shape[1] + annotations.task_ids[rows]
    counts, sums = (np.bincount(cells, weights, shape[0] * shape[1]) for weights in (None, values[rows]))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).reshape(shape)


def _adjusted(labels: NDArray[np.float64], features: NDArray[np.float64]) -> tuple[float, float]:
    """Correction of the mean of people's labels by judges, and the remaining variance.

    Args:
        labels: labels of people, [n].
        features: labels of judges for the same tasks, [n, J], with mean 0 and variance 1 over all N tasks.
    """
    size, center = len(labels), features.mean(axis=0)
    axes, scales, turned = np.linalg.svd(features - center, full_matrices=False)
    kept = scales > 1e-9 * max(float(scales[0]), 1.0)
    axes, scales = axes[:, kept], scales[kept]
    errors, away = labels - labels.mean(), -(turned[kept] @ center) / scales
    along = axes.T @ errors
    best = 0.0, float(errors.var())
    for penalty in PENALTIES * size:
        shrunk = scales**2 / (scales**2 + penalty)
        left_out = (errors - axes @ (shrunk * along)) / (1 - 1 / size - axes**2 @ shrunk)
        variance = float((left_out**2).mean()) * (1 - 1 / size) ** 2
        if variance < best[1]:
            best = float(away @ (shrunk * along)), variance
    return best


def _ends(share: float, variance: float, number: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval for the number of labels that would have this variance.

    Args:
        share: 0 to 1.
        variance: variance of the share.
        number: number of people's labels, the minimum of the number of labels.
        confidence: confidence of the interval.
    """
    from scipy.special import betaincinv

    effective = max(share * (1 - share) / variance, number) if variance > 0 else float(number)
    yes, no = share * effective, (1 - share) * effective
    low = betaincinv(yes, no + 1, (1 - confidence) / 2) if yes > 0 else 0.0
    high = betaincinv(yes + 1, no, (1 + confidence) / 2) if no > 0 else 1.0
    return float(low), float(high)
