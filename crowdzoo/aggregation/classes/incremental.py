"""Incremental: a method that goes on from an earlier result when annotations come in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.aggregator import Aggregator
from crowdzoo.aggregation.engine.block import occurrences
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

__all__ = ["Incremental"]


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
