"""data_notes: what about a crowd makes the results of a method doubtful."""

from __future__ import annotations

import numpy as np

from crowdzoo.errors import SHOWN
from crowdzoo.quality.dependence import effective_votes, effective_votes_interval
from crowdzoo.quality.opposition import opposed_groups
from crowdzoo.tables.annotations import Annotations

__all__ = ["data_notes", "matrix_notes"]

MATRICES = ("dawid-skene", "ibcc", "ebcc", "mmce", "label-model")  # K (K - 1) numbers an annotator, little shrunk
DEPENDENT = ("dependent-dawid-skene", "people-and-models")  # they say themselves what annotations are worth
LEAST_PER_CLASS = 10.0  # annotations of an annotator, on average
LEAST_WORTH = 0.5  # of a task's annotations, in independent ones
LEAST_ANNOTATIONS = 3.0  # of a task, on average


def data_notes(
    annotations: Annotations, method: str | None = None, worth: tuple[float, float, float] | None = None
) -> tuple[str, ...]:
    """Sentences on a crowd that a method should not be trusted with; empty as a rule. No gold is needed.

    - The method learns a confusion matrix for each annotator, and an annotator has fewer than ten annotations of each
      class on average.
    - The annotations of a task are worth less than half as many independent ones (see `effective_votes`), a task has
      three or more on average, and the method does not count them for what they are worth.
    - Two groups of annotators agree among themselves and not with each other (see `opposed_groups`), such as people and
      models, and the method does not know who is a model.

    Args:
        annotations: kind classification.
        method: name of the method of aggregation that is used; None for what holds for all.
        worth: result of `effective_votes_interval`, where it is known already; None computes it where it is needed.
    """
    found = matrix_notes(method, len(annotations), annotations.num_annotators, annotations.num_classes)
    sizes = annotations.redundancy[annotations.redundancy > 0]
    if sizes.size and sizes.mean() >= LEAST_ANNOTATIONS and method not in DEPENDENT:
        value = effective_votes(annotations) if worth is None else worth[0]
        if value is not None and value < LEAST_WORTH * sizes.mean():
            found += (_worth_note(sizes.mean(), worth or effective_votes_interval(annotations)),)
    if method != "people-and-models":
        found += _opposed_note(annotations)
    return found


def _worth_note(number: float, worth: tuple[float, float, float] | None) -> str:
    value, low, high = worth or (1.0, 1.0, number)
    return (
        f"The {number:.3g} annotations of a task are worth {value:.2g} independent ones ({low:.2g} to {high:.2g}): "
        "annotators err on the same tasks, so probabilities are probably too high. Label about 200 tasks yourself, "
        "drawn at random, and correct the result with them (crowdzoo aggregate --gold FILE --calibrate). If people and "
        "models labelled them, say who is a model (--annotator-table)."
    )


def _opposed_note(annotations: Annotations) -> tuple[str, ...]:
    opposed = opposed_groups(annotations)
    if opposed is None:
        return ()
    groups = []
    for group in (opposed.outvoted, opposed.outvoting):
        names = annotations.annotators[np.flatnonzero(group)[:SHOWN]].tolist()
        more = f" and {group.sum() - SHOWN:,} more" if group.sum() > SHOWN else ""
        groups.append(f"{', '.join(map(str, names))}{more}")
    return (
        "Two groups of annotators contradict each other and agree among themselves, at least one of them for a wrong "
        f"reason: {groups[0]}; and {groups[1]}, who have more votes on {opposed.outvoted_share:.0%} of the tasks. If "
        "one group are models, say who is (--annotator-table): then people decide what a model's word is worth. "
        "Otherwise find out which group is right on tasks whose class you know (quality.opposed_groups says who is in "
        "which).",
    )


def matrix_notes(method: str | None, num_annotations: int, num_annotators: int, num_classes: int) -> tuple[str, ...]:
    """The first of the sentences of `data_notes`, from sizes alone."""
    per_class = num_annotations / max(num_annotators * num_classes, 1)
    if method not in MATRICES or not 0 < per_class < LEAST_PER_CLASS:
        return ()
    return (
        f"An annotator has {per_class:.1f} annotations of each class on average, which is little for the confusion "
        f"matrices of {method}. Compare with one-coin or robust on tasks whose class you know.",
    )
