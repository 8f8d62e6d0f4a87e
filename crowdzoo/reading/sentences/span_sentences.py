"""A sentence of a file of spans: its tokens and where they begin and end, and what is wrong with a value of a line."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.drawn_spans import DrawnSpan
from crowdzoo.data.tokens import token_edges
from crowdzoo.errors import Setting, did_you_mean, shorten
from crowdzoo.files.text import is_text, shown


@dataclass
class Sentence:
    """What the first line of a task said."""

    code: int
    line: int
    text: str | None
    tokens: list[str]
    offsets: NDArray[np.int64] | None
    given: list[str] | None  # tokens as they stood in the file
    lines: dict[str, int] = field(default_factory=dict)  # annotator -> line
    gold: list[DrawnSpan] | None = None

    def __post_init__(self) -> None:
        edges = token_edges(len(self.tokens)) if self.offsets is None else self.offsets
        # the first character (or token) of each token -> its number, and the one after the last
        self.first, self.last = ({place: token for token, place in enumerate(side)} for side in edges.T.tolist())

    def check_ends(self, key: str, start: int, end: int) -> None:
        """Refuses a span that is empty or goes beyond the sentence."""
        size, unit = len(self.tokens), "tokens"
        if self.text is not None:
            size, unit = len(self.text), "characters"
        if not 0 <= start < end <= size:
            name, value = ("end", end) if 0 <= start < size else ("start", start)
            what = "is not after the start" if 0 <= start < size and end <= start else "is outside the sentence"
            raise LineError(
                f"{key}.{name}",
                value,
                f"{what}: start < end, and there are {size} {unit}, from 0. Correct it, or leave the span out.",
            )

    def off_edge(self, name: str, value: int) -> str:
        """Which token an offset cuts, or what it should be."""
        assert self.offsets is not None
        for (start, end), token in zip(self.offsets.tolist(), self.tokens, strict=True):
            if start < value < end:
                where = f"inside the token {token!r} (characters {start} to {end})"
                fix = f"set {Setting('on_bad_tags', 'mend')} to mark the whole token"
                return f"is {where}. Move it to the token's edge, or {fix}."
        side, where = (0, "begins") if name == "start" else (1, "ends")
        nearest = self.offsets[np.abs(self.offsets[:, side] - value).argmin(), side]
        return f"is not a place where a token {where}. Did you mean {nearest}?"


class LineError(Exception):
    """A bad value of a line: its key or None, the value, and the reason."""

    def __init__(self, key: str | None, value: Any, reason: str):
        super().__init__(key, shown(value), reason)


def check_keys(row: dict[str, Any], known: Sequence[str], before: str = "") -> None:
    """Refuses an object with a key that nobody knows."""
    for key in row:
        if key not in known:
            reason = f"stands under an unknown key; there are {', '.join(known)}.{did_you_mean(key, known)}"
            raise LineError(f"{before}{key}", row[key], reason)


def aligned(text: str, tokens: Sequence[str]) -> NDArray[np.int64] | str:
    """Where tokens stand in a text, int64 [T, 2], or what is wrong as the end of a sentence."""
    offsets = []
    place = 0
    for number, token in enumerate(tokens):
        while place < len(text) and text[place].isspace():
            place += 1
        if not text.startswith(token, place):
            return f"do not stand in the text: token {number}, {token!r}, is not at character {place}."
        offsets.append((place, place + len(token)))
        place += len(token)
    if text[place:].strip():
        return f"do not cover the text, which goes on with {shorten(text[place:].strip())!r}."
    return np.array(offsets, np.int64).reshape(-1, 2)


def is_token(token: Any) -> bool:
    """Whether a value can be a token: a string with something to see in it."""
    return isinstance(token, str) and bool(token.strip()) and is_text(token)
