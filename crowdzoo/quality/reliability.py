"""judged_by_others, judged_answers: annotators as judged by the others who labelled the same tasks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import sum_rows
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import CLASSIFICATION, require_kind
from crowdzoo.errors import DataError
from crowdzoo.quality.tasks import check_same

NUMBERS_AT_ONCE = 1 << 22  # of annotations by classes
MOST_CELLS = 1 << 25  # of the matrices of all annotators
LEAST = 1e-12  # of a probability, so that its logarithm is finite
EDGE = 1e-4  # nearest to 0 and 1 that an accuracy is looked for
EM_STEPS, NEWTON_STEPS = 8, 12
LEAST_LEFT = 0.15  # of the information on an accuracy
KNOWN = 4.0  # information on an accuracy before any annotation: a standard deviation of one half
MOST_TOGETHER = 30  # annotations of a task; with more, others are as good as known
LEAST_WORTH = 1.0  # annotations that an estimate has to be worth


def judged_by_others(
    annotations: Annotations,
    aggregation: Aggregation,
    judges: NDArray[np.bool_] | None = None,
    families: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimates the accuracy of each annotator, judged only by the other annotators.

    Bayes' rule with the aggregation's confusion matrices and class prior (Dawid & Skene 1979, eq. 2.5), applied to the
    other annotations of a task, gives the probability q that a label is right before it is known. An annotator who is
    right with probability a, and otherwise says each of the other K - 1 classes equally often, gives this label with
    probability a q + (1 - a) (1 - q) / (K - 1); a maximises the likelihood. No label counts in its own favour, except
    that the matrices were fitted with it. The mean of q would be too low, since others are uncertain: by .1 to .2 for a
    crowd with three annotations per task and accuracies from one half to nearly one.

    Args:
        annotations: kind classification; R annotators.
        aggregation: a result for the same annotations, with confusions and class prior.
        judges: whether each annotator's labels are used to judge others, bool [R], such as people's if models err
            together. None: all.
        families: see `copy_families`, int [R]: members of a family do not judge each other, and their labels of a task
            count as one. None: no families.

    Returns:
        The accuracy a, [R], 0 to 1; and the number of annotations with known class that are equally informative, [R],
        with which Wilson's interval is valid. It is the Fisher information minus the loss because the accuracies of the
        others are estimated from the same annotations. NaN if an annotator shares no task, or the others are less
        informative than one such annotation.

    Raises:
        DataError: wrong kind, judges of the wrong shape, an aggregation of other tasks, annotators or classes, or one
            without confusions.
    """
    require_kind(annotations.label_kind, "judged_by_others", CLASSIFICATION)
    annotations.check_no_repeats("judged_by_others")
    check_same(annotations, aggregation)
    if aggregation.confusions is None or aggregation.class_prior is None:
        raise DataError(
            f"judged_by_others needs confusion matrices and a class prior, and {aggregation.method!r} gives none: "
            "use a method that does, such as 'dawid-skene'."
        )
    number, size = annotations.num_annotators, annotations.num_classes
    judging = np.ones(number, bool) if judges is None else np.asarray(judges)
    if judging.shape != (number,) or judging.dtype != bool:
        raise DataError(f"judges: give a boolean for each of the {number:,} annotators, got shape {judging.shape}.")
    people, chances, tasks = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0, np.int64)]
    for of, annotators, labels, beliefs in _others_view(annotations, aggregation, judging, families=families):
        tasks.append(of)
        people.append(annotators)
        chances.append(beliefs[np.arange(len(labels)), labels])
    shared = np.concatenate(tasks), np.arange(number) if families is None else families
    return accuracies(np.concatenate(people), np.concatenate(chances), number, size, shared if judging.all() else None)


def judged_answers(
    annotations: Annotations,
    aggregation: Aggregation | None,
    judges: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
    families: NDArray[np.int64] | None = None,
) -> NDArray[np.float64] | None:
    """Counts labels of each annotator by the class that the others see: `[annotator, true, said]`, [R, K, K].

    The class probabilities are those of `judged_by_others`; without confusion matrices, the others' vote shares. Zero
    for annotators who are not `wanted`, bool [R]. None if the matrices would be too large.
    """
    number, size = annotations.num_annotators, annotations.num_classes
    if number * size * size > MOST_CELLS:
        return None
    answers = np.zeros((number, size, size))
    for _, annotators, labels, beliefs in _others_view(annotations, aggregation, judges, wanted, families):
        said = sum_rows(beliefs, annotators * size + labels, number * size)
        answers += said.reshape(number, size, size).transpose(0, 2, 1)
    return answers


