"""Generated invitations, reports and notes with named entities, and annotators who make errors."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.crowd_sequences import CrowdSequences, sentence_annotations
from crowdzoo.data.tags import TagSet, allowed_tags, tags_of
from crowdzoo.data.tokens import split_tokens

TYPES = ("DATE", "LOC", "ORG", "PER")

# Parts of sentences: lists of words; slots, with equally likely words or forms, or upper ends of a draw from 0 to 1 ->
# such words, or the name of a list; the type of a slot; and sentences with slots
_PARTS = json.loads(resources.files("crowdzoo.datasets").joinpath("generated_ner.json").read_text("utf-8"))
WORDS: dict[str, list[str]] = _PARTS["words"]


def _one(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]


def _word(slot: str, rng: np.random.Generator) -> str:
    """A random word for a slot."""
    if slot == "DATE":
        day, year = int(rng.integers(1, 29)), int(rng.integers(2019, 2027))
        words: Any = [
            "{DAY}",
            f"{day} {{MONTH}}",
            f"{{MONTH}} {day}, {year}",
            f"{day:02}/{{MONTH_NUMBER}}/{year}",
            f"{{DAY}}, {day} {{MONTH}}",
        ]
    else:
        words = _PARTS["slots"][slot]
    if isinstance(words, dict):
        draw = rng.random()
        words = next(words[end] for end in words if draw < float(end))
    if isinstance(words, str):
        words = WORDS[words]
    return re.sub(r"\{(\w+)\}", lambda inner: _word(inner[1], rng), _one(words, rng))


def _sentence(rng: np.random.Generator) -> tuple[str, list[tuple[str, int, int]]]:
    """A text and its entities: type, first character and the one after the last."""
    text, spans = "", []
    for literal, slot in re.findall(r"([^{]*)(?:\{(\w+)\})?", _one(_PARTS["templates"], rng)):
        text += literal
        if slot:
            word = _word(slot, rng)
            spans.append((_PARTS["types"][slot], len(text), len(text) + len(word)))
            text += word
    # "Ltd." at the end of a sentence needs no second full stop
    return text[:-1] if text.endswith("..") else text, spans


# === Annotators ===


@dataclass(frozen=True, eq=False)
class _Annotator:
    """Error rates of an annotator.

    Attributes:
        miss: probability of missing an entity of each type, [4].
        wrong_type: probability of a wrong type.
        instead: the wrong type for each type, int [4].
        wrong_edge: probability of one token too few or too many at one end.
        invents: probability that a sentence gets a false entity.
        spams: whether the annotator marks tokens at random.
    """

    miss: NDArray[np.float64]
    wrong_type: float
    instead: NDArray[np.int64]
    wrong_edge: float
    invents: float
    spams: bool = False

    def marks(
        self, spans: list[tuple[int, int, int]], length: int, rng: np.random.Generator
    ) -> list[tuple[int, int, int]]:
        """The spans (type, start, end) that the annotator marks in a sentence of `length` tokens."""
        if self.spams:
            return _random_spans(int(rng.integers(0, 3)), [], length, rng)
        marks: list[tuple[int, int, int]] = []
        for number, (type_, start, end) in enumerate(spans):
            if rng.random() < self.miss[type_]:
                continue
            if rng.random() < self.wrong_type:
                type_ = int(self.instead[type_])
            if rng.random() < self.wrong_edge:
                before = max([0, *(span[2] for span in spans[:number]), *(span[2] for span in marks)])
                after = spans[number + 1][1] if number + 1 < len(spans) else length
                ways = [(start - 1, end)] * (start > before) + [(start, end + 1)] * (end < after)
                if end - start > 1:
                    ways += [(start + 1, end), (start, end - 1)]
                if ways:
                    start, end = ways[int(rng.integers(len(ways)))]
            marks.append((type_, start, end))
        if rng.random() < self.invents:
            marks += _random_spans(1, marks, length, rng)
        return marks


def _random_spans(
    count: int, occupied: list[tuple[int, int, int]], length: int, rng: np.random.Generator
) -> list[tuple[int, int, int]]:
    """Draws up to `count` spans of one or two tokens that do not overlap others."""
    spans: list[tuple[int, int, int]] = []
    for _ in range(count):
        start = int(rng.integers(length))
        end = min(length, start + int(rng.integers(1, 3)))
        if all(end <= span[1] or span[2] <= start for span in (*occupied, *spans)):
            spans.append((int(rng.integers(len(TYPES))), start, end))
    return spans


# miss, wrong type, wrong edge, invents
_KINDS = {"careful": (0.05, 0.03, 0.05, 0.02), "average": (0.2, 0.1, 0.12, 0.05), "hasty": (0.45, 0.15, 0.2, 0.08)}
_CROWD = ("average", "careful", "hasty", "average", "hasty", "careful", "average", "hasty", "average", "spammer")


def _annotator(kind: str, rng: np.random.Generator) -> _Annotator:
    spams = kind == "spammer"
    miss, wrong_type, wrong_edge, invents = _KINDS["average" if spams else kind]
    # each annotator misses some types more often than others, and confuses each type with one other
    misses = np.clip(miss * rng.uniform(0.4, 1.6, len(TYPES)), 0, 0.9)
    instead = (np.arange(len(TYPES)) + rng.integers(1, len(TYPES), len(TYPES))) % len(TYPES)
    return _Annotator(misses, wrong_type, instead, wrong_edge, invents, spams)


@checked(num_sentences=Number(1, whole=True), num_annotators=Number(1, whole=True))
def generated_ner(
    num_sentences: int = 800, num_annotators: int = 20, *, redundancy: int = 4, seed: int = 0
) -> CrowdSequences:
    """Generates sentences with people, places, organisations and dates, and annotators who make errors in spans.

    Texts are drawn from this project's templates and lists, so they are free to use. Some names are ambiguous without
    their sentence: Florence and Jordan are people or places, Lisbon is a city or a football team, May is a month or a
    guest.

    Of ten annotators two are careful, four average, three hasty and one marks tokens at random. They miss entities
    (each misses some types more than others), confuse types (each in its own way), put an edge one token off, or mark
    something that is not an entity.

    Args:
        num_sentences: N, at least 1; no two have the same text.
        num_annotators: R, at least 1.
        redundancy: number of randomly drawn annotators per sentence, 0 to R.
        seed: seed of all draws. The first sentences of a longer set are those of a shorter one.

    Returns:
        Sentences 0 ... N-1 with texts, tokens as `split_tokens` cuts them, offsets, gold, and answers of annotators
        0 ... R-1 in BIO; types DATE, LOC, ORG, PER.

    Raises:
        ConfigError: invalid sizes.
    """
    Number(0, num_annotators, whole=True).checked("generated_ner", "redundancy", redundancy)
    text_rng = np.random.default_rng([seed, 0])
    crowd_rng, rng = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    crowd = [_annotator(_CROWD[number % len(_CROWD)], crowd_rng) for number in range(num_annotators)]
    tag_set = TagSet(allowed_tags(TYPES))
    texts: dict[str, list[tuple[str, int, int]]] = {}
    while len(texts) < num_sentences:
        text, entities = _sentence(text_rng)
        texts.setdefault(text, entities)
    tokens, offsets, gold = [], [], []
    rows: list[tuple[int, int, NDArray[np.int64]]] = []

    def codes(spans: list[tuple[int, int, int]], length: int) -> NDArray[np.int64]:
        return tag_set.codes(tags_of([(TYPES[type_], start, end) for type_, start, end in spans], length))

    for task, (text, entities) in enumerate(texts.items()):
        words, places = split_tokens(text)
        begins, ends = places.T.tolist()
        spans = [(TYPES.index(type_), begins.index(start), ends.index(end) + 1) for type_, start, end in entities]
        tokens.append(words)
        offsets.append(places)
        gold.append(codes(spans, len(words)))
        for annotator in sorted(rng.permutation(num_annotators)[:redundancy].tolist()):
            rows.append((task, annotator, codes(crowd[annotator].marks(spans, len(words), rng), len(words))))
    annotations = sentence_annotations(rows, np.arange(num_sentences), np.arange(num_annotators), tag_set.classes)
    return CrowdSequences(tokens, annotations, gold, list(texts), offsets)
