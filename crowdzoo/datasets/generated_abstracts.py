"""Abstracts of made-up words with long spans, and annotators who agree that there is a span more than where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.sentence_annotations import sentence_annotations
from crowdzoo.data.tags import TagSet, allowed_tags
from crowdzoo.errors import ConfigError

__all__ = ["generated_abstracts"]

# === Text: kinds of words that follow each other, and how many words there are of each ===

FUNCTION, ADJECTIVE, NOUN, VERB, NUMBER, MARK = range(6)
PREFIXES = ("f", "a", "n", "v", "", "m")
SIZES = (60, 1500, 4000, 800, 300, 4)
FOLLOWS = np.array(
    [  # kind of the word before, kind of the word
        [0.15, 0.30, 0.40, 0.05, 0.10, 0.00],
        [0.05, 0.15, 0.75, 0.00, 0.00, 0.05],
        [0.40, 0.00, 0.20, 0.22, 0.03, 0.15],
        [0.50, 0.20, 0.15, 0.05, 0.05, 0.05],
        [0.15, 0.15, 0.55, 0.00, 0.05, 0.10],
        [0.50, 0.10, 0.15, 0.15, 0.10, 0.00],
    ]
)
TOPICS, TOPIC_WORDS, TOPIC_SHARE = 40, 100, 0.3
SECTIONS, SECTION_WORDS, SECTION_SHARE = (0.2, 0.5, 0.85), 150, 0.3
LEXICON, LEXICON_INSIDE, LEXICON_OUTSIDE = 150, 0.5, 0.03  # share of the nouns that are of a type's own words
SPANS_PER_DOCUMENT = 2.5  # of each type
LENGTHS = (5, 40)  # of a span, in tokens
DECOYS = 3.0  # of each type, a document
DOCUMENT = (100, 300)  # tokens


@dataclass(frozen=True)
class _Annotator:
    """How somebody errs.

    Attributes:
        idle: chance of marking nothing in a document.
        miss: chance of passing over a span.
        exact: chance of each edge being right.
        grow: expected tokens that a wrong edge is too far out, as a share of the span; negative is too far in.
        split: chance of marking two pieces with a gap.
        invents: expected spans that are none, for each document.
        wrong_type: chance of another type.
        short: chance of marking the core of a span only.
    """

    idle: float
    miss: float
    exact: float
    grow: float
    split: float
    invents: float
    wrong_type: float
    short: float


def _annotator(rng: np.random.Generator) -> _Annotator:
    return _Annotator(
        idle=rng.beta(1, 15),
        miss=rng.beta(1, 5),
        exact=rng.beta(8, 2),
        grow=rng.normal(-0.1, 0.4),
        split=rng.beta(1, 15),
        invents=rng.gamma(1.0, 0.4),
        wrong_type=rng.beta(1, 9),
        short=rng.beta(1, 5),
    )


class _Marked(NamedTuple):
    """What annotators may mark, a span or a decoy, and how likely each is to pass over it."""

    type_: int
    start: int
    end: int
    core_start: int
    core_end: int
    hard: float


def _marks(
    who: _Annotator, spans: Sequence[_Marked], length: int, num_types: int, rng: np.random.Generator
) -> list[tuple[int, int, int]]:
    """Type, start and end of what an annotator marks; nothing overlaps."""
    if rng.random() < who.idle:
        return []
    found: list[tuple[int, int, int]] = []
    for type_, start, end, core_start, core_end, hard in spans:
        # a decoy draws those who mark much
        if rng.random() < 1 - (1 - who.miss) * (1 - hard):
            continue
        if rng.random() < who.short:
            start, end = core_start, core_end
        if num_types > 1 and rng.random() < who.wrong_type:
            type_ = (type_ + int(rng.integers(1, num_types))) % num_types
        size = end - start
        edges = []
        for way in (-1, 1):
            out = 0 if rng.random() < who.exact else round(size * rng.normal(who.grow, 0.3))
            edges.append(way * out)
        start, end = max(0, start + edges[0]), min(length, end + edges[1])
        if end <= start:
            continue
        if end - start > 4 and rng.random() < who.split:
            middle = int(rng.integers(start + 1, end - 2))
            found += [(type_, start, middle), (type_, middle + int(rng.integers(1, 3)), end)]
        else:
            found.append((type_, start, end))
    for _ in range(rng.poisson(who.invents)):
        start = int(rng.integers(length))
        found.append((int(rng.integers(num_types)), start, min(length, start + int(rng.integers(2, 15)))))
    kept: list[tuple[int, int, int]] = []
    for each in found:
        if all(each[2] <= other[1] or other[2] <= each[1] for other in kept):
            kept.append(each)
    return kept


def _codes(spans: Sequence[tuple[int, int, int]], length: int) -> NDArray[np.int64]:
    """O is 0, B of type i is 1 + 2 i, its I one more."""
    codes = np.zeros(length, np.int64)
    for type_, start, end in spans:
        codes[start:end] = 2 + 2 * type_
        codes[start] -= 1
    return codes


def _ranks(count: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Words by Zipf's law, 0 is the most frequent."""
    shares = np.cumsum(1 / np.arange(1, size + 1))
    return np.searchsorted(shares, rng.random(count) * shares[-1]).astype(np.int64)