def _others_view(
    annotations: Annotations,
    aggregation: Aggregation | None,
    judging: NDArray[np.bool_],
    wanted: NDArray[np.bool_] | None = None,
    families: NDArray[np.int64] | None = None,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """Tasks that others labelled, annotators and labels, and probabilities [n, K] by only these others."""
    size = annotations.num_classes
    confusions, prior = (None, None) if aggregation is None else (aggregation.confusions, aggregation.class_prior)
    for tasks, annotators, labels in annotations.blocks(max(1, NUMBERS_AT_ONCE // max(size, 1))):
        starts = np.flatnonzero(np.diff(tasks, prepend=-1))
        sizes = np.diff(np.append(starts, len(tasks)))
        counts = judging[annotators]
        same = np.arange(len(annotators))  # annotations of a task by a family count as one
        if families is not None:
            same = np.unique(tasks * len(judging) + families[annotators], return_inverse=True)[1]
        weights = counts / np.maximum(np.bincount(same, counts), 1)[same]
        if confusions is None or prior is None:
            votes, start = np.eye(size)[labels], np.zeros(size)
        else:
            votes = np.log(np.maximum(confusions[annotators, :, labels], LEAST))
            start = np.log(np.maximum(prior, LEAST))
        votes = weights[:, None] * votes
        several = np.repeat(np.add.reduceat(counts.astype(np.int64), starts), sizes) > np.bincount(same, counts)[same]
        several &= True if wanted is None else wanted[annotators]
        by_all = np.repeat(np.add.reduceat(votes, starts) + start, sizes, axis=0)
        if families is not None:
            votes = sum_rows(votes, same, len(votes))[same]
        beliefs = (by_all - votes)[several]
        if confusions is not None and prior is not None:
            beliefs = np.exp(beliefs - beliefs.max(axis=1, keepdims=True))
        yield tasks[several], annotators[several], labels[several], beliefs / beliefs.sum(axis=1, keepdims=True)


def accuracies(
    annotators: NDArray[np.int64],
    right: NDArray[np.float64],
    number: int,
    size: int,
    shared: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Computes the result of `judged_by_others`.

    `right` is q of each annotation, [A], and `shared` has the task of each and the families of the annotators; without
    it the accuracies of the others are taken as known.
    """
    counts = np.bincount(annotators, minlength=number)
    if size < 2:
        return np.where(counts > 0, 1.0, np.nan), np.where(counts > 0, counts, np.nan)
    wrong = (1 - right) / (size - 1)
    slope, accuracy = right - wrong, np.full(number, 0.5)
    for step in range(EM_STEPS + NEWTON_STEPS):
        likelihood = np.maximum(wrong + accuracy[annotators] * slope, LEAST)
        if step < EM_STEPS:
            accuracy = accuracy * np.bincount(annotators, right / likelihood, number) / np.maximum(counts, 1)
        else:  # the likelihood is linear in a, so this is Newton's step for a concave function
            ratio = slope / likelihood
            slopes, curvature = (np.bincount(annotators, power, number) for power in (ratio, ratio**2))
            accuracy = accuracy + slopes / np.maximum(curvature, LEAST)
        accuracy = np.clip(accuracy, EDGE, 1 - EDGE)
    inside = (counts * accuracy + 1) / (counts + 2)  # at 0 and 1 there is no information to be had
    ratio = slope / (wrong + inside[annotators] * slope)
    information = np.bincount(annotators, ratio**2, number)
    worth = np.minimum(information * inside * (1 - inside), counts)
    known = worth >= LEAST_WORTH
    if shared is not None and len(annotators):
        left = 1 - _lost(annotators, ratio, information, *shared) / np.maximum(information, LEAST)
        worth = worth * np.maximum(left, LEAST_LEFT)
    accuracy = np.where(accuracy <= EDGE, 0.0, np.where(accuracy >= 1 - EDGE, 1.0, accuracy))
    return np.where(known, accuracy, np.nan), np.where(known, worth, np.nan)


def _lost(
    annotators: NDArray[np.int64],
    ratio: NDArray[np.float64],
    information: NDArray[Any],
    tasks: NDArray[np.int64],
    families: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Information on each accuracy that is lost because those of the others are also estimated, [R].

    Products of the scores over a task estimate the joint information I (E. K. Berndt and others, Estimation and
    inference in nonlinear structural models, 1974); with each other annotator i known apart from that, I_ji^2 / I_ii is
    lost.
    """
    from scipy.sparse import csr_matrix

    few = np.bincount(tasks)[tasks] <= MOST_TOGETHER
    scores = csr_matrix((ratio[few], (tasks[few], annotators[few])), shape=(tasks.max() + 1, len(information)))
    joint = (scores.T @ scores).tocoo()
    apart = families[joint.row] != families[joint.col]
    rows, columns = joint.row[apart], joint.col[apart]
    lost = joint.data[apart] ** 2 / (information[columns] + KNOWN)
    return np.asarray(np.bincount(rows, lost, len(information)))
