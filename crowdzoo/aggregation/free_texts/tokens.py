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

# How texts are compared -> ignoring case, ignoring punctuation; the number of blanks is always ignored
NORMALIZATIONS = {"blanks": (False, False), "case": (True, False), "punctuation": (False, True), "words": (True, True)}
UNITS = {"words": " ", "characters": ""}  # kind of tokens -> separator of tokens
GRAM = 3  # characters
_QUOTES = re.compile(r"(?<!\w)'|'(?!\w)")


@cache
def _unmarked(letter: str) -> str:
    """Replaces punctuation and symbols by a blank, and a curved apostrophe by a straight one."""
    return "'" if letter in "'’" else " " if unicodedata.category(letter)[0] in "PS" else letter


def normalized(text: str, how: str) -> str:
    """Normalizes a text for comparisons.

    Args:
        text: the original text.
        how: a key of `NORMALIZATIONS`. Unicode is composed (NFC), and blanks become one space, none at the ends.
            Ignoring case makes all letters lower case. Ignoring punctuation replaces marks and symbols by blanks,
            except for an apostrophe in a word.
    """
    lower, bare = NORMALIZATIONS[how]
    text = unicodedata.normalize("NFC", text)
    text = text.lower() if lower else text
    return " ".join((_QUOTES.sub(" ", "".join(map(_unmarked, text))) if bare else text).split())


@dataclass(frozen=True, eq=False)
class Tokens:
    """Texts as codes of tokens.

    Attributes:
        texts: the n normalized texts.
        unit: a key of `UNITS`.
        names: the tokens by code, sorted by length, then alphabetically.
        codes: codes of all texts, concatenated.
        starts: start of each text in `codes`, and the end of the last, [n + 1].
    """

    texts: list[str]
    unit: str
    names: list[str]
    codes: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str], unit: str = "words", normalize: str = "blanks") -> Tokens:
        """Splits texts into tokens; see the attributes, and `normalized`."""
        plain = [normalized(text, normalize) for text in texts]
        parts: list[list[str]] = [text.split() if unit == "words" else [*text] for text in plain]
        names = sorted({token for part in parts for token in part}, key=lambda token: (len(token), token))
        code_of = {name: code for code, name in enumerate(names)}
        codes = np.array([code_of[token] for part in parts for token in part], np.int64)
        return cls(plain, unit, names, codes, np.cumsum([0, *map(len, parts)]))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens per text, [n]."""
        return np.diff(self.starts)

    def joined(self, codes: NDArray[np.int64]) -> str:
        """Joins tokens to a text."""
        return UNITS[self.unit].join(self.names[code] for code in codes.tolist())

    def ngrams(self) -> Any:
        """Frequencies of three consecutive characters in each text, as a vector of length 1, [n, V].

        A blank is added before and after each text, as in T. Dunning: Statistical Identification of Language, 1994. The
        vector of an empty text is zero. The result is a sparse array of SciPy.
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
