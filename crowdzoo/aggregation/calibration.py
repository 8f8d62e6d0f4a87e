"""calibrate: posteriors and labels of any method, corrected by tasks of known class."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.special import softmax

from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.engine.block import checked_gold
from crowdzoo.aggregation.engine.kernel_logistic import KernelLogistic, kernel_logistic
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.aggregation.engine.params import TINY
from crowdzoo.checks.constraints import SEED, Number, checked
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.aggregation.result import Aggregation
    from crowdzoo.data.annotations import Annotations

LEAST_GOLD = 20
MOST_GOLD = 1000  # that the models are fitted on: matrices have a row and a column for each
FOLDS = 5
ENOUGH_GOLD = 200  # with fewer, the folds are drawn several times
LEAST_WEIGHT = 1e-3  # of a model that is averaged
LEAST_PROBABILITY = 1e-4  # of a class: methods that assume independence give 1e-300
SHARES = (1.0, 3.0)  # standard deviations of the weights of vote shares, and of single annotators' labels
SINGLE = (0.0, 0.5, 1.0)
COLUMNS = 4096  # of the table of gold tasks by annotators' labels, which is made in parts
LEVEL = 0.95


class _Features(NamedTuple):
    """What the models see of each task.

    Attributes:
        offsets: centred logarithms of the posteriors, [N, K].
        shares: vote shares less equal ones, [N, K].
        scale: 1 / sqrt(number of annotations), [N]; 0 where there are none.
    """

    offsets: NDArray[np.float64]
    shares: NDArray[np.float64]
    scale: NDArray[np.float64]


@checked(seed=SEED, level=Number(0.5, 0.999))
def calibrate(
    aggregation: Aggregation, annotations: Annotations, gold: ArrayLike, *, level: float = LEVEL, seed: int = 0
) -> Aggregation:
    """Corrects the posteriors and labels of any method by some tasks of known class; 200 to 500 are a good number.

    A multinomial logistic regression predicts the class of a task from

    - the logarithms of the method's posteriors, with one coefficient (temperature scaling, Guo et al., ICML 2017);
    - the vote shares, with a weight for each pair of classes, so that classes that annotators confuse are corrected;
    - who said what, with a weight for each annotator, label and class.

    The last two have normal priors with mean zero, of six combinations of standard deviations. A model is fitted
    without each of five folds of the gold tasks (where fewer than 200 are known, the folds are drawn several times).
    Models of different deviations are averaged with weights proportional to their cross-validated likelihood
    (pseudo-BMA: Geisser and Eddy, JASA 1979; Yao et al., Bayesian Analysis 2018), and these averages over the folds.

    `accuracy_interval` estimates the accuracy of the new labels on the annotated tasks without gold: the mean
    probability of their labels, plus the mean difference between right answers and probabilities on the gold tasks,
    where each gold task is predicted by the models that did not see it (cross-prediction-powered inference, Zrnic and
    Candès, PNAS 2024).

    Args:
        aggregation: result of any method for these annotations. Fit it without the gold: posteriors that know the gold
            say nothing about errors elsewhere.
        annotations: N tasks, R annotators, K classes; not changed.
        gold: known class codes, int [N], -1 where unknown. They should be a random sample of the tasks.
        level: probability that the interval covers the accuracy.
        seed: seed of the folds, of the draw of 1,000 tasks where more are known, and of random ties.

    Returns:
        The aggregation with new `posteriors`, `labels` and `accuracy_interval`; tasks with gold have their class. A
        task without annotations has the frequencies of the classes among the gold tasks. `notes` is empty: those of
        the method are about its own labels.

    Raises:
        DataError: fewer than 20 annotated tasks have gold, the gold tasks were known when the aggregation was fitted,
            or annotations, aggregation and gold do not fit each other.
    """
    check_classification(annotations, "calibrate")
    codes = checked_gold(gold, annotations.num_tasks, annotations.num_classes)
    if codes is None:
        codes = np.full(annotations.num_tasks, -1)
    _check(aggregation, annotations, codes)
    rng = np.random.default_rng(seed)
    annotated = annotations.redundancy > 0
    known = np.flatnonzero((codes >= 0) & annotated)
    if known.size > MOST_GOLD:
        known = np.sort(rng.choice(known, MOST_GOLD, replace=False))
    others = (codes < 0) & annotated
    posteriors, confidence, difference = _cross_fitted(aggregation.posteriors, annotations, codes, known, others, rng)
    if not confidence.size:  # all annotated tasks have gold: what is said is of tasks like them
        confidence = posteriors[known].max(axis=1)
    interval = _interval(difference, confidence, level)
    shares = np.bincount(codes[known], minlength=annotations.num_classes) + 1
    posteriors[~annotated] = shares / shares.sum()
    posteriors[codes >= 0] = np.eye(annotations.num_classes)[codes[codes >= 0]]
    labels = choose_labels(posteriors, np.arange(len(posteriors)), seed=seed)
    return replace(aggregation, posteriors=posteriors, labels=labels, notes=(), accuracy_interval=interval)


def _cross_fitted(
    raw: NDArray[np.float64],
    annotations: Annotations,
    codes: NDArray[np.int64],
    known: NDArray[np.int64],
    others: NDArray[np.bool_],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The mean over folds of models that did not see the fold.

    Returns:
        Posteriors of all tasks, [N, K]; mean probability of the best class of each of `others`; and, for each gold
        task, right answer less probability by the models and weights that did not see it, [n].
    """
    truth = np.eye(annotations.num_classes)[codes[known]]
    features = _features(raw, annotations)
    single = _single_kernel(annotations, known, features)
    shared = features.shares[known] @ features.shares[known].T
    deviations = list(product(SHARES, SINGLE))
    kernels = [1 + a**2 * shared + b**2 * single for a, b in deviations]
    posteriors = np.zeros_like(raw)
    confidence = np.zeros(int(others.sum()))
    difference = np.zeros(known.size)
    repeats = max(ENOUGH_GOLD // known.size, 1)
    for _ in range(repeats):
        folds = rng.permutation(known.size) % FOLDS  # not by class: equal shares in all folds would look too good
        models = [_models(features.offsets[known], kernel, truth, folds) for kernel in kernels]
        held_out = np.stack([found for _, found in models])
        scores = np.log(np.maximum((held_out * truth).sum(axis=2), TINY))
        for fold in range(FOLDS):
            inside = folds == fold
            weights = softmax(scores[:, ~inside].sum(axis=1)[None], axis=-1)[0]
            own = np.einsum("m,mnk->nk", weights, held_out[:, inside])
            right = own.argmax(axis=1) == codes[known[inside]]
            difference[inside] += (right - own.max(axis=1)) / repeats
            found = np.zeros_like(posteriors)
            for weight, (of_folds, _), (a, b) in zip(weights, models, deviations, strict=True):
                if weight > LEAST_WEIGHT:
                    found += weight * _predicted(of_folds[fold], annotations, known, features, a, b)
            found /= found.sum(axis=1, keepdims=True)
            confidence += found[others].max(axis=1) / (FOLDS * repeats)
            posteriors += found / (FOLDS * repeats)
    return posteriors, confidence, difference


def _check(aggregation: Aggregation, annotations: Annotations, codes: NDArray[np.int64]) -> None:
    for name in ("tasks", "annotators", "classes"):
        if not np.array_equal(getattr(aggregation, name), np.asarray(getattr(annotations, name))):
            raise DataError(
                f"The annotations have other {name} than the aggregation: give those that it was fitted on."
            )
    known = np.flatnonzero((codes >= 0) & (annotations.redundancy > 0))
    if known.size < LEAST_GOLD:
        raise DataError(
            f"{known.size} annotated tasks have gold, and calibration needs {LEAST_GOLD} or more: label more tasks "
            "yourself, chosen at random (200 to 500 are a good number)."
        )
    certain = aggregation.posteriors.max(axis=1) == 1
    others = certain[(codes < 0) & (annotations.redundancy > 0)]
    if (aggregation.posteriors[known, codes[known]] == 1).all() and others.size and others.mean() < 0.5:
        raise DataError(
            "All gold tasks have probability 1 for their class, as if the aggregation had been fitted with this gold: "
            "fit it without gold."
        )


def _features(posteriors: NDArray[np.float64], annotations: Annotations) -> _Features:
    logs = np.log(np.maximum(posteriors, LEAST_PROBABILITY))
    sizes = annotations.redundancy
    cells = annotations.task_ids * annotations.num_classes + annotations.labels
    votes = np.bincount(cells, minlength=posteriors.size).reshape(posteriors.shape)
    shares = np.where(sizes[:, None] > 0, votes / np.maximum(sizes, 1)[:, None] - 1 / annotations.num_classes, 0.0)
    scale = np.where(sizes > 0, 1 / np.sqrt(np.maximum(sizes, 1)), 0.0)
    return _Features(logs - logs.mean(axis=1, keepdims=True), shares, scale)


def _gold_rows(annotations: Annotations, known: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The annotations of the gold tasks: row of the gold task and code of annotator and label, [A'] each."""
    row = np.full(annotations.num_tasks, -1)
    row[known] = np.arange(known.size)
    of_gold = row[annotations.task_ids] >= 0
    said = annotations.annotator_ids[of_gold] * annotations.num_classes + annotations.labels[of_gold]
    return row[annotations.task_ids[of_gold]], said


def _single_kernel(annotations: Annotations, known: NDArray[np.int64], features: _Features) -> NDArray[np.float64]:
    """For two gold tasks, how many annotators gave both the same label, by the root of their numbers of annotations."""
    rows, said = _gold_rows(annotations, known)
    used, column = np.unique(said, return_inverse=True)
    kernel = np.zeros((known.size, known.size))
    for begin in range(0, used.size, COLUMNS):
        inside = (column >= begin) & (column < begin + COLUMNS)
        table = np.zeros((known.size, min(COLUMNS, used.size - begin)))
        np.add.at(table, (rows[inside], column[inside] - begin), features.scale[known][rows[inside]])
        kernel += table @ table.T
    return kernel


def _models(
    offsets: NDArray[np.float64], kernel: NDArray[np.float64], truth: NDArray[np.float64], folds: NDArray[np.int64]
) -> tuple[list[KernelLogistic], NDArray[np.float64]]:
    """For each fold a model of the other folds, and its probabilities of the fold's tasks, [n, K]."""
    models, found = [], np.empty_like(truth)
    for fold in range(FOLDS):
        inside, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        model = kernel_logistic(offsets[rest], kernel[np.ix_(rest, rest)], truth[rest])
        found[inside] = model.probabilities(offsets[inside], kernel[np.ix_(inside, rest)])
        dual = np.zeros_like(truth)
        dual[rest] = model.dual
        models.append(KernelLogistic(model.slope, dual))
    return models, found


def _predicted(
    model: KernelLogistic,
    annotations: Annotations,
    known: NDArray[np.int64],
    features: _Features,
    share_deviation: float,
    single_deviation: float,
) -> NDArray[np.float64]:
    """Class probabilities of all tasks, [N, K], without the kernel between all tasks and the gold tasks."""
    num_classes = annotations.num_classes
    scores = model.slope * features.offsets + model.dual.sum(axis=0)
    scores += share_deviation**2 * features.shares @ (features.shares[known].T @ model.dual)
    if single_deviation:
        rows, said = _gold_rows(annotations, known)
        of_all = annotations.annotator_ids * num_classes + annotations.labels
        for k in range(num_classes):
            added = (features.scale[known, None] * model.dual)[rows, k]
            weights = np.bincount(said, added, annotations.num_annotators * num_classes)
            sums = np.bincount(annotations.task_ids, weights[of_all], annotations.num_tasks)
            scores[:, k] += single_deviation**2 * features.scale * sums
    return softmax(scores, axis=-1)


def _interval(
    difference: NDArray[np.float64], confidence: NDArray[np.float64], level: float
) -> tuple[float, float, float]:
    """Estimate of the accuracy of the other tasks, and an interval by Student's distribution.

    The variance on a gold task is at least that of a right answer, and that which the probabilities themselves imply,
    so that gold tasks that are all right do not give an interval of length zero. (That of the difference alone is
    smaller, but leaves out how much the accuracy varies with the gold tasks that the models were fitted on.)
    """
    number = difference.size
    implied = float((confidence * (1 - confidence)).mean())
    value = min(max(float(confidence.mean() + difference.mean()), 0.0), 1.0)
    variance = max(float(difference.var(ddof=1)), value * (1 - value), implied)
    error = math.sqrt(variance / number + implied / confidence.size)
    half = error * special.stdtrit(number - 1, (1 + level) / 2)
    return value, max(value - half, 0.0), min(value + half, 1.0)
