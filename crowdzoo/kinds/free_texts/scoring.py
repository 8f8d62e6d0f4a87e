"""How free texts are compared with gold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.free_texts.tokens import Tokens
from crowdzoo.kinds.scoring import Rows, Scoring, Sums

Texts = NDArray[Any]


@dataclass(frozen=True)
class TextScoring(Scoring):
    """Gold is texts, objects [N], empty where unknown; answers are texts, [n].

    Args:
        normalize: what does not count, as methods take it.
        unit: what is compared, "words" or "characters".
    """

    normalize: str = "blanks"
    unit: str = "words"

    def sums(self, gold: Texts, answers: Texts) -> Sums:
        """Negative edits, and tokens of gold."""
        counts, lengths = self._edits(gold, answers, self.unit)
        return -counts.sum(axis=1).astype(float), lengths.astype(float)

    def score(self, gold: Texts, answers: Texts) -> dict[str, Any]:
        """Edits over tokens of gold, of characters and of words, and those of words by kind."""
        from crowdzoo.aggregation.free_texts.edits import ERRORS

        rates = {}
        for unit, name in (("characters", "character_error"), ("words", "word_error")):
            counts, lengths = self._edits(gold, answers, unit)
            shares = counts.sum(axis=0) / max(int(lengths.sum()), 1)
            rates[name] = float(counts.sum() / max(int(lengths.sum()), 1))
        return rates | dict(zip(ERRORS, shares.tolist(), strict=True))

    def rows(self, gold: Texts, answers: Texts, split: str = "") -> Rows:
        """How many tasks have gold, and the numbers."""
        numbers = self.score(gold, answers).items()
        of_gold = ((f"{name.replace('_', ' ')} against gold", f"{value:.4f}") for name, value in numbers)
        return [("tasks with gold", f"{len(gold):,}"), *of_gold]

    def _edits(self, gold: Texts, answers: Texts, unit: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Edits of each answer by kind, [n, 3], and the tokens of each text of gold, [n]."""
        from crowdzoo.aggregation.free_texts.edits import edits

        number = len(gold)
        tokens, places = Tokens.of([*answers, *gold], unit, self.normalize), np.arange(number)
        return edits(tokens, places, number + places), tokens.lengths[number:]


SCORING = TextScoring()
