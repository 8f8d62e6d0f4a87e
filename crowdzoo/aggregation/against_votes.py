"""How far a result is from the votes: what a method that ran to one class, or turned classes round, looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.compiled import compiled

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["VotesWarning", "notes_against_votes"]

CELLS = 2**24  # of the table of votes, which is made for so many tasks at a time
MOST_DIFFERENT = 0.2  # of the tasks, where a result needs no note
LEAST_NAMED = 0.01  # of the annotations, for a class that the result has nowhere


class VotesWarning(UserWarning):
    """A result is far from the votes: see `Aggregation.notes`."""


def notes_against_votes(annotations: Annotations, labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Sentences on what a reader should check before using a result; empty as a rule.

    There is one where the labels of more than a fifth of the annotated tasks are not among the classes with the most
    votes, and one where a class that has two annotations or more, and at least a hundredth of all, is the label of no
    task. Both may be right: annotators who err alike are outvoted by better ones. More often the method collapsed.

    Args:
        annotations: N tasks, K classes.
        labels: class codes, int64 [N].
    """
    notes = []
    tasks = np.count_nonzero(annotations.redundancy)
    different = _different(annotations, labels)
    if different > MOST_DIFFERENT * tasks:
        notes.append(
            f"The labels differ from the plurality of the votes on {different / tasks:.0%} of the annotated tasks "
            f"({different:,} of {tasks:,}): compare with majority-vote, or with tasks whose class is known."
        )
    named = np.bincount(annotations.labels, minlength=annotations.num_classes)
    given = np.bincount(labels, minlength=annotations.num_classes)
    empty = np.flatnonzero((given == 0) & (named > 1) & (named >= LEAST_NAMED * len(annotations)))
    if empty.size:
        code = empty[named[empty].argmax()]
        others = f", as {empty.size - 1} more such classes" if empty.size > 1 else ""
        notes.append(
            f"Class {np.asarray(annotations.classes).tolist()[code]!r} is the label of no task, although "
            f"{named[code] / len(annotations):.1%} of the annotations name it{others}."
        )
    return tuple(notes)


def _different(annotations: Annotations, labels: NDArray[np.int64]) -> int:
    """How many tasks have a label that other classes have more votes than."""
    step = max(1, CELLS // max(annotations.num_classes, 1))
    different = 0
    for begin in range(0, annotations.num_tasks, step):
        part = labels[begin : begin + step]
        votes = np.zeros((len(part), annotations.num_classes), np.int32)
        _count_votes(annotations.task_ids, annotations.labels, begin, votes)
        different += int(np.count_nonzero(votes[np.arange(len(part)), part] < votes.max(axis=1)))
    return different


@compiled()
def _count_votes(tasks, labels, begin, votes):  # type: ignore[no-untyped-def]
    end = begin + len(votes)
    for row in range(len(tasks)):
        if begin <= tasks[row] < end:
            votes[tasks[row] - begin, labels[row]] += 1
