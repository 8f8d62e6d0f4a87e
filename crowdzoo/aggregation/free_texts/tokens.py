"""Tokens: texts as codes of words or characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# How texts are compared -> without case, without punctuation; blanks never count
NORMALIZATIONS = {"blanks": (False, False), "case": (True, False), "punctuation": (False, True), "words": (True, True)}
UNITS = {"words": " ", "characters": ""}  # what a text is made of -> what is between two of them
GRAM = 3  # characters
_QUOTES = re.compile(r"(?<!\w)'|'(?!\w)")


@cache
def _unmarked(letter: str) -> str:
    """A blank for punctuation and symbols, a straight apostrophe for a curved one."""
    return "'" if letter in "'’" else " " if unicodedata.category(letter)[0] in "PS" else letter


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
    return " ".join((_QUOTES.sub(" ", "".join(map(_unmarked, text))) if bare else text).split())


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
    def of(cls, texts: Sequence[str], unit: str = "words", normalize: str = "blanks") -> Tokens:
        """Splits texts; see the attributes, and `normalized`."""
        plain = [normalized(text, normalize) for text in texts]
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

    def ngrams(self) -> Any:
        """How often each text has each run of three characters, as a vector of length 1, [n, V].

        A blank is put before and after a text, as in T. Dunning: Statistical Identification of Language, 1994. An empty
        text has no run: its vector is zero. The array is SciPy's, of sparse rows.
        """
        from scipy.sparse import csr_matrix

        texts = [f" {text} " for text in self.texts]
        runs = [[text[place : place + GRAM] for place in range(len(text) - GRAM + 1)] for text in texts]
        code_of: dict[str, int] = {}
        codes = [code_of.setdefault(run, len(code_of)) for own in runs for run in own]
        starts = np.cumsum([0, *map(len, runs)])
        counts = csr_matrix((np.ones(len(codes)), codes, starts), shape=(len(runs), len(code_of)))
        counts.sum_duplicates()
        lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
        counts.data /= np.repeat(lengths, np.diff(counts.indptr))
        return counts
