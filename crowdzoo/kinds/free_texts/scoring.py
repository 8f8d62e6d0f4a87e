"""Comparison of free texts with gold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdzoo.aggregation.free_texts.tokens import Tokens
from crowdzoo.kinds.scoring import Codes, Objects, Rows, Scores, Scoring, Sums


@dataclass(frozen=True)
class TextScoring(Scoring[Objects, Objects]):
    """Gold is texts, objects [N], empty where unknown; answers are texts, [n].

    Args:
        normalize: differences to ignore, as in the methods.
        unit: unit of comparison, "words" or "characters".
    """

    metric = "word_error"
    metric_title = "word error"
    normalize: str = "blanks"
    unit: str = "words"

    def sums(self, gold: Objects, answers: Objects) -> Sums:
        """Negative edits, and tokens of gold."""
        counts, lengths = self._edits(gold, answers, self.unit)
        return -counts.sum(axis=1).astype(float), lengths.astype(float)

    def score(self, gold: Objects, answers: Objects) -> Scores:
        """Edits per token of gold, for characters and for words, and the latter by kind of edit."""
        from crowdzoo.aggregation.free_texts.edits import ERRORS

        rates = {}
        for unit, name in (("characters", "character_error"), ("words", "word_error")):
            counts, lengths = self._edits(gold, answers, unit)
            shares = counts.sum(axis=0) / max(int(lengths.sum()), 1)
            rates[name] = float(counts.sum() / max(int(lengths.sum()), 1))
        return rates | dict(zip(ERRORS, shares.tolist(), strict=True))

    def rows(self, gold: Objects, answers: Objects, split: str = "") -> Rows:
        """Number of tasks with gold, and the scores."""
        numbers = self.score(gold, answers).items()
        of_gold = ((f"{name.replace('_', ' ')} against gold", f"{value:.4f}") for name, value in numbers)
        return [("tasks with gold", f"{len(gold):,}"), *of_gold]

    def _edits(self, gold: Objects, answers: Objects, unit: str) -> tuple[Codes, Codes]:
        """Number of edits of each answer by kind, [n, 3], and of tokens of each gold text, [n]."""
        from crowdzoo.aggregation.free_texts.edits import edits

        number = len(gold)
        tokens, places = Tokens.of([*answers, *gold], unit, self.normalize), np.arange(number)
        return edits(tokens, places, number + places), tokens.lengths[number:]


SCORING = TextScoring()
