"""calibrate: corrects posteriors and labels of any method using tasks of known class."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.sparse import csr_array
from scipy.special import softmax

from crowdzoo.aggregation.base import VotesWarning, check_classification, ignored
from crowdzoo.aggregation.classes.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdzoo.aggregation.classes.robust import Robust
from crowdzoo.aggregation.engine.block import checked_gold
from crowdzoo.aggregation.engine.confusions import TINY
from crowdzoo.aggregation.engine.correlated_votes import weighted_votes
from crowdzoo.aggregation.engine.kernel_logistic import KernelLogistic, kernel_logistic
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.checks.constraints import SEED, Number, checked
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.aggregation.result import Aggregation
    from crowdzoo.data.annotations import Annotations

LEAST_GOLD = 20
MOST_GOLD = 1000  # to fit the models on: matrices have a row and a column per gold task
FOLDS = 5
ENOUGH_GOLD = 200  # with fewer, folds are drawn several times
LEAST_WEIGHT = 1e-3  # of a model in the average
LEAST_PROBABILITY = 1e-4  # of a class; methods that assume independence give 1e-300
PSEUDO_VOTES = 0.5  # per class, added before taking logarithms of vote shares
# Slopes of robust, hierarchical-dawid-skene and votes on real crowds, from `benchmarks/gold.py --fit`
PRIOR = ((0.6685, 0.0967, 0.2244), ((0.7413, -0.0771, -0.8025), (-0.0771, 0.0257, 0.0405), (-0.8025, 0.0405, 1.848)))
STRICT, NEAR = 0.05, 0.1  # standard deviations of slopes that should be 0, and of one that should be 1
OWN = (0.75, 0.5)  # mean and standard deviation of the slope of the given method if it is the only one
INTERCEPTS = (0.2, 0.8)  # standard deviations of the classes' intercepts
SHARES = (1.0, 3.0)  # standard deviations of the weights of vote shares, and of single annotators' labels
SINGLE = (0.0, 0.5, 1.0)
USUAL, INDEPENDENT, AT_HAND, RICH = 0.45, 0.15, 0.3, 0.3  # prior weights of the sorts of models
DRAWS = 50  # draws of the weights of the gold tasks
LEVEL = 0.95


class _Features(NamedTuple):
    """Features of each task.

    Attributes:
        offsets: centred log-probabilities by M methods, [N, K, M].
        shares: vote shares minus equal shares, [N, K].
        single: labels of annotators: 1 / sqrt(number of annotations) at `annotator * K + label`, a sparse array [N, R
            K].
    """

    offsets: NDArray[np.float64]
    shares: NDArray[np.float64]
    single: csr_array


class _Prior(NamedTuple):
    """Prior of a model, before it sees gold.

    Attributes:
        weight: prior weight of the model.
        mean: mean of the slopes of the offsets, [M].
        covariance: covariance of the slopes, [M, M].
        intercept: standard deviation of the classes' intercepts.
        share: standard deviation of the weights of vote shares.
        single: standard deviation of the weights of single annotators' labels.
    """

    weight: float
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    intercept: float
    share: float = 0.0
    single: float = 0.0


@checked(seed=SEED, level=Number(0.5, 0.999))
def calibrate(
    aggregation: Aggregation, annotations: Annotations, gold: ArrayLike, *, level: float = LEVEL, seed: int = 0
) -> Aggregation:
    """Corrects the posteriors and labels of any method using tasks of known class; 50 are enough.

    Multinomial logistic regressions predict the class of a task from

    - the log-posteriors of `robust`, `hierarchical-dawid-skene`, the votes, and the given method;
    - the vote shares, with a weight for each pair of classes, which corrects for classes that annotators confuse;
    - the annotators' labels, with a weight for each annotator, label and class.

    The coefficients of the log-posteriors have one of three normal priors: one fitted to real crowds
    (`benchmarks/gold.py`), one in which annotators err independently, or one that only scales the given method (as the
    temperature of Guo et al., ICML 2017). The other weights are left out, or have normal priors with mean zero, in six
    combinations of standard deviations. The log-probabilities of the models are averaged, with weights from the
    likelihood in five-fold cross-validation (pseudo-BMA+: Yao et al., Bayesian Analysis 2018), which is repeated if
    fewer than 200 tasks are known. So a few gold tasks choose among models with few parameters, and many fit more.

    `accuracy_interval` estimates the accuracy of the new labels on the annotated tasks without gold: the mean
    probability of their labels, plus the mean difference between correctness and probability on the gold tasks, each
    predicted by models that did not see it (after cross-prediction-powered inference, Zrnic and Candès, PNAS 2024).

    Args:
        aggregation: result of any method for these annotations. Fit it without the gold: posteriors that know the gold
            say nothing about errors elsewhere.
        annotations: N tasks, R annotators, K classes; not changed.
        gold: known class codes, int [N], -1 where unknown. They should be of a random sample of the tasks.
        level: probability that the interval covers the accuracy.
        seed: seed of the folds, of the choice of 1,000 tasks if more are known, and of random ties.

    Returns:
        The aggregation with new `posteriors`, `labels` and `accuracy_interval`; tasks with gold have their class, and
        tasks without annotations the class frequencies among the gold tasks. `notes` is empty, as the method's notes
        are about its own labels.

    Raises:
        DataError: fewer than 20 annotated tasks have gold, the aggregation was fitted with the gold, or annotations,
            aggregation and gold do not match.

    Example:
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MajorityVote, calibrate
        >>> truth = np.arange(200) % 2
        >>> annotations = Annotations.from_dense(np.stack([truth, truth, 1 - truth], axis=1))  # the third is wrong
        >>> gold = np.where(np.arange(200) < 50, truth, -1)  # the class of 50 tasks is known
        >>> result = calibrate(MajorityVote().fit(annotations), annotations, gold)
        >>> bool((result.labels == truth).all()), len(result.accuracy_interval)
        (True, 3)
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
    without_gold = (codes < 0) & annotated
    candidates = _candidates(aggregation, annotations, seed)
    priors = _priors(len(candidates), [*candidates].index(aggregation.method))
    features = _features(candidates.values(), annotations)
    posteriors, difference = _averaged(features, priors, annotations, codes, known, rng)
    confidence = posteriors[without_gold].max(axis=1)
    if not confidence.size:  # all annotated tasks have gold: the interval is for tasks like them
        confidence = posteriors[known].max(axis=1)
    interval = _interval(difference, confidence, level)
    shares = np.bincount(codes[known], minlength=annotations.num_classes) + 1
    posteriors[~annotated] = shares / shares.sum()
    posteriors[codes >= 0] = np.eye(annotations.num_classes)[codes[codes >= 0]]
    labels = choose_labels(posteriors, np.arange(len(posteriors)), seed=seed)
    return replace(aggregation, posteriors=posteriors, labels=labels, notes=(), accuracy_interval=interval)