def _text(length: int, spans: Sequence[tuple[int, int, int]], topic: int, rng: np.random.Generator) -> list[str]:
    kinds = np.empty(length, np.int64)
    chances = np.cumsum(FOLLOWS, axis=1)
    before = MARK
    for place, draw in enumerate(rng.random(length).tolist()):
        before = kinds[place] = min(int(np.searchsorted(chances[before], draw)), MARK)
    words = np.empty(length, object)
    inside = np.full(length, -1)
    for type_, start, end in spans:
        inside[start:end] = type_
    for kind, prefix in enumerate(PREFIXES):
        places = np.flatnonzero(kinds == kind)
        ranks = _ranks(len(places), SIZES[kind], rng)
        words[places] = [f"{prefix}{rank}" for rank in ranks.tolist()]
    # title and aim, methods, results, conclusion: each with words of its own, results with many numbers
    section = np.searchsorted(length * np.array(SECTIONS), np.arange(length), side="right")
    content = np.flatnonzero(kinds != FUNCTION)
    draws = rng.random(len(content))
    own = content[draws < SECTION_SHARE]
    ranks = _ranks(len(own), SECTION_WORDS, rng).tolist()
    words[own] = [f"x{part}.{rank}" for part, rank in zip(section[own].tolist(), ranks, strict=True)]
    own = content[(draws >= SECTION_SHARE) & (draws < SECTION_SHARE + TOPIC_SHARE)]
    words[own] = [f"t{topic}.{rank}" for rank in _ranks(len(own), TOPIC_WORDS, rng).tolist()]
    nouns = np.flatnonzero(kinds == NOUN)
    typed = nouns[rng.random(len(nouns)) < np.where(inside[nouns] >= 0, LEXICON_INSIDE, LEXICON_OUTSIDE)]
    types = np.maximum(inside[typed], 0).tolist()
    words[typed] = [f"s{t}.{rank}" for t, rank in zip(types, _ranks(len(typed), LEXICON, rng).tolist(), strict=True)]
    return words.tolist()


@checked(num_documents=Number(1, whole=True), num_annotators=Number(6, whole=True))
def generated_abstracts(
    num_documents: int = 500,
    num_annotators: int = 150,
    *,
    types: Sequence[str] = ("PARTICIPANTS",),
    seed: int = 0,
) -> CrowdSequences:
    """Documents with long spans that annotators find hard to delimit, as the abstracts of medical trials are.

    A document has 100 to 300 made-up words (by Zipf's law; some are of its topic, its sections and the spans' types)
    and about 2.5 spans a type of 5 to 40 tokens, most in its first half. Five or six annotators mark it, drawn by their
    activity, which is uneven. They miss spans, all of them more often the same ones; mark the same decoys; set edges
    too far in or out, each by a habit, or mark the core of a span only; mark two pieces of one; and now and then mark
    nothing.

    Args:
        num_documents: N, at least 1.
        num_annotators: R, at least 6.
        types: types of the spans; annotators also take one for another.
        seed: seed of all draws.

    Returns:
        Documents 0 ... N-1 with tokens, gold, and answers of annotators 0 ... R-1 in BIO.

    Raises:
        ConfigError: impossible sizes, or no types.
    """
    if not types:
        raise ConfigError("generated_abstracts: types must name at least one type, got none")
    rng = np.random.default_rng([seed, 0])
    crowd_rng, text_rng = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    crowd = [_annotator(crowd_rng) for _ in range(num_annotators)]
    activity = crowd_rng.lognormal(0.0, 1.5, num_annotators)
    activity /= activity.sum()
    tag_set = TagSet(allowed_tags(types))
    order = {name: code for code, name in enumerate(tag_set.classes)}
    place = np.array([0] + [order[f"{letter}-{type_}"] for type_ in types for letter in "BI"])
    tokens, gold, rows = [], [], []
    for task in range(num_documents):
        length = int(rng.integers(*DOCUMENT))
        spans: list[tuple[int, int, int]] = []
        for _ in range(1 + rng.poisson(SPANS_PER_DOCUMENT * len(types) - 1)):
            size = int(np.clip(rng.lognormal(2.4, 0.6), *LENGTHS))
            # most stand in the first half
            start = int(length * rng.beta(1.2, 2.0))
            end = start + size
            if end <= length and all(end < other[1] or other[2] < start for other in spans):
                spans.append((int(rng.integers(len(types))), start, end))
        spans.sort(key=lambda each: each[1])
        seen: list[_Marked] = []
        for type_, start, end in spans:
            size = end - start
            core = min(size, int(rng.integers(2, 6)))
            core_start = start + int(rng.integers(0, size - core + 1)) // 2
            seen.append(_Marked(type_, start, end, core_start, core_start + core, rng.beta(1, 10)))
        for _ in range(rng.poisson(DECOYS * len(types))):
            start = int(rng.integers(length - 4))
            end = start + int(rng.integers(1, 5))
            if all(end < other.start or other.end < start for other in seen):
                seen.append(_Marked(int(rng.integers(len(types))), start, end, start, end, rng.beta(4, 2)))
        tokens.append(_text(length, spans, int(text_rng.integers(TOPICS)), text_rng))
        gold.append(place[_codes(spans, length)])
        many = int(rng.integers(5, 7))
        for annotator in sorted(rng.choice(num_annotators, many, replace=False, p=activity).tolist()):
            marks = _marks(crowd[annotator], seen, length, len(types), rng)
            rows.append((task, annotator, place[_codes(marks, length)]))
    annotations = sentence_annotations(rows, np.arange(num_documents), np.arange(num_annotators), tag_set.classes)
    return CrowdSequences(tokens, annotations, gold)
