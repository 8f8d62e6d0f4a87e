"""Pairs and LabelPairs: how annotators agree, for those pairs only that share tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.params import Params
from crowdzoo.errors import DataError

SIGN_ROUNDS = 100  # from all positive: what these do not turn is not clearly below chance
MAX_PAIRS = 100_000_000  # pairs of annotations of a task: 16 bytes each while they are counted


@dataclass(frozen=True, eq=False)
class Pairs:
    """Annotators who share tasks, each pair from both sides, sorted by the first of the two.

    Never of shape [R, R]: memory follows the pairs that there are (P of them, both sides counted).

    Attributes:
        starts: the partners of annotator r are rows `starts[r]` to `starts[r + 1]`, int64 [R + 1].
        partners: codes of the partners, int64 [P].
        shared: number of tasks that both labelled, float64 [P].
        agreement: share of these on which both said the same, float64 [P].
    """

    starts: NDArray[np.int64]
    partners: NDArray[np.int64]
    shared: NDArray[np.float64]
    agreement: NDArray[np.float64]

    @classmethod
    def of(cls, block: Block, num_annotators: int) -> Pairs:
        """Compares all annotations of each task with each other; two by the same annotator are no pair.

        If classes are known, the truth takes part as one more annotator, of code R.

        Args:
            block: T tasks, A annotations; sum over tasks of m (m - 1) / 2 pairs for m annotations of a task.
            num_annotators: R.

        Raises:
            DataError: more than 100 million pairs.
        """
        number = num_annotators + (block.gold is not None and bool((block.gold >= 0).any()))
        keys, same = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
        for _, left, right, left_label, right_label in pairs_of_annotations(block, num_annotators):
            keys.append(left * number + right)
            same.append(left_label == right_label)
        pair, where, times = np.unique(np.concatenate(keys), return_inverse=True, return_counts=True)
        shared = times.astype(np.float64)
        agreement = np.bincount(where, weights=np.concatenate(same), minlength=len(pair)) / shared
        left, right = np.divmod(pair, max(number, 1))
        owners = np.concatenate([left, right])
        order = np.argsort(owners, kind="stable")
        ends = np.cumsum(np.bincount(owners, minlength=number))
        return cls(
            np.concatenate([[0], ends]).astype(np.int64),
            np.concatenate([right, left])[order],
            np.concatenate([shared, shared])[order],
            np.concatenate([agreement, agreement])[order],
        )

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The first annotator of each pair, int64 [P]."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def pairs_of_annotations(block: Block, num_annotators: int) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """All pairs of annotations of a task by two annotators: the task, the lower and the higher annotator, their labels.

    Known classes take part as annotations by one more annotator, of code R.

    Yields:
        Five columns for all tasks of one redundancy; the task is its row in `block.tasks`.

    Raises:
        DataError: more than 100 million pairs.
    """
    index, annotators, labels = block.index, block.annotator_ids.astype(np.int64), block.labels.astype(np.int64)
    if block.gold is not None:
        known = np.flatnonzero(block.gold >= 0)
        index = np.concatenate([index, known])
        annotators = np.concatenate([annotators, np.full(known.size, num_annotators)])
        labels = np.concatenate([labels, block.gold[known].astype(np.int64)])
        order = np.argsort(index, kind="stable")
        index, annotators, labels = index[order], annotators[order], labels[order]
    redundancy = np.bincount(index, minlength=len(block.tasks))
    starts = np.cumsum(redundancy) - redundancy
    total = int((redundancy * (redundancy - 1) // 2).sum())
    if total > MAX_PAIRS:
        raise DataError(
            f"Annotators are compared in pairs, and these tasks have {total:,} pairs of annotations; the limit is "
            f"{MAX_PAIRS:,}. Use dawid-skene, or fewer annotations a task (`Annotations.restrict`)."
        )
    for size in np.unique(redundancy[redundancy > 1]):
        rows = starts[redundancy == size, None] + np.arange(size)
        one, other = (rows[:, column].ravel() for column in np.triu_indices(size, 1))
        swap = annotators[one] > annotators[other]
        low, high = np.where(swap, other, one), np.where(swap, one, other)
        two = annotators[low] != annotators[high]
        low, high = low[two], high[two]
        yield index[low], annotators[low], annotators[high], labels[low], labels[high]


@dataclass(frozen=True, eq=False)
class LabelPairs:
    """How often two annotators gave a task two labels: the second moments of the answers, where they are not zero.

    Attributes:
        left: code of the lower annotator, int64 [E].
        right: code of the higher annotator, int64 [E].
        left_label: what the lower one said, int64 [E].
        right_label: what the higher one said, int64 [E].
        count: on how many tasks, float64 [E].
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    left_label: NDArray[np.int64]
    right_label: NDArray[np.int64]
    count: NDArray[np.float64]

    @classmethod
    def of(cls, block: Block, num_annotators: int, num_classes: int) -> LabelPairs:
        """Counts the pairs, as `Pairs.of` does; known classes are labels by one more annotator, of code R.

        Args:
            block: T tasks, A annotations.
            num_annotators: R.
            num_classes: K.

        Raises:
            DataError: more than 100 million pairs.
        """
        shape = num_annotators + 1, num_annotators + 1, num_classes, num_classes
        cells = [np.empty(0, np.int64)]
        cells += [np.ravel_multi_index(columns, shape) for _, *columns in pairs_of_annotations(block, num_annotators)]
        cell, count = np.unique(np.concatenate(cells), return_counts=True)
        left, right, left_label, right_label = (column.astype(np.int64) for column in np.unravel_index(cell, shape))
        return cls(left, right, left_label, right_label, count.astype(np.float64))


