"""Invitations, reports and notes made up from templates, with named entities and annotators who err."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.data.crowd_sequences import CrowdSequences, sentence_annotations
from crowdzoo.data.tags import TagSet, allowed_tags, tags_of
from crowdzoo.data.tokens import split_tokens

TYPES = ("DATE", "LOC", "ORG", "PER")

# === What sentences are made of; all of it was written for this file ===


def _names(text: str) -> list[str]:
    """Words of a list; _ stands for a space within one."""
    return [name.replace("_", " ") for name in text.split()]


GIVEN = _names(
    "Anna Bruno Carla Dario Elif Farid Greta Hugo Ines Jakob Kofi Lena Marek Nadia Oskar Priya Rosa Samir Tilda Yusuf "
    "Zoë José Łukasz Aïcha Søren"
)
# given names that are places or months elsewhere: only the sentence tells
GIVEN_OR_PLACE = _names("Paris Florence Jordan Sydney Chelsea Austin Victoria Georgia Lincoln Brooklyn")
GIVEN_OR_MONTH = _names("April May June August")
FAMILY = _names(
    "Abara Bell Castillo Dupont Eriksen Fischer Gallo Hartley Ivanova Jansen Kowalski Lindqvist Moreau Novak Okafor "
    "Petrov Quinn Rossi Sato Tanaka Ueda Vargas Weber Yilmaz Zhang O'Neill"
)
PLACES = _names(
    "Lisbon Oslo Nairobi Kyoto Lima Dublin Krakow Tunis Bergen Porto Leeds Ghent Malmö São_Paulo New_Ashford "
    "Lake_Orrin Port_Vellan Upper_Marsh San_Telmo Stratton-on-Sea"
)
FIRMS = _names("Northwind Lumora Blue_Kettle Halden Tessera Quillwort Orbis Marlowe")
LEGAL = ["Ltd.", "Inc.", "Group", "Foundation", "Press"]
MONTHS = _names("January February March April May June July August September October November December")
DAYS = _names("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")

TEMPLATES = (
    "Dear {PER}, the dinner with {ORG} is on {DATE} in {LOC}.",
    "Hi {FIRST}! Can you come to {LOC} on {DATE}?",
    "{FULL} of {ORG} will speak in {LOC} on {DATE}.",
    "{TEAM} beat {TEAM} 3-1 in {LOC}.",
    "{TEAM} signed {FULL} from {TEAM}, the club said on {DAY}.",
    "Fans of {TEAM} travelled to {LOC} by train.",
    "{ORG} opens an office in {LOC} (its second after {LOC}).",
    "We met {FIRST} and {FIRST} near the station in {LOC}.",
    "{FIRST} told {FULL}: \"I will be in {LOC} until {DATE}.\"",
    "The flight from {LOC} to {LOC} leaves on {DATE} at 9:40.",
    "{DATE} is too late for {FIRST}, so we asked {ORG}.",
    "Please send the invoice to {ORG}, {LOC}, before {DATE}.",
    "After years in {LOC}, {FULL} moved to {LOC} with {FIRST}.",
    "{ORG} and {ORG} agreed on a price; shares rose 4% in {LOC}.",
    "No one at {ORG} knew {FULL}.",
    "Thanks, {FIRST} \N{PARTY POPPER} See you on {DAY}!",
    "The meeting is cancelled.",
    "Minutes of {DATE}: {FIRST} (chair), {FULL}, {FULL}.",
    "It rained in {LOC} for the whole of {MONTH}.",
    "In {MONTH}, {FIRST} leaves {ORG}.",
    "Is {FIRST} still with {ORG} in {LOC}?",
    "{LOC}, {DATE} - {ORG} named {FULL} as its director.",
    "Bring your own cups, said {FIRST}; the kitchen at {ORG} has none.",
    "A letter by {FULL} was found in {LOC} last {MONTH}.",
)  # fmt: skip


# slot -> words or forms that stand in it, all equally likely; or upper ends of a draw from 0 to 1 -> such words
SLOTS: dict[str, Sequence[str] | dict[float, Sequence[str]]] = {
    "FIRST": {0.6: GIVEN, 0.85: GIVEN_OR_PLACE, 1: GIVEN_OR_MONTH},
    "FAMILY": FAMILY,
    "FULL": ["{FIRST} {FAMILY}"],
    "PER": {0.4: ["{FULL}"], 1: ["{FIRST}"]},
    "LOC": {0.6: PLACES, 1: GIVEN_OR_PLACE},
    "TEAM": {0.3: ["{LOC} United"], 1: ["{LOC}"]},
    "FIRM": FIRMS,
    "LEGAL": LEGAL,
    "ORG": [
        "{FIRM}", "{FIRM} {LEGAL}", "{FAMILY} & Sons", "{FAMILY}, {FAMILY} & Co.", "University of {LOC}",
        "Bank of {LOC}", "{LOC} {LEGAL}",
    ],
    "DAY": DAYS,
    "MONTH": MONTHS,
    "MONTH_NUMBER": [f"{number:02}" for number in range(1, 13)],
}  # fmt: skip
TYPE_OF = {
    "PER": "PER", "FIRST": "PER", "FULL": "PER", "LOC": "LOC", "ORG": "ORG", "TEAM": "ORG",
    "DATE": "DATE", "DAY": "DATE", "MONTH": "DATE",
}  # fmt: skip


def _one(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]


def _word(slot: str, rng: np.random.Generator) -> str:
    """What stands in a slot."""
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
        words = SLOTS[slot]
    if isinstance(words, dict):
        draw = rng.random()
        words = next(words[end] for end in words if draw < end)
    return re.sub(r"\{(\w+)\}", lambda inner: _word(inner[1], rng), _one(words, rng))


def _sentence(rng: np.random.Generator) -> tuple[str, list[tuple[str, int, int]]]:
    """A text and its entities: type, first character and the one after the last."""
    text, spans = "", []
    for literal, slot in re.findall(r"([^{]*)(?:\{(\w+)\})?", _one(TEMPLATES, rng)):
        text += literal
        if slot:
            word = _word(slot, rng)
            spans.append((TYPE_OF[slot], len(text), len(text) + len(word)))
            text += word
    # "Ltd." at the end of a sentence needs no second full stop
    return text[:-1] if text.endswith("..") else text, spans


# === Those who mark them ===


@dataclass(frozen=True, eq=False)
class _Annotator:
    """How somebody errs.

    Attributes:
        miss: chance of passing over an entity of each type, [4].
        wrong_type: chance of a type that is not the true one.
        instead: which one that is, for each type, int [4].
        wrong_edge: chance of one token too few or too many at one end.
        invents: chance of an entity, in a sentence, where there is none.
        spams: marks whatever comes, without reading.
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
        """The spans (type, start, end) that the annotator marks in a sentence of so many tokens."""
        if self.spams:
            return _random_spans(int(rng.integers(0, 3)), [], length, rng)
        found: list[tuple[int, int, int]] = []
        for number, (type_, start, end) in enumerate(spans):
            if rng.random() < self.miss[type_]:
                continue
            if rng.random() < self.wrong_type:
                type_ = int(self.instead[type_])
            if rng.random() < self.wrong_edge:
                before = max([0, *(each[2] for each in spans[:number]), *(each[2] for each in found)])
                after = spans[number + 1][1] if number + 1 < len(spans) else length
                ways = [(start - 1, end)] * (start > before) + [(start, end + 1)] * (end < after)
                if end - start > 1:
                    ways += [(start + 1, end), (start, end - 1)]
                if ways:
                    start, end = ways[int(rng.integers(len(ways)))]
            found.append((type_, start, end))
        if rng.random() < self.invents:
            found += _random_spans(1, found, length, rng)
        return found


