"""Abstracts without words and with long spans, whose annotators agree on spans more than on their edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.crowd_sequences import CrowdSequences, sentence_annotations
from crowdzoo.data.tags import TagSet, allowed_tags

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


def generated_abstracts(num_documents, num_annotators):
    """Documents with long spans that annotators find hard to delimit, as the abstracts of medical trials are.

    A document has 100 to 300 tokens without words and about 2.5 spans of 5 to 40 tokens, most in its first half. Five
    or six annotators mark it, drawn by their activity, which is uneven. They miss spans, often the same
    ones; mark the same decoys; set edges too far in or out, each by a habit, or mark the core of a span only; mark two
    pieces of one; and now and then mark nothing.
    """
    rng, crowd_rng, types = np.random.default_rng([0, 0]), np.random.default_rng([0, 1]), ("PARTICIPANTS",)
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
        tokens.append(["word"] * length)
        gold.append(place[_codes(spans, length)])
        many = int(rng.integers(5, 7))
        for annotator in sorted(rng.choice(num_annotators, many, replace=False, p=activity).tolist()):
            marks = _marks(crowd[annotator], seen, length, len(types), rng)
            rows.append((task, annotator, place[_codes(marks, length)]))
    annotations = sentence_annotations(rows, np.arange(num_documents), np.arange(num_annotators), tag_set.classes)
    return CrowdSequences(tokens, annotations, gold)
