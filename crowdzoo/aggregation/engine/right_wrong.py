"""E-step and class prior of models in which the probability of an annotation depends only on whether it is right.

Such a model has cells, and each annotation belongs to one: that of its annotator (one-coin Dawid-Skene), or that of
its annotator and label (MACE). Given the truth k, an annotation in cell c has log-probability `right[c]` if it says k
and `wrong[c]` if it says anything else. Hence log P(truth k, annotations) = log prior[k] + sum of wrong[c] over the
task's annotations + sum of (right[c] - wrong[c]) over those that say k. Classes without votes differ only by their
prior, and the cost of a task depends on its annotations, whatever K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import exp, log
from operator import add
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Additive, Block
from crowdzoo.aggregation.engine.confusions import shares_of
from crowdzoo.aggregation.engine.labels import answers_by_block
from crowdzoo.aggregation.engine.loops import compiled, in_threads, num_threads

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

CLASS_PRIORS = ("smoothed", "estimated", "uniform")


@dataclass(frozen=True, eq=False)
class Cells:
    """Probabilities of right and wrong annotations, and the class prior.

    Attributes:
        right: log-probability of an annotation that says the truth, by cell; [R], or [R, K] if it depends on the label.
        wrong: log-probability of the same annotation if the truth is another class, of the same shape. Finite.
        class_prior: probability of each class, [K].
    """

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]
    class_prior: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Answers(Additive):
    """What a block adds to the M-step; `a + b` is the sum of two blocks.

    Attributes:
        right: expected number of right annotations by cell, [R] or [R, K].
        wrong: expected number of wrong annotations, of the same shape.
        classes: expected number of tasks of each class, [K], without tasks that carry no information.
        log_likelihood: log-probability (nats) of annotations and known classes; 0 if posteriors were passed.
        num_annotations: number of annotations counted.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.aggregation.engine.right_wrong import Answers
        >>> block = Answers(np.array([3.0, 1.5]), np.array([0.0, 1.5]), np.array([2.0, 1.0]), -4.0, 6)
        >>> both = Answers.zero((2,), 2) + block + block
        >>> both.right.tolist(), both.num_annotations
        ([6.0, 3.0], 12)
    """

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]
    classes: NDArray[np.float64]
    log_likelihood: float
    num_annotations: int

    @classmethod
    def zero(cls, shape: tuple[int, ...], num_classes: int) -> Answers:
        """Answers of no block, for cells of this shape."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(num_classes), 0.0, 0)


def all_answers(blocks: Sequence[Block], cells: Cells) -> Answers:
    """Runs `answers_of` on all cores."""
    return reduce(add, in_threads(partial(answers_of, cells=cells), blocks, num_threads()))


