"""Where an algorithm that iterates begins, if the caller says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.checks import check_classification
from crowdzoo.aggregation.engine.block import Block, blocks_of, occurrences
from crowdzoo.aggregation.engine.confusions import first_shares
from crowdzoo.aggregation.engine.right_wrong import Answers, given_answers
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

Initial: TypeAlias = ArrayLike | Aggregation | None  # what `fit` takes


def first_answers(
    blocks: Sequence[Block], num_annotators: int, num_classes: int, first: NDArray[np.float64] | None, *, by_label: bool
) -> Answers:
    """Answers of all blocks under `first_shares`, for a cell an annotator, or one an annotator and label."""
    shape = (num_annotators, num_classes) if by_label else (num_annotators,)
    votes = np.ones(num_annotators)
    answers = (given_answers(block, first_shares(block, votes, num_classes, first), shape) for block in blocks)
    return sum(answers, Answers.zero(shape, num_classes))


def same_crowd(initial: Initial, method: str, annotations: Annotations) -> TypeGuard[Aggregation]:
    """Whether `initial` is an earlier result of that method, for the same annotators and classes."""
    return (
        isinstance(initial, Aggregation)
        and initial.method == method
        and np.array_equal(initial.annotators, annotations.annotators)
        and np.array_equal(initial.classes, np.asarray(annotations.classes))
    )


def taken(
    annotations: Annotations, title: str, gold: ArrayLike | None, initial: Initial
) -> tuple[list[Block], NDArray[np.float64] | None]:
    """Arguments of `fit` of the method with that title, checked: blocks, and posteriors [N, K] to begin from."""
    check_classification(annotations, title)
    return blocks_of(annotations, gold), initial_posteriors(initial, annotations)


def initial_posteriors(initial: Initial, annotations: Annotations) -> NDArray[np.float64] | None:
    """Posteriors [N, K] to begin from; None stays None.

    Args:
        initial: posteriors [N, K], or an earlier `Aggregation` of the same tasks and classes, whose posteriors count.
        annotations: N tasks, K classes.

    Raises:
        DataError: another shape, rows that are not probabilities, or an `Aggregation` of other tasks or classes.
    """
    if initial is None:
        return None
    if isinstance(initial, Aggregation):
        check_same(initial, annotations, "tasks", "classes")
        return initial.posteriors
    return checked_initial(initial, annotations.num_tasks, annotations.num_classes)


def check_same(initial: Aggregation, annotations: Annotations, *names: str) -> None:
    """Refuses an earlier result of other tasks, annotators or classes.

    Raises:
        DataError: one of the attributes differs.
    """
    for name in names:
        if not np.array_equal(getattr(initial, name), getattr(annotations, name)):
            raise DataError(f"initial: that Aggregation has other {name} than the annotations.")


def checked_initial(initial: ArrayLike, *shape: int) -> NDArray[np.float64]:
    """`initial` as float64 of that shape, with rows (last axis) that are probabilities.

    Raises:
        DataError: another shape, or rows that are not probabilities.
    """
    start = np.asarray(initial, np.float64)
    if start.shape != shape:
        kind = "posteriors [N, K]" if len(shape) == 2 else "confusions [R, K, K]"
        raise DataError(f"initial holds {kind} = {list(shape)}, got shape {list(start.shape)}.")
    if not (start >= 0).all() or not np.allclose(start.sum(axis=-1), 1, atol=1e-6):
        raise DataError("initial holds probabilities: each row is non-negative and sums to one.")
    return start


class Incremental(Aggregator):
    """Base of the methods whose `fit` takes `initial`, and that can so go on from an earlier result."""

    def partial_fit(
        self, annotations: Annotations, earlier: Aggregation | None = None, gold: ArrayLike | None = None
    ) -> Aggregation:
        """Fits all annotations, old and new, beginning where an earlier fit ended.

        The parameters of the earlier result give the first posteriors; annotators who are new have the mean matrix of
        the others there. The rest is `fit`, so at convergence the result is that of a fit to all annotations, if both
        reach the same maximum. EM may find another one: the start is not the votes. Fewer iterations are needed, and
        each takes as long as one of `fit`.

        An aggregator keeps nothing between calls, unlike an estimator of scikit-learn: the state is `earlier`.

        Args:
            annotations: all N tasks, R annotators, K classes so far; tasks and annotators may be others than those of
                `earlier`, and in another order.
            earlier: result of this or another method with confusion matrices for some of these annotators, and the same
                classes in the same order. None, for the first time: `fit`.
            gold: known class codes, int [N], -1 where unknown.

        Returns:
            As `fit`.

        Raises:
            DataError: as `fit`; or `earlier` has no confusion matrices, or other classes.
        """
        if earlier is None:
            result: Aggregation = self.fit(annotations, gold)
        else:
            result = self.fit(annotations, gold, initial=_continued(earlier, annotations))
        return result


def _continued(earlier: Aggregation, annotations: Annotations) -> NDArray[np.float64]:
    """Posteriors [N, K] of all tasks under an earlier result's parameters."""
    if earlier.confusions is None or earlier.class_prior is None:
        raise DataError(f"earlier: {earlier.method} has no confusion matrices to go on from. Use fit.")
    classes = np.asarray(annotations.classes)
    if not np.array_equal(earlier.classes, classes):
        raise DataError(
            f"earlier has the classes {earlier.classes.tolist()}, the annotations have {classes.tolist()}. Read both "
            "with the same `classes`, or use fit."
        )
    seen = np.maximum(earlier.annotations_per_annotator, 1e-9)  # an average, also where nobody has annotations
    mean = np.average(earlier.confusions, axis=0, weights=seen) if len(seen) else None
    size = len(earlier.classes)
    confusions = np.tile(np.full((size, size), 1 / size) if mean is None else mean, (annotations.num_annotators, 1, 1))
    place = {name: code for code, name in enumerate(earlier.annotators.tolist())}
    old = np.array([place.get(name, -1) for name in annotations.annotators.tolist()], np.int64)
    confusions[old >= 0] = earlier.confusions[old[old >= 0]]
    known = replace(
        earlier,
        annotators=annotations.annotators,
        confusions=confusions,
        annotations_per_annotator=occurrences(annotations.annotator_ids, annotations.num_annotators),
    )
    return known.posteriors_of(annotations)
