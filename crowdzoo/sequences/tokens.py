"""split_tokens: text to tokens, the way that every tokeniser in crowdzoo cuts."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["split_tokens"]

_WORDS = re.compile(r"\S+")


def split_tokens(text: str) -> tuple[list[str], NDArray[np.int64]]:
    """Cuts text at white space, and cuts each punctuation character off as a token of its own.

    Punctuation is what Unicode calls so (general category P), and the ASCII symbols $ + < = > ^ ` | ~. Nothing else is
    cut or changed: combining characters, emoji and what joins them stay together.

    Args:
        text: any.

    Returns:
        T tokens, and where they stand: int64 [T, 2], the first character and the one after the last, in Unicode code
        points from 0. `text[start:end]` is the token.
    """
    offsets: list[tuple[int, int]] = []
    for word in _WORDS.finditer(text):
        start, end = word.span()
        begin = start
        for place in range(start, end):
            if _is_punctuation(text[place]):
                if begin < place:
                    offsets.append((begin, place))
                offsets.append((place, place + 1))
                begin = place + 1
        if begin < end:
            offsets.append((begin, end))
    tokens = [text[start:end] for start, end in offsets]
    return tokens, np.array(offsets, np.int64).reshape(-1, 2)


@lru_cache(maxsize=1 << 14)
def _is_punctuation(letter: str) -> bool:
    return letter in "$+<=>^`|~" or unicodedata.category(letter).startswith("P")