def found_answers(
    annotations: Annotations, blocks: Sequence[Block], cells: Cells, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Posteriors [N, K] and labels [N] of all tasks; see `answers_by_block`."""

    def write(place: int, out: NDArray[np.float64]) -> None:
        _run([blocks[place]], cells, out)

    return answers_by_block(annotations, blocks, write, seed)


def answers_of(blocks: Sequence[Block], cells: Cells) -> Answers:
    """E-step of some blocks; returns what they add to the M-step."""
    return _run(blocks, cells, None)


def posteriors_of(block: Block, cells: Cells) -> NDArray[np.float64]:
    """Class probabilities of a block's tasks, [T, K]: certain where known, the class prior without annotations."""
    posteriors = np.empty((len(block.tasks), len(cells.class_prior)))
    _run([block], cells, posteriors)
    return posteriors


def given_answers(block: Block, posteriors: NDArray[np.float64], shape: tuple[int, ...]) -> Answers:
    """What a block adds under these posteriors [T, K] of its tasks, for cells of this shape."""
    num_classes = posteriors.shape[1]
    voted = block.said(shape[0], num_classes)
    cell = voted if len(shape) == 2 else block.annotator_ids
    rows = np.repeat(np.arange(len(block.tasks)), np.diff(block.starts))  # like block.index, which would stay in memory
    right = posteriors.take(rows * num_classes + block.labels)
    counts = [np.bincount(cell, weights=weights, minlength=int(np.prod(shape))) for weights in (right, 1 - right)]
    return Answers(
        counts[0].reshape(shape).astype(np.float64),  # without annotations bincount returns integers
        counts[1].reshape(shape).astype(np.float64),
        block.informed @ posteriors,
        0.0,
        len(block),
    )


def _run(blocks: Sequence[Block], cells: Cells, posteriors: NDArray[np.float64] | None) -> Answers:
    num_annotators, num_classes = len(cells.right), len(cells.class_prior)
    gain, wrong = (cells.right - cells.wrong).ravel(), cells.wrong.ravel()
    counts = np.zeros((cells.right.size, 2))
    classes = np.zeros(num_classes)
    log_likelihood = 0.0
    for block in blocks:
        block.check_codes(num_annotators, num_classes)  # the kernel does not check them
        log_likelihood += _kernel(
            *block.columns,
            gain,
            wrong,
            cells.right.ndim == 2,
            cells.class_prior,
            counts,
            classes,
            np.empty((0, 0)) if posteriors is None else posteriors,
        )
    shape = cells.right.shape
    return Answers(
        counts[:, 0].reshape(shape),
        counts[:, 1].reshape(shape),
        classes,
        log_likelihood,
        sum(map(len, blocks)),
    )


def class_prior_of(counts: NDArray[np.float64], class_prior: str, pseudo_count: float) -> NDArray[np.float64]:
    """Computes the most probable class probabilities.

    With "smoothed" the prior is Dirichlet with as many pseudo-counts as there are tasks, spread evenly: the result is
    the mean of the shares and equal frequencies. A class that is frequent among the posteriors attracts doubtful tasks,
    and becomes even more frequent in the next iteration; smoothing keeps that from ending in a single class.

    Args:
        counts: expected number of tasks of each class, [K].
        class_prior: one of `CLASS_PRIORS`.
        pseudo_count: pseudo-count of each class for "estimated".
    """
    if class_prior == "uniform":
        return shares_of(np.ones(len(counts)))
    return shares_of(counts + _pseudo_counts(counts, class_prior, pseudo_count))


def log_class_density(
    counts: NDArray[np.float64], log_prior: NDArray[np.float64], class_prior: str, pseudo_count: float
) -> float:
    """Log density of the prior in `class_prior_of`, up to a constant, nats.

    Args:
        counts: counts of this iteration, [K]; only their sum matters, which is the same in every iteration.
        log_prior: log class probabilities, [K].
        class_prior: as in `class_prior_of`.
        pseudo_count: as in `class_prior_of`.
    """
    pseudo_counts = 0.0 if class_prior == "uniform" else _pseudo_counts(counts, class_prior, pseudo_count)
    return pseudo_counts * float(log_prior.sum()) if pseudo_counts else 0.0


def _pseudo_counts(counts: NDArray[np.float64], class_prior: str, pseudo_count: float) -> float:
    """Pseudo-count of each class: the number of tasks divided by the classes, or a fixed number."""
    return float(counts.sum()) / len(counts) if class_prior == "smoothed" else pseudo_count


@compiled()
def share_out(gains, voted, num_voted, is_voted, class_prior, log_prior, known, shares):  # type: ignore[no-untyped-def]  # for Numba
    """Computes posteriors of the classes that a task's annotators gave, in a compiled loop over tasks.

    Args:
        gains: log evidence for each class, [K]; zero for classes without votes.
        voted: the distinct classes with votes, in its first `num_voted` places.
        num_voted: number of classes with votes.
        is_voted: whether each class has votes, [K].
        class_prior: class probabilities, [K].
        log_prior: logarithm of `class_prior`, [K].
        known: the known class, or -1.
        shares: [K]; receives the posterior of each class with votes, and of the known one.

    Returns:
        Log evidence of all classes together (or of the known one), and the posterior of a class without votes divided
        by its prior.
    """
    num_classes = np.uint64(len(class_prior))
    if known >= 0:
        truth = np.uint64(known)
        shares[truth] = 1.0
        return log_prior[truth] + gains[truth], 0.0
    prior_said, prior_rest, rest = 0.0, 0.0, 0.0
    peak = -np.inf
    for i in range(num_voted):
        label = voted[i]
        prior_said += class_prior[label]
        peak = max(peak, gains[label] + log_prior[label])
    if num_voted < num_classes:
        peak = max(peak, 0.0)
        rest = exp(-peak)
        if prior_said < 0.5:
            prior_rest = 1.0 - prior_said
        else:  # the difference would lose precision
            for k in range(num_classes):
                if not is_voted[k]:
                    prior_rest += class_prior[k]
    total = prior_rest * rest
    for i in range(num_voted):
        label = voted[i]
        shares[label] = exp(gains[label] + log_prior[label] - peak)
        total += shares[label]
    for i in range(num_voted):
        shares[voted[i]] /= total
    return peak + log(total), rest / total


@compiled()
def _kernel(  # type: ignore[no-untyped-def]  # pragma: no cover
    starts, annotator_ids, labels, gold, gain, wrong, by_label, class_prior, counts, classes, posteriors
):
    """Adds a block's tasks to `counts` [cells, 2] (right, wrong) and `classes` [K], and fills `posteriors`.

    Returns:
        Log-probability of their annotations and known classes, nats.
    """
    num_classes = np.uint64(len(class_prior))
    u_zero, u_one = np.uint64(0), np.uint64(1)
    log_prior = np.log(class_prior)
    gains = np.zeros(num_classes)  # of the classes with votes; else zero
    shares = np.zeros(num_classes)  # their posteriors
    is_said = np.zeros(num_classes, np.uint8)
    voted = np.empty(num_classes, np.uint64)
    not_said = np.zeros(num_classes)  # correction of a class's count for tasks with votes for it, divided by its prior
    total_rest = 0.0
    log_likelihood = 0.0
    for task in range(np.uint64(len(starts) - 1)):
        first, last = np.uint64(starts[task]), np.uint64(starts[task + u_one])
        known = gold[task] if len(gold) else -1
        if first == last and known < 0:
            if len(posteriors):
                posteriors[task] = class_prior
            continue
        base = 0.0
        num_said = u_zero
        for row in range(first, last):
            label = np.uint64(labels[row])
            cell = np.uint64(annotator_ids[row])
            if by_label:
                cell = cell * num_classes + label
            if not is_said[label]:
                is_said[label] = 1
                voted[num_said] = label
                num_said += u_one
            gains[label] += gain[cell]
            base += wrong[cell]
        evidence, rest = share_out(gains, voted, num_said, is_said, class_prior, log_prior, known, shares)
        log_likelihood += base + evidence
        total_rest += rest
        for row in range(first, last):
            label = np.uint64(labels[row])
            cell = np.uint64(annotator_ids[row])
            if by_label:
                cell = cell * num_classes + label
            counts[cell, 0] += shares[label]
            counts[cell, 1] += 1.0 - shares[label]
        if len(posteriors):
            for k in range(num_classes):
                posteriors[task, k] = shares[k] if is_said[k] else rest * class_prior[k]
        if known >= 0:
            if len(posteriors):
                posteriors[task, np.uint64(known)] = 1.0
            shares[np.uint64(known)] = 0.0
            classes[np.uint64(known)] += 1.0
        for i in range(num_said):
            label = voted[i]
            classes[label] += shares[label]
            not_said[label] += rest
            gains[label] = 0.0
            shares[label] = 0.0
            is_said[label] = 0
    for k in range(num_classes):
        classes[k] += class_prior[k] * max(total_rest - not_said[k], 0.0)
    return log_likelihood
