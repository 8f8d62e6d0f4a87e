"""How far a result is from the votes: what a method that ran to one class, or turned classes round, looks like."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.loops import compiled
from crowdzoo.errors import NotedWarning

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

CELLS = 2**24  # of the table of votes, which is made for so many tasks at a time
FEW_CELLS = 2**16  # of that table where annotations are in the order of their tasks
MOST_DIFFERENT = 0.2  # of the tasks, where a result needs no note
LEAST_NAMED = 0.01  # of the annotations, for a class that the result has nowhere


class VotesWarning(NotedWarning):
    """A result is far from the votes: see its `notes`.

    Example:
        >>> import warnings
        >>> from crowdzoo.aggregation import VotesWarning
        >>> warnings.simplefilter("ignore", VotesWarning)  # once you have read the result's `notes`
    """


@contextmanager
def ignored(*categories: type[Warning]) -> Iterator[None]:
    """Leaves out warnings of some categories, as of a fit that is only a step to a result with notes of its own."""
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


def notes_against_votes(annotations: Annotations, labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Sentences on what a reader should check before using a result; empty as a rule.

    There is one where the labels of more than a fifth of the annotated tasks are not among the classes with the most
    votes, and one where a class that has two annotations or more, and at least a hundredth of all, is the label of no
    task. Both may be right: annotators who err alike are outvoted by better ones. More often the method collapsed.

    Args:
        annotations: N tasks, K classes.
        labels: class codes, int64 [N].
    """
    num_classes = annotations.num_classes
    notes = different_note(annotations, labels, "tasks", "tasks whose class is known")
    num_votes, num_labels = (np.bincount(codes, minlength=num_classes) for codes in (annotations.labels, labels))
    sentence = "is the label of no task, although {:.1%} of the annotations name it"
    return notes + empty_note(annotations, num_votes, num_labels, sentence)


def empty_note(
    annotations: Annotations, num_votes: NDArray[np.int64], num_labels: NDArray[np.int64], sentence: str
) -> tuple[str, ...]:
    """The sentence on a class that a result gives to nothing, and on how many more, see `empty_classes`; or none.

    Args:
        annotations: K classes.
        num_votes: votes for each class, [K].
        num_labels: how often each is in the result, [K].
        sentence: of the class, with braces for its share of the votes.
    """
    for code, share, num_others in empty_classes(num_votes, num_labels):
        more = (
            "; so is 1 more class" if num_others == 1 else f"; so are {num_others} more classes" if num_others else ""
        )
        return (f"Class {np.asarray(annotations.classes).tolist()[code]!r} {sentence.format(share)}{more}.",)
    return ()


def warn_of_notes(method: str, notes: tuple[str, ...], stacklevel: int) -> None:
    """Warns of the notes on a method's result, if there are any.

    Warns:
        VotesWarning: there are.
    """
    if notes:
        warnings.warn(VotesWarning(f"{method}: {' '.join(notes)}", notes), stacklevel=stacklevel)


def different_note(annotations: Annotations, labels: NDArray[np.int64], unit: str, known: str) -> tuple[str, ...]:
    """The sentence on labels that differ from the plurality of the votes on more than a fifth of the tasks, if so.

    Args:
        annotations: N tasks, K classes.
        labels: class codes, int64 [N].
        unit: what a task is called.
        known: what else to compare with.
    """
    outvoted = _outvoted(annotations.task_ids, annotations.labels, labels, annotations.num_classes)
    different, tasks = np.count_nonzero(outvoted), np.count_nonzero(annotations.redundancy)
    if different <= MOST_DIFFERENT * tasks:
        return ()
    return (
        f"The labels differ from the plurality of the votes on {different / tasks:.0%} of the annotated {unit} "
        f"({different:,} of {tasks:,}): compare with majority-vote, or with {known}.",
    )


def empty_classes(num_votes: NDArray[np.int64], num_labels: NDArray[np.int64]) -> Iterator[tuple[int, float, int]]:
    """The most named of the classes that a result gives to nothing although at least a hundredth of the votes name it.

    Args:
        num_votes: votes for each class, [K].
        num_labels: how often each is in the result, [K].

    Yields:
        Once, or not at all: the class, its share of the votes, and how many more such classes there are.
    """
    empty = np.flatnonzero((num_labels == 0) & (num_votes > 1) & (num_votes >= LEAST_NAMED * num_votes.sum()))
    if empty.size:
        code = int(empty[num_votes[empty].argmax()])
        yield code, num_votes[code] / num_votes.sum(), empty.size - 1


def _outvoted(
    task_ids: NDArray[np.int64], votes_of: NDArray[np.integer], labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.bool_]:
    """Which tasks have a label that other classes have more votes than, bool [N]."""
    ordered = bool((task_ids[1:] >= task_ids[:-1]).all())
    step = max(1, (FEW_CELLS if ordered else CELLS) // max(num_classes, 1))
    outvoted = np.zeros(len(labels), bool)
    votes = np.empty((min(step, len(labels)), num_classes), np.int32)
    for begin in range(0, len(labels), step):
        rows = slice(*np.searchsorted(task_ids, (begin, begin + step))) if ordered else slice(None)
        part = slice(begin, begin + step)
        _compare_votes(task_ids[rows], votes_of[rows], begin, labels[part], votes, outvoted[part])
    return outvoted


@compiled()
def _compare_votes(tasks, labels, begin, answers, votes, outvoted):  # type: ignore[no-untyped-def]  # for Numba
    """Sets `outvoted` of the tasks from `begin` on; `votes` is work space for as many tasks."""
    votes[:] = 0
    end = begin + len(answers)
    for row in range(len(tasks)):
        if begin <= tasks[row] < end:
            votes[tasks[row] - begin, labels[row]] += 1
    for task in range(len(answers)):
        own = votes[task, answers[task]]
        for k in range(votes.shape[1]):
            outvoted[task] |= votes[task, k] > own