def _random_spans(
    count: int, taken: list[tuple[int, int, int]], length: int, rng: np.random.Generator
) -> list[tuple[int, int, int]]:
    """Up to `count` spans of one or two tokens that overlap nothing."""
    found: list[tuple[int, int, int]] = []
    for _ in range(count):
        start = int(rng.integers(length))
        end = min(length, start + int(rng.integers(1, 3)))
        if all(end <= each[1] or each[2] <= start for each in (*taken, *found)):
            found.append((int(rng.integers(len(TYPES))), start, end))
    return found


# miss, wrong type, wrong edge, invents
_KINDS = {"careful": (0.05, 0.03, 0.05, 0.02), "average": (0.2, 0.1, 0.12, 0.05), "hasty": (0.45, 0.15, 0.2, 0.08)}
_CROWD = ("average", "careful", "hasty", "average", "hasty", "careful", "average", "hasty", "average", "spammer")


def _annotator(kind: str, rng: np.random.Generator) -> _Annotator:
    spams = kind == "spammer"
    miss, wrong_type, wrong_edge, invents = _KINDS["average" if spams else kind]
    # each has types that are missed more and less often, and one mistake for each type
    misses = np.clip(miss * rng.uniform(0.4, 1.6, len(TYPES)), 0, 0.9)
    instead = (np.arange(len(TYPES)) + rng.integers(1, len(TYPES), len(TYPES))) % len(TYPES)
    return _Annotator(misses, wrong_type, instead, wrong_edge, invents, spams)


@checked(num_sentences=Number(1, whole=True), num_annotators=Number(1, whole=True))
def generated_ner(
    num_sentences: int = 800, num_annotators: int = 20, *, redundancy: int = 4, seed: int = 0
) -> CrowdSequences:
    """Sentences with people, places, organisations and dates, and annotators who err in whole spans.

    Texts are drawn from templates and lists of this file, so anybody may have them. Some names need their sentence:
    Florence and Jordan are people or places, Lisbon is a city or a football team, May is a month or a guest.

    Of ten annotators two are careful, four average, three hasty and one marks tokens at random. They miss entities
    (each misses some types more than others), take one type for another (each has a habit), set an edge a token off, or
    mark what is none.

    Args:
        num_sentences: N, at least 1; no two have the same text.
        num_annotators: R, at least 1.
        redundancy: number of annotators, drawn at random, who mark each sentence, 0 to R.
        seed: seed of all draws. The first sentences of a longer set are those of a shorter one.

    Returns:
        Sentences 0 ... N-1 with texts, tokens as `split_tokens` cuts them, offsets, gold, and answers of annotators
        0 ... R-1 in BIO; types DATE, LOC, ORG, PER.

    Raises:
        ConfigError: impossible sizes.
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
