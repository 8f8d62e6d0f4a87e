"""span_scores: precision, recall and F1 of spans, by the rules of conlleval."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.drawn_spans import DrawnSpan
from crowdzoo.data.tags import OUTSIDE, TagSet, allowed_tags, check_scheme, tag_problem
from crowdzoo.errors import DataError


@dataclass(frozen=True)
class TypeScores:
    """Counts of spans, of one type or of all.

    Attributes:
        num_gold: number of true spans.
        num_predicted: number of predicted spans.
        num_correct: number of predicted spans that are true: same type, first and last token.
    """

    num_gold: int
    num_predicted: int
    num_correct: int

    @property
    def precision(self) -> float:
        """Share of the predicted spans that are true, 0 to 1; 0 if nothing is predicted."""
        return self.num_correct / self.num_predicted if self.num_predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the true spans that are predicted, 0 to 1; 0 without any."""
        return self.num_correct / self.num_gold if self.num_gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 to 1; 0 if both are 0."""
        both = self.num_gold + self.num_predicted
        return 2 * self.num_correct / both if both else 0.0


@dataclass(frozen=True)
class SpanScores(TypeScores):
    """Counts of spans of all types, by type, and of tokens.

    Attributes:
        num_tokens: number of tokens.
        num_correct_tokens: number of tokens whose predicted tag is true.
        types: name of the type -> its counts, sorted; types that do not occur are left out.
    """

    num_tokens: int
    num_correct_tokens: int
    types: dict[str, TypeScores]

    @property
    def token_accuracy(self) -> float:
        """Share of the tokens with the right tag, 0 to 1."""
        return self.num_correct_tokens / self.num_tokens if self.num_tokens else 0.0

    def rows(self) -> list[dict[str, float | str]]:
        """Returns rows of `type`, `precision`, `recall`, `f1`, `gold`, `predicted`, `correct`, the first for "all"."""
        named = {"all": self, **self.types}
        return [
            {
                "type": name,
                "precision": scores.precision,
                "recall": scores.recall,
                "f1": scores.f1,
                "gold": scores.num_gold,
                "predicted": scores.num_predicted,
                "correct": scores.num_correct,
            }
            for name, scores in named.items()
        ]

    def __str__(self) -> str:
        """The report that conlleval prints, in percent."""
        lines = [
            f"processed {self.num_tokens} tokens with {self.num_gold} phrases; found: {self.num_predicted} phrases; "
            f"correct: {self.num_correct}.",
            f"accuracy: {100 * self.token_accuracy:6.2f}%; {_percentages(self)}",
        ]
        lines += [f"{name:>17}: {_percentages(scores)}  {scores.num_predicted}" for name, scores in self.types.items()]
        return "\n".join(lines)


def _percentages(scores: TypeScores) -> str:
    parts = (("precision", "%; ", scores.precision), ("recall", "%; ", scores.recall), ("FB1", "", scores.f1))
    return "".join(f"{name}: {100 * value:6.2f}{end}" for name, end, value in parts)


def span_scores(
    gold: Sequence[Sequence[object] | None],
    predicted: Sequence[Sequence[object]],
    scheme: str = "BIO",
    *,
    classes: Sequence[str] | None = None,
) -> SpanScores:
    """Computes precision, recall and F1 of spans, by the rules of conlleval (Tjong Kim Sang and Buchholz, CoNLL-2000).

    A span is right if its type, first token and last token are. Tags that break the scheme represent spans by the rules
    of `spans_of`; seqeval does the same by default.

    Args:
        gold: N sentences of tags, or with `classes` of class codes. None is a sentence whose truth is unknown, which is
            left out.
        predicted: the same, with the same number of tokens in each sentence.
        scheme: "BIO" or "IOBES".
        classes: names of the codes, [K]; codes are 0 to K-1.

    Returns:
        Counts and shares, for all types together (micro) and for each type.

    Raises:
        DataError: a different number of sentences or tokens, a tag outside the scheme, or a code without a class.

    Example:
        >>> from crowdzoo.metrics import span_scores
        >>> gold = [["B-PER", "I-PER", "O"], ["O", "B-LOC"]]
        >>> scores = span_scores(gold, [["B-PER", "I-PER", "O"], ["B-LOC", "I-LOC"]])
        >>> scores.precision, scores.recall, scores.f1
        (0.5, 0.5, 0.5)
    """
    check_scheme(scheme)
    if len(gold) != len(predicted):
        raise DataError(f"span_scores: gold has {len(gold):,} sentences, predicted {len(predicted):,}.")
    rows = enumerate(zip(gold, predicted, strict=True))
    pairs = [(place, true, tags) for place, (true, tags) in rows if true is not None]
    for place, true, tags in pairs:
        if len(true) != len(tags):
            raise DataError(
                f"span_scores: sentence {place} has {len(true)} tokens in gold and {len(tags)} in predicted."
            )
    lengths = np.array([len(true) for _, true, _ in pairs], np.int64)
    tag_set, sides = _codes([true for _, true, _ in pairs], [tags for _, _, tags in pairs], scheme, classes)
    firsts = np.zeros(int(lengths.sum()), bool)
    firsts[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    known, named = (tag_set.span_table(side, firsts) for side in sides)
    # a token begins at most one span, so a table by first token compares all spans at once
    ends = np.full(len(firsts), -1, np.int64)
    types = np.full(len(firsts), -1, np.int64)
    ends[known.starts], types[known.starts] = known.ends, known.types
    right = (ends[named.starts] == named.ends) & (types[named.starts] == named.types)
    count = len(tag_set.types)
    counts = [np.bincount(column, minlength=count) for column in (known.types, named.types, named.types[right])]
    of_type = {
        name: TypeScores(*(int(column[code]) for column in counts))
        for code, name in enumerate(tag_set.types)
        if counts[0][code] or counts[1][code]
    }
    return SpanScores(
        num_gold=len(known.starts),
        num_predicted=len(named.starts),
        num_correct=int(right.sum()),
        num_tokens=len(firsts),
        num_correct_tokens=int((sides[0] == sides[1]).sum()),
        types=of_type,
    )


def drawn_scores(gold: Sequence[Iterable[DrawnSpan] | None], predicted: Sequence[Iterable[DrawnSpan]]) -> TypeScores:
    """Scores spans as they were drawn, including nested ones and those in pieces.

    A span is right if its label and all its pieces are; duplicates count once.

    Args:
        gold: true spans of each of N sentences; None is a sentence whose truth is unknown, which is left out.
        predicted: predicted spans of each sentence.
    """
    sides = [({*true}, {*spans}) for true, spans in zip(gold, predicted, strict=True) if true is not None]
    counts = [(len(true), len(spans), len(true & spans)) for true, spans in sides]
    return TypeScores(*(sum(column) for column in zip((0, 0, 0), *counts, strict=True)))


def _codes(
    gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]], scheme: str, classes: Sequence[str] | None
) -> tuple[TagSet, list[NDArray[np.int64]]]:
    """Converts all tokens of both sides, concatenated, to codes of one set of tags."""
    if classes is None:
        tags = {tag for side in (gold, predicted) for sentence in side for tag in sentence}
        for tag in sorted(tags, key=str):
            if reason := tag_problem(tag, scheme):
                hint = " Pass classes= with codes." if not isinstance(tag, str) else ""
                raise DataError(f"span_scores: {tag!r} {reason}{hint}")
        tag_set = TagSet(allowed_tags({tag[2:] for tag in tags if tag != OUTSIDE}, scheme), scheme)
        return tag_set, [tag_set.codes(tag for sentence in side for tag in sentence) for side in (gold, predicted)]
    tag_set = TagSet([str(name) for name in classes], scheme)
    sides = []
    for name, side in (("gold", gold), ("predicted", predicted)):
        parts = [np.asarray(sentence) for sentence in side]
        codes = np.concatenate([part for part in parts if part.size] or [np.empty(0, np.int64)])
        if codes.dtype.kind not in "iu" or (codes < 0).any() or (codes >= len(tag_set.classes)).any():
            raise DataError(f"span_scores: {name} holds codes from 0 to {len(tag_set.classes) - 1}, and nothing else.")
        sides.append(codes.astype(np.int64))
    return tag_set, sides
