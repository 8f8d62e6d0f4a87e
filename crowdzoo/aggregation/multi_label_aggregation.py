"""MultiLabelAggregation: the labels that apply to each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.base import Columns, Result
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.aggregation.result_files import ReadResult

SEPARATOR = "|"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MultiLabelAggregation(Result):
    """Result for several labels per task: label probabilities, and what was learned about the annotators.

    `to_parquet` writes `tasks.parquet` (task, labels separated by "|", annotations, and one `probability_<label>` per
    label), `annotators.parquet` (annotator, annotations, `sensitivity_<label>` and `specificity_<label>`) and
    `summary.json`.

    With N tasks, R annotators, J labels:

    Attributes:
        label_names: names of the labels, [J].
        probabilities: probability that a label applies to a task, [N, J]; each from 0 to 1. Rows do not sum to one.
        chosen: whether the probability is above one half, bool [N, J].
        sensitivity: share of an annotator's tasks with the label to which the annotator gave it, [R, J]. Tasks are
            weighted by the label's probability, which the annotator's own answers influenced. NaN if there are no such
            tasks.
        specificity: share of an annotator's tasks without the label to which the annotator did not give it, [R, J];
            likewise.
        accuracy_intervals: estimate and both ends of the interval of each label's accuracy on tasks without gold, [J,
            3]; NaN for labels without gold. None unless the result was calibrated.
        annotations_per_task: number of answers (sets of labels), int64 [N].
        annotations_per_annotator: int64 [R].

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MultiLabel
        >>> task, annotator = [1, 1, 1, 2, 2], ["ann", "ann", "bob", "ann", "bob"]
        >>> labels = ["cat", "indoors", "cat", "dog", "dog"]
        >>> annotations = Annotations.from_arrays(task, annotator, labels, on_duplicate="all")
        >>> result = MultiLabel("majority-vote").fit(annotations)
        >>> result.label_names.tolist()
        ['cat', 'dog', 'indoors']
        >>> result.probabilities.tolist()
        [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]
    """

    kind: ClassVar[str] = "multi-label"

    label_names: NDArray[Any]
    probabilities: NDArray[np.float64]
    chosen: NDArray[np.bool_]
    sensitivity: NDArray[np.float64]
    specificity: NDArray[np.float64]
    annotations_per_task: NDArray[np.int64]
    annotations_per_annotator: NDArray[np.int64]
    accuracy_intervals: NDArray[np.float64] | None = None

    @property
    def label_sets(self) -> list[list[Any]]:
        """Names of the labels that apply to each task, N lists."""
        names = self.label_names.tolist()
        return [[name for name, holds in zip(names, row, strict=True) if holds] for row in self.chosen.tolist()]

    def accuracy(self, gold: Mapping[Any, ArrayLike]) -> dict[Any, float]:
        """Returns the share of known tasks of each label on which `chosen` is right.

        Args:
            gold: for each label 1, 0, or -1 where unknown, int [N].

        Raises:
            DataError: a label that is not in `label_names`, not one code per task, or no known task.
        """
        accuracies = {}
        names = self.label_names.tolist()
        for label, codes in gold.items():
            known = np.asarray(codes)
            if label not in names or known.shape != self.annotations_per_task.shape or not (known >= 0).any():
                raise DataError(
                    f"gold of label {label!r} has to be one of 1, 0 and -1 for each of {len(self.tasks):,} tasks, not "
                    f"all -1, and the label one of {names}."
                )
            right = self.chosen[:, names.index(label)] == (known == 1)
            accuracies[label] = float(right[known >= 0].mean())
        return accuracies

    def _answer_columns(self) -> Columns:
        texts = np.array([SEPARATOR.join(map(str, names)) for names in self.label_sets], object)
        return {
            "task": self.tasks,
            "labels": texts,
            "annotations": self.annotations_per_task,
            **self._of_labels("probability", self.probabilities),
        }

    def _of_annotators(self) -> Columns:
        return {**self._of_labels("sensitivity", self.sensitivity), **self._of_labels("specificity", self.specificity)}

    def _of_labels(self, what: str, values: NDArray[np.float64]) -> Columns:
        return {f"{what}_{name}": values[:, place] for place, name in enumerate(self.label_names.tolist())}

    @classmethod
    def _read(cls, stored: ReadResult) -> dict[str, Any]:
        tasks, annotators, _ = cls.files
        names = stored.list_of_names("labels")

        def of_labels(file: str, what: str) -> NDArray[np.float64]:
            return np.stack([stored.numbers(file, f"{what}_{name}") for name in names.tolist()], axis=1)

        probabilities = of_labels(tasks, "probability")
        sets = [set(text.split(SEPARATOR)) for text in stored.names(tasks, "labels").tolist()]
        return {
            "label_names": names,
            "probabilities": probabilities,
            "chosen": np.array([[str(name) in own for name in names.tolist()] for own in sets], bool).reshape(
                probabilities.shape
            ),
            "sensitivity": of_labels(annotators, "sensitivity"),
            "specificity": of_labels(annotators, "specificity"),
            "accuracy_intervals": _intervals(stored),
            **stored.names_and_counts(tasks, annotators),
        }

    def _more(self) -> dict[str, Any]:
        intervals = {}
        if self.accuracy_intervals is not None:
            rows = [None if np.isnan(row).any() else row.tolist() for row in self.accuracy_intervals]
            intervals = {"accuracy_intervals": rows}
        return {"kind": self.kind, "labels": self.label_names.tolist(), **intervals}


def _intervals(stored: ReadResult) -> NDArray[np.float64] | None:
    """Reads the accuracy intervals of calibrated labels from the summary."""
    if "accuracy_intervals" not in stored.summary:
        return None
    rows = stored.value("accuracy_intervals", list)
    if not all(row is None or (isinstance(row, list) and len(row) == 3) for row in rows):
        raise DataError(
            f"{stored.folder}: accuracy_intervals of summary.json should be null or three numbers per label."
        )
    return np.array([[np.nan] * 3 if row is None else row for row in rows], np.float64)
