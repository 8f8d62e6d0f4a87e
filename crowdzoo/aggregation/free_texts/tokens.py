"""Tokens: texts as codes of words or characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# How texts are compared -> without case, without punctuation; blanks never count
NORMALIZATIONS = {"blanks": (False, False), "case": (True, False), "punctuation": (False, True), "words": (True, True)}
UNITS = {"words": " ", "characters": ""}  # what a text is made of -> what stands between two of them
_QUOTES = re.compile(r"(?<!\w)'|'(?!\w)")


class _Marks(dict[int, int]):
    """Code of a character -> what it becomes: punctuation and symbols a blank, a curved apostrophe a straight one."""

    def __missing__(self, code: int) -> int:
        apostrophe, mark = code in (0x27, 0x2019), unicodedata.category(chr(code))[0] in "PS"
        return self.setdefault(code, 0x27 if apostrophe else 0x20 if mark else code)


_MARKS = _Marks()


def normalized(text: str, how: str) -> str:
    """A text as it is compared.

    Args:
        text: as it was written.
        how: a key of `NORMALIZATIONS`. Unicode is composed (NFC), and blanks are one space, none at the ends. Without
            case all letters are small. Without punctuation marks and symbols are blanks, but for an apostrophe in a
            word.
    """
    lower, bare = NORMALIZATIONS[how]
    text = unicodedata.normalize("NFC", text)
    text = text.lower() if lower else text
    return " ".join((_QUOTES.sub(" ", text.translate(_MARKS)) if bare else text).split())


@dataclass(frozen=True, eq=False)
class Tokens:
    """Texts as codes of tokens.

    Attributes:
        texts: normalized, n.
        unit: a key of `UNITS`.
        names: the tokens by code; short ones first, those of one length by the alphabet.
        codes: of all texts, one text after the other.
        starts: of each text in `codes`, and the end of the last, [n + 1].
    """

    texts: list[str]
    unit: str
    names: list[str]
    codes: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[object], unit: str = "words", normalize: str = "blanks") -> Tokens:
        """Splits texts; see the attributes, and `normalized`."""
        plain = [normalized(str(text), normalize) for text in texts]
        parts: list[list[str]] = [text.split() if unit == "words" else [*text] for text in plain]
        names = sorted({token for part in parts for token in part}, key=lambda token: (len(token), token))
        code_of = {name: code for code, name in enumerate(names)}
        codes = np.array([code_of[token] for part in parts for token in part], np.int64)
        return cls(plain, unit, names, codes, np.cumsum([0, *map(len, parts)]))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each text, [n]."""
        return np.diff(self.starts)

    def joined(self, codes: NDArray[np.int64]) -> str:
        """The text of some codes."""
        return UNITS[self.unit].join(self.names[code] for code in codes.tolist())

    def ngrams(self, longest: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """How often each text has each sequence of up to so many tokens.

        Returns:
            Starts of the texts in what follows [n + 1]; codes of the sequences, ascending in a text; how often each is
            there.
        """
        text = np.repeat(np.arange(len(self.texts)), self.lengths)
        keys, owners, above = [self.codes], [text], len(self.names)
        grams = self.codes
        for length in range(2, longest + 1):
            grams = np.unique(grams[:-1] * (len(self.names) + 1) + self.codes[length - 1 :], return_inverse=True)[1]
            whole = text[: len(grams)] == text[length - 1 :]
            keys.append(grams[whole] + above)
            owners.append(text[: len(grams)][whole])
            above += len(grams)
        both, counts = np.unique(np.stack([np.concatenate(owners), np.concatenate(keys)]), axis=1, return_counts=True)
        return np.searchsorted(both[0], np.arange(len(self.texts) + 1)), both[1], counts.astype(np.float64)
