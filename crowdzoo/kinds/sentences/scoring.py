"""Comparison of tags and spans of sentences with gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crowdzoo.kinds.scoring import Flags, Rows, Scores, Scoring, Sums
from crowdzoo.quality.span_scores import SpanScores, TypeScores, span_scores

TAGS_F1, DRAWN_F1 = "F1 of spans", "F1 of spans as drawn"
Tags = Sequence[Any]  # names or codes per sentence, None where unknown


@dataclass(frozen=True)
class SpanScoring(Scoring[Tags, Tags]):
    """Gold is tags of N sentences, None where unknown; answers are tags of n sentences.

    Args:
        scheme: tagging scheme, "BIO" or "IOBES".
        classes: names of the tags if gold and answers are codes; else None.
    """

    metric, metric_title = "f1", "F1"
    scheme: str = "BIO"
    classes: Sequence[str] | None = None
    titles: ClassVar = {"precision": "precision", "recall": "recall", "token_accuracy": "token accuracy"}

    def known(self, gold: Tags) -> Flags:
        """Sentences that have tags."""
        return np.array([tags is not None for tags in gold], bool)

    def sums(self, gold: Tags, answers: Tags) -> Sums:
        """Twice the number of correct spans, and the total number of spans in gold and answers."""
        sentences = [self._counts([true], [tags]) for true, tags in zip(gold, answers, strict=True)]
        spans = [sentence.num_gold + sentence.num_predicted for sentence in sentences]
        return np.array([2.0 * sentence.num_correct for sentence in sentences]), np.array(spans, float)

    def score(self, gold: Tags, answers: Tags) -> Scores:
        """F1, precision and recall of spans, the share of tokens with the correct tag, and a table by type."""
        counts = self._counts(gold, answers)
        numbers = {name: getattr(counts, name) for name in ("f1", "precision", "recall", "token_accuracy")}
        return {**numbers, "types": counts.rows()}

    def _counts(self, gold: Tags, answers: Tags) -> SpanScores:
        return span_scores(list(gold), answers, self.scheme, classes=self.classes)


def span_rows(name: str, counts: TypeScores, more: str = "") -> Rows:
    """A row of a table: F1 with precision and recall."""
    return [(name, f"{counts.f1:.4f} (precision {counts.precision:.4f}, recall {counts.recall:.4f}{more})")]


SCORING = SpanScoring()
