"""What methods for classes and for ratings refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.data.label_kinds import CLASSIFICATION, REGRESSION, LabelKind, require_annotations, require_kind
from crowdzoo.errors import DataError, short_repr

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

# methods that see of a task only how often each annotator gave each label (Dawid and Skene, 1979, count them so)
COUNTING = ("Majority vote", "Dawid-Skene", "posteriors_of")

LARGEST = 1e10  # of a rating in usual ones: with a larger one, sums lose the digits of the others


def check_annotations(annotations: Annotations, method: str, kind: LabelKind, what: str) -> None:
    """Refuses what is not a table of annotations, annotations of another kind, and none at all.

    Args:
        annotations: to look at.
        method: the aggregator's title, for the message.
        kind: what the method takes.
        what: one annotation, in words.

    Raises:
        DataError: one of these.
    """
    require_annotations(annotations, f"{method}: fit", "fit_predict(frame), or fit on ")
    require_kind(annotations.label_kind, method, kind)
    if len(annotations) == 0:
        raise DataError(f"{method} needs at least one {what}: there are no annotations.")


def check_classification(annotations: Annotations, method: str, *, matrices: bool = True) -> None:
    """Refuses annotations of another kind, without any class, or with several of one annotator for a task.

    Args:
        annotations: to look at.
        method: the aggregator's title, for the message.
        matrices: whether the method needs a confusion matrix for each annotator.

    Raises:
        DataError: another kind, no class, more classes than fit into memory; repeated annotations, unless the method
            only counts labels.
    """
    require_annotations(annotations, f"{method}: fit", "fit_predict(frame), or fit on ")
    require_kind(annotations.label_kind, method, CLASSIFICATION)
    if method not in COUNTING:
        annotations.check_no_repeats(method, unless="take method majority-vote or dawid-skene, which count them all")
    if annotations.num_classes == 0:
        raise DataError(f"{method} needs at least one class: there are no annotations and no `classes` were given.")
    num_tasks, num_annotators = annotations.num_tasks, annotations.num_annotators
    short = short_of_memory(annotations.num_classes, num_tasks, num_annotators if matrices else 0)
    if short:
        raise DataError(
            f"{method}: {annotations.num_classes:,} classes, of {num_tasks:,} tasks and {num_annotators:,} annotators, "
            f"take {short}. Is the label a free text? Name the column of classes, or merge rare classes."
        )


def short_of_memory(num_classes: int, num_tasks: int, num_annotators: int) -> str:
    """What probabilities of the tasks and confusion matrices of the annotators need; empty where there is as much."""
    from crowdzoo.process import available_memory

    needed, memory = 8 * num_classes * (num_tasks + num_annotators * num_classes), available_memory()
    if memory is None or needed <= memory:
        return ""
    return f"about {needed / 1e9:.3g} GB of memory, and {memory / 1e9:.3g} GB are free"


def check_ratings(annotations: Annotations, method: str, low: float | None, high: float | None) -> None:
    """Refuses annotations of another kind, without any rating, or with ratings outside of a scale.

    Args:
        annotations: to look at.
        method: the aggregator's title, for the message.
        low: lowest rating, or None.
        high: highest rating, or None.

    Raises:
        ConfigError: an impossible scale.
        DataError: another kind, no annotation, a rating outside, or one so large that the others are lost next to it.
    """
    check_annotations(annotations, method, REGRESSION, "rating")
    annotations.check_scale(low, high)
    sizes = np.abs(annotations.labels)
    if 0 < (most := sizes.max()) < 1e-100:
        raise DataError(f"{method}: no rating is larger than {most:g}, and squares of them are 0. Use another unit.")
    if most > LARGEST * (usual := np.quantile(sizes[sizes > 0], 0.5, method="lower") if most else 0.0):
        row = annotations.select_rows(np.flatnonzero(sizes == most)[:1])
        annotator, task = row.annotators[row.annotator_ids[0]], row.tasks[row.task_ids[0]]
        raise DataError(
            f"{method}: annotator {short_repr(annotator)} gave task {short_repr(task)} "
            f"{row.labels[0]:g}, next to which the usual {usual:g} is lost. Correct or remove that rating."
        )
