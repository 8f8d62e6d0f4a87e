"""Comparison of methods for free texts."""

from typing import ClassVar

import numpy as np

from crowdzoo.aggregation.free_texts.text_aggregation import TextAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.free_texts.scoring import SCORING, TextScoring
from crowdzoo.kinds.measure import Measure, Scores, Sum
from crowdzoo.kinds.scoring import Codes, Flags, Sums


class TextMeasure(Measure[Annotations, TextAggregation]):
    """Compare by the negative error rate. A row of answers has the number of edits of a task's text and of true tokens.

    Edits are counted against gold, or against the hidden texts, of which a task may have several. Texts are normalized
    and tokenized by `scale`, in the same way for all methods.
    """

    scoring = SCORING
    title = "error rate, negative"
    answers_hold_gold = True
    hidden_title = "error rate of hidden texts, negative"
    baseline = "most-frequent"
    quick: ClassVar[tuple[str, ...]] = ("most-frequent", "medoid", "rover", "text-rasa", "text-hrrasa")

    def answers(self, result: TextAggregation, tasks: Codes, rows: Flags | None) -> Scores:
        """Edits and tokens."""
        places, true = self.references(tasks, rows)
        negative, tokens = TextScoring(**self.scale).sums(true, result.texts[tasks[places]])
        return np.stack([np.bincount(places, column, len(tasks)) for column in (-negative, tokens)], axis=1)

    def sums(self, answers: Scores, tasks: Codes) -> Sums:
        """Negative edits, and tokens."""
        known = self.known[tasks]
        return np.where(known, -answers[:, 0], 0.0), np.where(known, answers[:, 1], 0.0)

    def hidden_sums(self, rows: Flags | None = None) -> Sum:
        """Negative edits, and tokens, of the hidden texts."""
        return lambda answers, tasks: (-answers[:, 0], answers[:, 1])

    def further(self, answers: Scores, tasks: Codes) -> dict[str, float]:
        """Share of texts without errors."""
        return {"without error": float(np.mean(answers[self.known[tasks], 0] == 0))}
