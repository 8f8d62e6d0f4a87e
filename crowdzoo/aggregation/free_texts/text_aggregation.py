"""TextAggregation: what every aggregator of free texts gives back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Columns, Result, names_and_counts, sizes
from crowdzoo.aggregation.engine.block import occurrences
from crowdzoo.aggregation.free_texts.edits import error_rates

if TYPE_CHECKING:
    from crowdzoo.aggregation.free_texts.text_table import TextTable
    from crowdzoo.aggregation.result_files import ReadResult


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TextAggregation(Result):
    """One text a task out of many annotators' texts, and how near the annotators' texts are to it.

    `to_parquet` writes `tasks.parquet` (task, text, confidence, effective_votes, annotations), `annotators.parquet`
    (annotator, annotations, reliability, skill) and `summary.json`.

    With N tasks and R annotators, and the error rate of two texts: the edits between them over the tokens of the longer.

    Attributes:
        texts: [N]; empty where there are no annotations.
        confidence: one less the mean error rate of the annotators' texts against the task's, [N], where the text that
            is nearest counts with what two texts of one task have on average; 0 without annotations. It tells tasks
            to look at from others; it is no probability.
        effective_votes: as how many annotators of equal weight those of a task count, (sum w)² / sum w², [N].
        skills: weight of an annotator, [R]; None where all count the same.
        reliability: one less the mean error rate of an annotator's texts against those of the tasks, [R], from 0 to 1.
        unit: what the tokens are, "words" or "characters".
        normalize: what does not count when texts are compared; see `normalized`.
        annotations_per_task: int64 [N].
        annotations_per_annotator: int64 [R].
    """

    kind: ClassVar[str] = "free-text"
    answered: ClassVar = (["task"], "text", "agg_label")

    texts: NDArray[Any]
    confidence: NDArray[np.float64]
    effective_votes: NDArray[np.float64]
    skills: NDArray[np.float64] | None = None
    reliability: NDArray[np.float64]
    unit: str = "words"
    normalize: str = "blanks"
    annotations_per_task: NDArray[np.int64]
    annotations_per_annotator: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        method: Any,
        table: TextTable,
        texts: NDArray[Any],
        found: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
        chosen: NDArray[np.int64] | None = None,
        weights: NDArray[np.float64] | None = None,
        **more: Any,
    ) -> TextAggregation:
        """The result for a table.

        Args:
            method: the aggregator.
            table: what it was fitted to.
            texts: of the tasks, [N].
            found: codes of the texts' tokens, and starts [N + 1]; or None,
            chosen: where texts are answers: their places in `table.tokens`, [N].
            weights: of the rows of the table, [A]; None is 1.
            **more: further attributes.
        """
        tokens, places = table.tokens, chosen
        if found is not None:
            places = len(tokens.texts) + np.arange(len(texts))
            starts = np.r_[tokens.starts, tokens.starts[-1] + found[1][1:]]
            tokens = replace(tokens, codes=np.r_[tokens.codes, found[0]], starts=starts)
        assert places is not None
        near = 1 - error_rates(tokens, table.said, places[table.tasks])
        after = np.flatnonzero(np.diff(table.tasks) == 0)  # neighbours: enough to know how far two texts agree
        usual = 1 - error_rates(table.tokens, table.said[after], table.said[after + 1])
        usual_near = float(usual.mean()) if len(usual) else 0.0
        counts = np.maximum(table.sizes, 1)
        confidence = np.where(table.sizes > 0, (table.of_tasks(near) - 1 + usual_near) / counts, 0.0)
        votes = np.ones(len(near)) if weights is None else weights
        squares = table.of_tasks(votes**2)
        each = occurrences(table.who, table.annotations.num_annotators)
        own = np.bincount(table.who, near, len(each))
        return cls(
            method=method.name,
            texts=texts,
            confidence=np.clip(confidence, 0, 1),
            effective_votes=np.divide(
                table.of_tasks(votes) ** 2, squares, out=np.zeros(len(squares)), where=squares > 0
            ),
            reliability=np.where(each > 0, own / np.maximum(each, 1), near.mean()),
            unit=method.unit,
            normalize=method.normalize,
            **names_and_counts(table.annotations),
            **more,
        )

    @classmethod
    def _read(cls, found: ReadResult) -> dict[str, Any]:
        tasks, annotators, _ = cls.files
        return {
            "texts": found.names(tasks, "text"),
            "confidence": found.numbers(tasks, "confidence"),
            "effective_votes": found.numbers(tasks, "effective_votes"),
            "skills": found.optional(annotators, "skill"),
            "unit": found.value("unit", str),
            "normalize": found.value("normalize", str),
            "tasks": found.names(tasks, "task"),
            "annotations_per_task": found.numbers(tasks, "annotations", whole=True),
            "annotations_per_annotator": found.numbers(annotators, "annotations", whole=True),
        }

    def _answer_columns(self) -> Columns:
        return {
            "task": self.tasks,
            "text": self.texts,
            "confidence": self.confidence,
            "effective_votes": self.effective_votes,
            "annotations": self.annotations_per_task,
        }

    def _annotator_columns(self) -> Columns:
        return {
            "annotator": self.annotators,
            "annotations": self.annotations_per_annotator,
            "reliability": self.reliability,
            "skill": self.skills,
        }

    def _more(self) -> dict[str, Any]:
        return {"kind": self.kind, "unit": self.unit, "normalize": self.normalize}

    def _summary(self) -> dict[str, Any]:
        return {**super()._summary(), **sizes(self.annotations_per_task, self.annotators)}
