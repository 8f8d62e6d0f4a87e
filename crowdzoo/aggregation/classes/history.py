"""History: the counts of an earlier result for annotators and classes, as pseudo-counts of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import check_classification
from crowdzoo.aggregation.engine.confusions import Counts, Params
from crowdzoo.aggregation.result import Aggregation
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

Prior: TypeAlias = Aggregation | None  # argument of `fit`

SHARED_TASKS = (
    "{:,} of the tasks are in the prior as well. Their labels depend only on the new annotations, and annotations that "
    "are in both count twice for annotators: if there are any, fit all annotations together."
)
NO_SHARED_ANNOTATOR = "The prior has none of the annotators of these annotations. Check their names."


@dataclass(frozen=True, eq=False)
class History:
    """Counts that an earlier result adds to each M-step.

    Attributes:
        counts: pseudo-counts in the order of the annotators and classes of the fit; None without a prior.
        notes: sentences on what to check before using the result.
    """

    counts: Counts | None = None
    notes: tuple[str, ...] = ()

    def evidence(self, params: Params) -> float:
        """Returns the log-likelihood of the pseudo-counts, nats, as for tasks with a known class."""
        if self.counts is None:
            return 0.0
        return float((self.counts.table * params.log_table).sum() + self.counts.classes @ params.log_class_prior)

    def added(self, counts: Counts, params: Params | None = None) -> Counts:
        """Adds the earlier counts to those of the annotations; with params, also their log-likelihood."""
        if self.counts is None:
            return counts
        return counts + replace(self.counts, log_likelihood=0.0 if params is None else self.evidence(params))

    def noted(self, result: Aggregation) -> Aggregation:
        """Adds these notes to a result."""
        return replace(result, notes=(*result.notes, *self.notes))


NO_HISTORY = History()


def with_prior(annotations: Annotations, prior: Prior, title: str) -> tuple[Annotations, History]:
    """Extends annotations by the annotators and classes of an earlier result, and returns its counts.

    Names are matched as text. Those that only the earlier result has are added at the end, so that codes do not change.

    Args:
        annotations: annotations to fit.
        prior: an earlier result; None adds nothing.
        title: title of the method, for messages.

    Raises:
        DataError: `prior` is not an `Aggregation`, has no confusion matrices, or shares no class.
    """
    if prior is None:
        return annotations, NO_HISTORY
    check_classification(annotations, title)
    if not isinstance(prior, Aggregation):
        reading = "Aggregation.from_parquet(folder) reads one."
        raise DataError(f"prior: needs an earlier result for classes, got {type(prior).__name__}. {reading}")
    if prior.confusions is None:
        able = "robust, dawid-skene, hierarchical-dawid-skene or ibcc"
        raise DataError(f"prior: {prior.method} has no confusion matrices. Use a result of {able}.")
    classes, earlier = np.asarray(annotations.classes), prior.classes
    if not {*map(str, classes.tolist())} & {*map(str, earlier.tolist())}:
        names = f"the classes {earlier[:5].tolist()}, and the annotations {classes[:5].tolist()}"
        raise DataError(f"prior: has {names}. Use a result with the same classes.")
    classes, columns = _joined(classes, earlier)
    annotators, rows = _joined(annotations.annotators, prior.annotators)
    counts = Counts.zero(len(annotators), len(classes))
    table, totals = prior.counts, prior.class_counts
    if table is None or totals is None:  # from an earlier release, or a method that does not store them
        totals = prior.posteriors[prior.annotations_per_task > 0].sum(axis=0)
        shares = totals / max(totals.sum(), 1)
        table = prior.annotations_per_annotator[:, None, None] * shares[:, None] * prior.confusions
    counts.table[np.ix_(rows, columns, columns)] = table.transpose(0, 2, 1)
    counts.classes[columns] = totals
    notes = []
    if shared := len({*map(str, prior.tasks.tolist())} & {*map(str, annotations.tasks.tolist())}):
        notes.append(SHARED_TASKS.format(shared))
    if len(annotations) and not counts.table[annotations.annotator_ids].any():
        notes.append(NO_SHARED_ANNOTATOR)
    return replace(annotations, annotators=annotators, classes=classes), History(counts, tuple(notes))


def _joined(names: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Appends the new ones of other names; also returns the index of each other name, int64."""
    place = {str(name): place for place, name in enumerate(names.tolist())}
    places = np.array([place.setdefault(str(name), len(place)) for name in others.tolist()], np.int64)
    whole = names.dtype.kind == others.dtype.kind == "i"
    return (np.array([*map(int, place)]) if whole else np.array([*place], object)), places