def _candidates(aggregation: Aggregation, annotations: Annotations, seed: int) -> dict[str, NDArray[np.float64]]:
    """Probabilities by robust, hierarchical-dawid-skene, votes, and the given method if it is another one, [N, K]."""
    posteriors = {"robust": aggregation.posteriors, "hierarchical-dawid-skene": aggregation.posteriors}
    for name, method in (("robust", Robust(seed=seed)), ("hierarchical-dawid-skene", HierarchicalDawidSkene())):
        if aggregation.method != name:
            with ignored(VotesWarning):
                posteriors[name] = method.fit(annotations).posteriors
    votes = weighted_votes(annotations) + PSEUDO_VOTES
    posteriors["majority-vote"] = votes / votes.sum(axis=1, keepdims=True)
    posteriors.setdefault(aggregation.method, aggregation.posteriors)
    return posteriors


def _priors(number: int, own: int) -> list[_Prior]:
    """The models for this number of methods; `own` is the index of the given method."""
    mean, covariance = np.zeros(number), np.eye(number) * STRICT**2
    mean[:3], covariance[:3, :3] = PRIOR

    def counts(place: int, slope: float, deviation: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Prior of slopes if only one method has a nonzero mean."""
        is_place = np.arange(number) == place
        return np.where(is_place, slope, 0.0), np.diag(np.where(is_place, deviation, STRICT) ** 2)

    deviations = list(product(SHARES, SINGLE))
    return [
        *(_Prior(USUAL / len(INTERCEPTS), mean, covariance, intercept) for intercept in INTERCEPTS),
        _Prior(INDEPENDENT, *counts(1, 1.0, NEAR), INTERCEPTS[0]),
        _Prior(AT_HAND, *counts(own, *OWN), STRICT),
        *(_Prior(RICH / len(deviations), mean, covariance, 0.5, *parameters) for parameters in deviations),
    ]


def _averaged(
    features: _Features,
    priors: list[_Prior],
    annotations: Annotations,
    codes: NDArray[np.int64],
    known: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean of the models' log-probabilities.

    Returns:
        Posteriors of all tasks by models that saw all gold tasks, [N, K]; and, for each gold task, 1 if it is right
        else 0, minus the probability by models and weights that did not see it, [n].
    """
    truth = np.eye(annotations.num_classes)[codes[known]]
    offsets = features.offsets[known]
    # for two gold tasks, how many annotators gave both the same label, scaled by the root of their annotations
    single = (features.single[known] @ features.single[known].T).toarray()
    shared = features.shares[known] @ features.shares[known].T
    kernels = [each.intercept**2 + each.share**2 * shared + each.single**2 * single for each in priors]
    repeats = max(ENOUGH_GOLD // known.size, 1)
    scores, difference = np.zeros((len(priors), known.size)), np.zeros(known.size)
    for _ in range(repeats):
        folds = rng.permutation(known.size) % FOLDS  # not stratified by class, which would look too good
        held_out = np.empty((len(priors), *truth.shape))
        for fold in range(FOLDS):
            inside, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            for each, prior, kernel in zip(held_out, priors, kernels, strict=True):
                model = kernel_logistic(
                    offsets[rest], kernel[np.ix_(rest, rest)], truth[rest], prior.mean, prior.covariance
                )
                each[inside] = model.probabilities(offsets[inside], kernel[np.ix_(inside, rest)])
        held_out = np.log(np.maximum(held_out, TINY))
        own = (held_out * truth).sum(axis=2)
        scores += own / repeats
        for fold in range(FOLDS):
            inside = folds == fold
            weights = _weights(priors, own[:, ~inside], rng)
            probabilities = softmax(np.einsum("m,mnk->nk", weights, held_out[:, inside]), axis=-1)
            right = probabilities.argmax(axis=1) == codes[known[inside]]
            difference[inside] += (right - probabilities.max(axis=1)) / repeats
    logs = np.zeros(features.shares.shape)
    for weight, prior, kernel in zip(_weights(priors, scores, rng), priors, kernels, strict=True):
        if weight > LEAST_WEIGHT:
            model = kernel_logistic(offsets, kernel, truth, prior.mean, prior.covariance)
            logs += weight * np.log(np.maximum(_predicted(model, known, features, prior), TINY))
    return softmax(logs, axis=-1), difference


def _weights(priors: list[_Prior], scores: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Weights of the models, [m], from the log-likelihood of n held-out gold tasks, [m, n] (pseudo-BMA+)."""
    drawn = rng.dirichlet(np.ones(scores.shape[1]), DRAWS) * scores.shape[1]
    return softmax(np.log([prior.weight for prior in priors]) + drawn @ scores.T, axis=-1).mean(axis=0)


def _check(aggregation: Aggregation, annotations: Annotations, codes: NDArray[np.int64]) -> None:
    for name in ("tasks", "annotators", "classes"):
        if not np.array_equal(getattr(aggregation, name), np.asarray(getattr(annotations, name))):
            raise DataError(f"The annotations have other {name} than the aggregation: use those that it was fitted to.")
    known = np.flatnonzero((codes >= 0) & (annotations.redundancy > 0))
    if known.size < LEAST_GOLD:
        raise DataError(
            f"{known.size} annotated tasks have gold, and calibration needs {LEAST_GOLD} or more: label more tasks "
            "yourself, drawn at random (50 are enough; crowdzoo next FILE --gold-sample 50 --out gold.csv)."
        )
    certain = aggregation.posteriors.max(axis=1) == 1
    rest = certain[(codes < 0) & (annotations.redundancy > 0)]
    if (aggregation.posteriors[known, codes[known]] == 1).all() and rest.size and rest.mean() < 0.5:
        raise DataError(
            "All gold tasks have probability 1 for their class, as if the aggregation had been fitted with this gold: "
            "fit it without gold."
        )


def _features(candidates: Iterable[NDArray[np.float64]], annotations: Annotations) -> _Features:
    logs = np.log(np.maximum(np.stack([*candidates], axis=2), LEAST_PROBABILITY))
    sizes = annotations.redundancy
    shares = weighted_votes(annotations) / np.maximum(sizes, 1)[:, None] - 1 / annotations.num_classes
    said = annotations.annotator_ids * annotations.num_classes + annotations.labels
    cells = 1 / np.sqrt(sizes[annotations.task_ids]), (annotations.task_ids, said)
    single = csr_array(cells, (len(sizes), annotations.num_annotators * annotations.num_classes))
    return _Features(logs - logs.mean(axis=1, keepdims=True), np.where(sizes[:, None] > 0, shares, 0.0), single)


def _predicted(
    model: KernelLogistic, known: NDArray[np.int64], features: _Features, prior: _Prior
) -> NDArray[np.float64]:
    """Class probabilities of all tasks, [N, K], without computing the kernel between all tasks and the gold tasks."""
    scores = features.offsets @ model.slopes + prior.intercept**2 * model.dual.sum(axis=0)
    scores += prior.share**2 * features.shares @ (features.shares[known].T @ model.dual)
    if prior.single:
        scores += prior.single**2 * (features.single @ (features.single[known].T @ model.dual))
    return softmax(scores, axis=-1)


def _interval(
    difference: NDArray[np.float64], confidence: NDArray[np.float64], level: float
) -> tuple[float, float, float]:
    """Estimate of the accuracy of the other tasks with Wilson's interval (JASA 1927), using Student's quantile.

    The variance per gold task is at least that of correctness, and that implied by the probabilities. (That of the
    difference alone is smaller, but ignores how much the accuracy varies with the gold tasks that the models were
    fitted on.)
    """
    number = difference.size
    implied = float((confidence * (1 - confidence)).mean())
    value = min(max(float(confidence.mean() + difference.mean()), 0.0), 1.0)
    near = (number * value + 2) / (number + 4)  # not 0 or 1
    right = near * (1 - near)
    error = max(float(difference.var(ddof=1)), right, implied) / number + implied / confidence.size
    spread = error / right * special.stdtrit(number - 1, (1 + level) / 2) ** 2
    middle, half = value + spread / 2, math.sqrt(spread * (value * (1 - value) + spread / 4))
    step = 0.5 / confidence.size  # accuracies of that many tasks are multiples of 1 / size
    ends = np.array([(middle - half) / (1 + spread) - step, (middle + half) / (1 + spread) + step]).clip(0.0, 1.0)
    return value, float(ends[0]), float(ends[1])
