"""How far a result is from the votes, to detect methods that collapsed to one class or permuted classes."""

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

CELLS = 2**24  # of the table of votes, which is computed for a batch of tasks at a time
FEW_CELLS = 2**16  # of that table if annotations are sorted by task
MOST_DIFFERENT = 0.2  # share of tasks that may differ from the votes without a note
LEAST_NAMED = 0.01  # share of annotations from which on a class that the result never assigns gets a note


class VotesWarning(NotedWarning):
    """A result is far from the votes; its `notes` say why.

    Example:
        >>> import warnings
        >>> from crowdzoo.aggregation import VotesWarning
        >>> warnings.simplefilter("ignore", VotesWarning)  # once you have read the result's `notes`
    """


@contextmanager
def ignored(*categories: type[Warning]) -> Iterator[None]:
    """Suppresses warnings of some categories, such as those of a fit that is only one step of another."""
    with warnings.catch_warnings():
        for category in categories:
            warnings.simplefilter("ignore", category)
        yield


def notes_against_votes(annotations: Annotations, labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Returns sentences on what to check before using a result; usually none.

    One note is for labels of more than a fifth of the annotated tasks that are not among the classes with the most
    votes. Another is for a class with two or more annotations, and at least a hundredth of all, that no task gets. Both
    may be right, if better annotators overrule a majority with the same errors. More often the method collapsed.

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
    """Note on the most voted class that a result never assigns, and the number of other such classes; or none.

    Args:
        annotations: K classes.
        num_votes: votes per class, [K].
        num_labels: labels per class in the result, [K].
        sentence: text on the class, with braces for its share of the votes.
    """
    for code, share, num_others in empty_classes(num_votes, num_labels):
        more = (
            "; so is 1 more class" if num_others == 1 else f"; so are {num_others} more classes" if num_others else ""
        )
        return (f"Class {np.asarray(annotations.classes).tolist()[code]!r} {sentence.format(share)}{more}.",)
    return ()


def warn_of_notes(method: str, notes: tuple[str, ...], stacklevel: int) -> None:
    """Warns of the notes on a method's result, if any.

    Warns:
        VotesWarning: if there are notes.
    """
    if notes:
        warnings.warn(VotesWarning(f"{method}: {' '.join(notes)}", notes), stacklevel=stacklevel)


def different_note(annotations: Annotations, labels: NDArray[np.int64], unit: str, known: str) -> tuple[str, ...]:
    """Note on labels that differ from the plurality of the votes on more than a fifth of the tasks; or none.

    Args:
        annotations: N tasks, K classes.
        labels: class codes, int64 [N].
        unit: plural noun for tasks.
        known: gold labels to compare with, for the message.
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
    """Finds the most voted class that a result never assigns although it has at least a hundredth of the votes.

    Args:
        num_votes: votes per class, [K].
        num_labels: labels per class in the result, [K].

    Yields:
        At most once: the class, its share of the votes, and the number of other such classes.
    """
    empty = np.flatnonzero((num_labels == 0) & (num_votes > 1) & (num_votes >= LEAST_NAMED * num_votes.sum()))
    if empty.size:
        code = int(empty[num_votes[empty].argmax()])
        yield code, num_votes[code] / num_votes.sum(), empty.size - 1


def _outvoted(
    task_ids: NDArray[np.int64], votes_of: NDArray[np.integer], labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.bool_]:
    """Marks tasks for whose label other classes have more votes, bool [N]."""
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
    """Sets `outvoted` for the tasks from `begin` on; `votes` is work space for as many tasks."""
    votes[:] = 0
    end = begin + len(answers)
    for row in range(len(tasks)):
        if begin <= tasks[row] < end:
            votes[tasks[row] - begin, labels[row]] += 1
    for task in range(len(answers)):
        own = votes[task, answers[task]]
        for k in range(votes.shape[1]):
            outvoted[task] |= votes[task, k] > own