def skill_margin(block: Block) -> float:
    """How far skills are kept from their ends: 1 / sqrt(annotated tasks), at most a half."""
    return float(min(1 / np.sqrt(max(np.count_nonzero(np.diff(block.starts)), 1)), 0.5))


def one_coin_params(accuracy: NDArray[np.float64], class_prior: NDArray[np.float64]) -> Params:
    """Annotators who are right as often whatever the class, and else say any other class equally often.

    Args:
        accuracy: how often each is right, [R]; of a single class always.
        class_prior: [K].
    """
    num_classes = len(class_prior)
    right = accuracy[:, None, None] if num_classes > 1 else np.ones((len(accuracy), 1, 1))
    identity = np.eye(num_classes)
    return Params.from_probabilities(
        right * identity + (1 - right) / max(num_classes - 1, 1) * (1 - identity), class_prior
    )


def with_signs(
    pairs: Pairs, correlation: NDArray[np.float64], size: NDArray[np.float64], groups: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Skills with signs, [R].

    Signs are those of the leading eigenvector of the correlations, weighted by shared tasks and normalised by degrees,
    found by power iteration from all positive. In each connected group they all change sign if the answers would
    be worse than chance on the whole; where the truth takes part, it has to be positive.

    Args:
        pairs: P of them.
        correlation: correlation of each pair, [P].
        size: absolute skills, [R]; the truth, if it takes part, is one more entry.
        groups: connected group of each annotator, [R].
    """
    number, num_annotators = len(size), len(groups)
    weights = correlation * pairs.shared
    degrees = np.sqrt(np.bincount(pairs.owners, weights=np.abs(weights), minlength=number))
    scale = degrees[pairs.owners] * degrees[pairs.partners]
    normalised = np.divide(weights, scale, out=np.zeros_like(weights), where=scale > 0)
    vector = degrees
    for _ in range(SIGN_ROUNDS):
        vector = (vector + np.bincount(pairs.owners, weights=normalised * vector[pairs.partners], minlength=number)) / 2
    skill = size * np.where(vector < 0, -1.0, 1.0)
    answers = np.bincount(pairs.owners, weights=pairs.shared, minlength=number)[:num_annotators]
    linked = np.unique(groups[pairs.partners[pairs.starts[num_annotators] :]])  # by the truth, if it takes part
    groups = np.where(np.isin(groups, linked), linked.min(initial=num_annotators), groups)
    total = np.bincount(groups, weights=answers * skill[:num_annotators], minlength=int(groups.max(initial=-1)) + 1)
    if linked.size:
        total[linked[0]] = vector[-1]
    return skill[:num_annotators] * np.where(total[groups] < 0, -1.0, 1.0)
