"""TextAggregation: the result of every aggregator of free texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Columns, Result, names_and_counts
from crowdzoo.aggregation.free_texts.edits import error_rates

if TYPE_CHECKING:
    from crowdzoo.aggregation.free_texts.text_table import TextTable
    from crowdzoo.aggregation.free_texts.tokens import Tokens
    from crowdzoo.aggregation.result_files import ReadResult


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TextAggregation(Result):
    """Result for free texts: one text per task, and how close the annotators' texts are to it.

    `to_parquet` writes `tasks.parquet` (task, text, confidence, annotations, effective_votes), `annotators.parquet`
    (annotator, annotations, agreement, skill) and `summary.json`.

    With N tasks and R annotators. The error rate of two texts is the edits between them over the tokens of the longer.

    Attributes:
        texts: [N]; empty for tasks without annotations.
        confidence: 1 minus the mean error rate of the annotators' texts against the task's text, [N], where the closest
            text counts as having the average error rate of two texts of a task; 0 without annotations. It helps to find
            tasks to check, and is not a probability.
        skills: weight of each annotator, [R]; None if all weights are equal.
        effective_votes: number of equally weighted texts that the task's texts are worth, [N]: squared sum of the
            weights over the sum of squared weights (L. Kish: Survey Sampling, 1965). With equal weights, the number of
            texts.
        agreement: 1 minus the mean error rate of an annotator's texts against those of the tasks, [R], from 0 to 1.
        unit: kind of tokens, "words" or "characters".
        normalize: what comparisons of texts ignore; see `normalized`.
        annotations_per_task: int64 [N].
        annotations_per_annotator: int64 [R].

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MostFrequentText
        >>> words = ["a cat", "a cat", "a hat"]
        >>> texts = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], words, kind="free-text")
        >>> result = MostFrequentText().fit(texts)
        >>> result.texts.tolist()
        ['a cat']
        >>> result.agreement.tolist()  # of each annotator with the texts
        [1.0, 1.0, 0.5]
    """

    kind: ClassVar[str] = "free-text"
    answered: ClassVar = (["task"], "text", "agg_label")

    texts: NDArray[Any]
    confidence: NDArray[np.float64]
    effective_votes: NDArray[np.float64]
    agreement: NDArray[np.float64]
    unit: str
    normalize: str
    annotations_per_task: NDArray[np.int64]
    annotations_per_annotator: NDArray[np.int64]

    @classmethod
    def of(
        cls, method: Any, table: TextTable, texts: NDArray[Any], tokens: Tokens, places: NDArray[np.int64], **more: Any
    ) -> TextAggregation:
        """Creates the result for a table.

        Args:
            method: the aggregator.
            table: the table it was fitted to.
            texts: texts of the tasks, [N].
            tokens: tokens of the table's texts, and of `texts`.
            places: indices of `texts` in `tokens`, [N].
            **more: other attributes.
        """
        near = 1 - error_rates(tokens, table.said, places[table.tasks])
        after = np.flatnonzero(np.diff(table.tasks) == 0)  # neighbours are enough to estimate how far two texts agree
        usual = 1 - error_rates(tokens, table.said[after], table.said[after + 1])
        nearest = float(usual.mean()) if len(usual) else 0.0
        counts = names_and_counts(table.annotations)
        of_annotators, of_tasks = counts["annotations_per_annotator"], counts["annotations_per_task"]
        confidence = (table.of_tasks(near) + nearest - 1) / np.maximum(of_tasks, 1)
        weights = np.ones(len(of_annotators)) if more.get("skills") is None else more["skills"]
        sums, squares = (table.of_tasks(weights[table.who] ** power) for power in (1, 2))
        own = np.bincount(table.who, near, len(of_annotators)) / np.maximum(of_annotators, 1)
        return cls(
            method=method.name,
            texts=texts,
            confidence=np.where(of_tasks > 0, np.clip(confidence, 0, 1), 0.0),
            agreement=np.where(of_annotators > 0, own, near.mean()),
            effective_votes=sums**2 / np.maximum(squares, 1e-300),
            unit=method.unit,
            normalize=method.normalize,
            **counts,
            **more,
        )

    @classmethod
    def _read(cls, found: ReadResult) -> dict[str, Any]:
        tasks, annotators, _ = cls.files
        return {
            "texts": found.names(tasks, "text"),
            "confidence": found.numbers(tasks, "confidence"),
            "agreement": found.numbers(annotators, "agreement"),
            "effective_votes": found.numbers(tasks, "effective_votes"),
            "unit": found.value("unit", str),
            "normalize": found.value("normalize", str),
            **found.names_and_counts(tasks, annotators),
        }

    def _answer_columns(self) -> Columns:
        columns: Columns = {"task": self.tasks, "text": self.texts, "confidence": self.confidence}
        return columns | {"annotations": self.annotations_per_task, "effective_votes": self.effective_votes}

    def _of_annotators(self) -> Columns:
        return {"agreement": self.agreement, "skill": self.skills}

    def _more(self) -> dict[str, Any]:
        return {"kind": self.kind, "unit": self.unit, "normalize": self.normalize}
