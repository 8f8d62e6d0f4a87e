"""Tags of tokens and the spans they represent: BIO (IOB2) and IOBES, by the rules of conlleval."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.checks.constraints import Choice
from crowdzoo.errors import SHOWN, BadRow, DataError

OUTSIDE = "O"
# scheme -> the letters of its tags, apart from O
SCHEMES = {"BIO": "BI", "IOBES": "BIES"}
READ_AS = {"BIO": "BIO", "IOBES": "IOBES", "BILOU": "IOBES"}  # scheme of a file -> scheme of its tags after reading
_OTHERS = dict.fromkeys("ES", "IOBES") | dict.fromkeys("LU", "BILOU")


class Span(NamedTuple):
    """Tokens that belong together.

    Attributes:
        type: such as "PER".
        start: the first token, from 0.
        end: the token after the last one.
    """

    type: str
    start: int
    end: int


def spans_of(tags: Sequence[str], scheme: str = "BIO") -> list[Span]:
    """Decodes tags into spans, by the rules of conlleval (Tjong Kim Sang and Buchholz, CoNLL-2000).

    A token continues the span of the previous token if its letter is I or E, the previous letter is B or I, and both
    have the same type. Every other tag except O begins a span. So tags that break the scheme represent spans as well:
    an I without a B begins one, and a B without an E is one.

    Args:
        tags: [T], "O", or a letter of the scheme, "-" and a type.
        scheme: "BIO" (B, I) or "IOBES" (B, I, E, S).

    Returns:
        Spans in the order of their tokens.

    Raises:
        DataError: a tag is not one of the scheme.
    """
    check_scheme(scheme)
    parsed = {OUTSIDE: (OUTSIDE, "")}
    spans: list[Span] = []
    start = 0
    before, type_before = OUTSIDE, ""
    for place, tag in enumerate(tags):
        if tag not in parsed:
            if reason := tag_problem(tag, scheme):
                raise DataError(f"{tag!r} {reason}")
            parsed[tag] = tag[0], tag[2:]
        letter, type_ = parsed[tag]
        if not (letter in "IE" and before in "BI" and type_ == type_before):
            if before != OUTSIDE:
                spans.append(Span(type_before, start, place))
            start = place
        before, type_before = letter, type_
    if before != OUTSIDE:
        spans.append(Span(type_before, start, len(tags)))
    return spans


def tags_of(spans: Iterable[tuple[str, int, int]], length: int, scheme: str = "BIO") -> list[str]:
    """Encodes the spans of a sentence as tags.

    Args:
        spans: (type, start, end), in any order, without overlaps.
        length: T, number of tokens of the sentence.
        scheme: "BIO" or "IOBES".

    Returns:
        [T] tags of the scheme, which `spans_of` decodes into the same spans.

    Raises:
        DataError: spans that are empty, overlap or exceed the sentence, or an invalid type.
    """
    check_scheme(scheme)
    tags = [OUTSIDE] * length
    last: tuple[str, int, int] | None = None
    for span in sorted(spans, key=lambda span: span[1:]):
        type_, start, end = span
        if reason := type_problem(type_):
            raise DataError(f"the type of span {tuple(span)} {reason}")
        if not 0 <= start < end <= length:
            raise DataError(f"span {tuple(span)} is empty or not within the sentence's {length} tokens.")
        if last is not None and start < last[2]:
            raise DataError(f"span {tuple(span)} overlaps span {tuple(last)}. A token has one tag: leave one span out.")
        last = span
        if scheme == "BIO":
            tags[start:end] = [f"B-{type_}", *[f"I-{type_}"] * (end - start - 1)]
        elif end - start == 1:
            tags[start] = f"S-{type_}"
        else:
            tags[start:end] = [f"B-{type_}", *[f"I-{type_}"] * (end - start - 2), f"E-{type_}"]
    return tags


def mended(tags: Sequence[str], scheme: str = "BIO") -> list[str]:
    """Repairs tags that break the scheme without changing their spans: in BIO, an I without a B before it becomes a B.

    Args:
        tags: [T].
        scheme: "BIO" or "IOBES".

    Returns:
        [T] tags, for which `spans_of` is the same.

    Raises:
        DataError: a tag is not one of the scheme.
    """
    return tags_of(spans_of(tags, scheme), len(tags), scheme)


def convert_tags(tags: Sequence[str], source: str, target: str) -> list[str]:
    """Converts tags to another scheme.

    Args:
        tags: [T], valid in the scheme `source`.
        source: "BIO" or "IOBES".
        target: "BIO" or "IOBES".

    Returns:
        [T] tags of the scheme `target`. Converting them back gives the original tags.

    Raises:
        DataError: tags that break `source`.
    """
    check_tags(tags, source)
    return tags_of(spans_of(tags, source), len(tags), target)


def check_tags(tags: Sequence[str], scheme: str = "BIO", name: str = "tags") -> None:
    """Raises an error for tags that break a scheme.

    Args:
        tags: [T].
        scheme: "BIO" or "IOBES".
        name: name of the tags, for the message.

    Raises:
        DataError: with the token (from 0), the tag and the error: a letter outside the scheme, an empty type, an I or E
            that continues no span, a span that does not end.
    """
    if problems := tag_problems(tags, scheme):
        rows = [BadRow(name, place, None, tags[place], reason) for place, reason in problems[:SHOWN]]
        summary = f"{name} break the scheme {scheme}; `mended` repairs what has the right letters."
        raise DataError(summary, rows, len(problems))


def tag_problems(tags: Sequence[str], scheme: str = "BIO") -> list[tuple[int, str]]:
    """Finds errors in tags: places (from 0) and reasons, each phrased to follow the tag in a message."""
    check_scheme(scheme)
    problems: list[tuple[int, str]] = []
    before, type_before, tag_before = OUTSIDE, "", ""
    closes = scheme == "IOBES"
    for place, tag in enumerate(tags):
        reason = tag_problem(tag, scheme)
        if reason:
            problems.append((place, reason))
            letter, type_ = OUTSIDE, ""  # what follows is checked as if this tag were O
        else:
            letter, type_ = (OUTSIDE, "") if tag == OUTSIDE else (tag[0], tag[2:])
        goes_on = letter != OUTSIDE and letter in "IE"
        joined = goes_on and before in "BI" and type_ == type_before
        if closes and before != OUTSIDE and before in "BI" and not joined and not reason:
            problems.append((place - 1, f"is not followed by I-{type_before} or E-{type_before}, so its span is open."))
        if goes_on and not joined:
            after = f"follows {tag_before!r}" if place else "is the first tag"
            ways = f"B-{type_}" if scheme == "BIO" else f"B-{type_} or S-{type_}"
            problems.append((place, f"{after}; a span of type {type_} begins with {ways}."))
        before, type_before, tag_before = letter, type_, tag
    if closes and before != OUTSIDE and before in "BI":
        problems.append((len(tags) - 1, f"is the last tag, so its span is open; end it with E-{type_before}."))
    return problems


def tag_problem(tag: object, scheme: str) -> str:
    """The error in a single tag, phrased to follow it in a message; "" if it is valid."""
    if tag == OUTSIDE:
        return ""
    letters = SCHEMES[scheme]
    forms = f"O{''.join(f', {letter}-TYPE' for letter in letters)}"
    if not isinstance(tag, str):
        return f"is not text; {scheme} has {forms}."
    letter, dash, type_ = tag[:1], tag[1:2], tag[2:]
    if letter in letters and letter and dash == "-":
        if not type_:
            return "has no type after the dash."
        reason = type_problem(type_)
        return f"has a type that {reason}" if reason else ""
    hint = ""
    if tag in ("o", "0"):
        hint = " Did you mean 'O'?"
    elif letter.upper() in letters and dash in ("-", "_") and type_:
        hint = f" Did you mean '{letter.upper()}-{type_}'?"
    elif letter in _OTHERS and dash == "-":
        hint = f" {letter}- belongs to the scheme {_OTHERS[letter]}."
    return f"is not a tag of {scheme}: {forms}.{hint}"


def type_problem(type_: object) -> str:
    """Why a type cannot be part of a tag, phrased to follow it in a message; "" if it can."""
    if not isinstance(type_, str):
        return "is not text."
    if not type_:
        return "is empty."
    if any(letter in " \t\r\n\0" for letter in type_):
        return "holds white space, which files of tags cannot."
    return ""


def check_scheme(scheme: object) -> None:
    """Raises an error for a scheme that is not one of `SCHEMES`."""
    Choice(SCHEMES).checked("", "scheme", scheme)


def allowed_tags(types: Iterable[str], scheme: str = "BIO") -> list[str]:
    """All tags of the types: "O" first, the others sorted by code point."""
    check_scheme(scheme)
    return [OUTSIDE, *sorted(f"{letter}-{type_}" for type_ in set(types) for letter in SCHEMES[scheme])]


# === Many sentences at once, as codes ===


@dataclass(frozen=True, eq=False)
class SpanTable:
    """Spans of many concatenated sentences.

    Attributes:
        types: codes of the spans' types, int64 [S].
        starts: first tokens, counted through all sentences, int64 [S], ascending.
        ends: tokens after the last ones, int64 [S].
    """

    types: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<SpanTable: {len(self.types):,} spans>"


class TagSet:
    """K classes that are tags of a scheme, for arithmetic on codes.

    Args:
        classes: names of the classes, [K], in any order: "O", and all tags of each type.
        scheme: "BIO" or "IOBES".

    Attributes:
        classes: the names as a list of strings.
        scheme: the scheme.
        types: names of the types, sorted.
        outside: code of "O".

    Raises:
        DataError: a class is not a tag, or one is missing.
    """

    def __init__(self, classes: Iterable[str], scheme: str = "BIO"):
        check_scheme(scheme)
        self.scheme = scheme
        self.classes: list[str] = list(classes)
        rows = [
            BadRow("classes", code, None, name, reason)
            for code, name in enumerate(self.classes)
            if (reason := tag_problem(name, scheme))
        ]
        if rows:
            raise DataError(f"The classes are not tags of the scheme {scheme}.", rows)
        self.types = sorted({name[2:] for name in self.classes if name != OUTSIDE})
        missing = [name for name in allowed_tags(self.types, scheme) if name not in set(self.classes)]
        if missing:
            raise DataError(
                f"The classes lack {', '.join(map(repr, missing[:SHOWN]))}. Each type has all its tags in {scheme}, "
                "and 'O' is one of the classes."
            )
        if len(set(self.classes)) < len(self.classes):
            raise DataError(f"The classes hold a tag twice: {self.classes}.")
        self.outside = self.classes.index(OUTSIDE)
        place = {name: code for code, name in enumerate(self.types)}
        self._letters = np.array([ord(name[0]) for name in self.classes], np.int64)
        self._types = np.array([-1 if name == OUTSIDE else place[name[2:]] for name in self.classes], np.int64)
        self._code = {name: code for code, name in enumerate(self.classes)}

    def codes(self, tags: Iterable[str]) -> NDArray[np.int64]:
        """Returns codes of tags, int64 [T]; KeyError for a tag that is not a class."""
        return np.array([self._code[tag] for tag in tags], np.int64)

    def tags(self, codes: ArrayLike) -> list[str]:
        """Returns the tags of codes [T]."""
        return [self.classes[code] for code in np.asarray(codes).tolist()]

    def follows(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Returns which tags may begin, follow another and end, in sequences that keep the scheme.

        Returns:
            Tags that may be first, bool [K]; that may follow, `[before, after]`, bool [K, K]; that may be last, bool
            [K].
        """
        goes_on = self._is("IE")
        opens = self._is("BI")
        joined = opens[:, None] & goes_on & (self._types[:, None] == self._types)
        after = np.where(goes_on, joined, True)
        last = np.ones(len(self.classes), bool)
        if self.scheme == "IOBES":
            after &= np.where(opens[:, None], joined, True)
            last = ~opens
        return ~goes_on, after, last

    def span_table(self, codes: NDArray[np.int64], firsts: NDArray[np.bool_]) -> SpanTable:
        """Decodes the tags of many sentences into spans, by the rules of `spans_of`.

        Args:
            codes: tag codes of all sentences, concatenated, [T]; -1 counts as outside.
            firsts: True for the first token of each sentence, bool [T].
        """
        inside = (codes >= 0) & (codes != self.outside)
        types = np.where(inside, self._types[codes], -1)
        joined = np.zeros(len(codes), bool)
        joined[1:] = (
            self._is("IE")[codes[1:]]
            & self._is("BI")[codes[:-1]]
            & (types[1:] == types[:-1])
            & inside[1:]
            & inside[:-1]
            & ~firsts[1:]
        )
        starts = np.flatnonzero(inside & ~joined)
        last = inside.copy()
        last[:-1] &= ~joined[1:]
        return SpanTable(types[starts], starts, np.flatnonzero(last) + 1)

    def codes_of(self, spans: SpanTable, length: int) -> NDArray[np.int64]:
        """Encodes spans that do not overlap as tag codes [length]."""
        lengths = spans.ends - spans.starts
        tokens = np.repeat(spans.starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        of_types = {letter: self.codes(f"{letter}-{name}" for name in self.types) for letter in SCHEMES[self.scheme]}
        codes = np.full(length, self.outside, np.int64)
        codes[tokens] = of_types["I"][np.repeat(spans.types, lengths)]
        if self.scheme == "IOBES":
            codes[spans.ends - 1] = of_types["E"][spans.types]
        codes[spans.starts] = of_types["B"][spans.types]
        if self.scheme == "IOBES":
            single = lengths == 1
            codes[spans.starts[single]] = of_types["S"][spans.types[single]]
        return codes

    def _is(self, letters: str) -> NDArray[np.bool_]:
        return np.isin(self._letters, [ord(letter) for letter in letters])
