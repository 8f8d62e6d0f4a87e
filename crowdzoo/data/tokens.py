"""split_tokens: splits text into tokens, in the same way everywhere in crowdzoo."""

import bisect
import re
import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_WORDS = re.compile(r"\S+")
# Letters of scripts without spaces between words, first and last code point: Thai, Lao, Myanmar, Khmer, Han with its
# radicals, Hiragana and Katakana. Their digits are not letters, and are not split
ONE_BY_ONE = (
    (0x0E01, 0x0E30), (0x0E32, 0x0E33), (0x0E40, 0x0E46), (0x0E81, 0x0EB0), (0x0EB2, 0x0EB3), (0x0EBD, 0x0EC6),
    (0x0EDC, 0x0EDF), (0x1000, 0x102A), (0x103F, 0x103F), (0x1050, 0x1055), (0x105A, 0x105D), (0x1061, 0x1061),
    (0x1065, 0x1066), (0x106E, 0x1070), (0x1075, 0x1081), (0x108E, 0x108E), (0x1780, 0x17B3), (0x17D7, 0x17D7),
    (0x17DC, 0x17DC), (0x2E80, 0x2FD5), (0x3005, 0x3005), (0x3007, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B),
    (0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xA9E0, 0xA9E4), (0xA9E6, 0xA9EF), (0xA9FA, 0xA9FE), (0xAA60, 0xAA7A), (0xAA7E, 0xAA7F),
    (0xF900, 0xFAD9), (0xFF66, 0xFF9D), (0x16FE3, 0x16FE3), (0x1B000, 0x1B16F), (0x20000, 0x3FFFD),
)  # fmt: skip
_STARTS = [first for first, _ in ONE_BY_ONE]


def split_tokens(text: str) -> tuple[list[str], NDArray[np.int64]]:
    """Splits text at white space, and splits off each punctuation character as a token.

    Punctuation is Unicode's general category P, and the ASCII symbols $ + < = > ^ ` | ~. In Chinese, Japanese, Thai,
    Lao, Khmer and Burmese, which are written without spaces, each letter is a token, together with the combining
    characters after it. Nothing else is split or changed: combining characters, emoji and their joiners stay together.

    Args:
        text: any text.

    Returns:
        T tokens, and their offsets int64 [T, 2]: the first character and the one after the last, in Unicode code points
        from 0, so that `text[start:end]` is the token.
    """
    offsets: list[tuple[int, int]] = []
    for word in _WORDS.finditer(text):
        start, end = word.span()
        begin = place = start
        while place < end:
            alone = _stands_alone(text[place])
            if not alone:
                place += 1
                continue
            if begin < place:
                offsets.append((begin, place))
            begin, place = place, place + 1
            while alone == "letter" and place < end and unicodedata.category(text[place]).startswith("M"):
                place += 1
            offsets.append((begin, place))
            begin = place
        if begin < end:
            offsets.append((begin, end))
    tokens = [text[start:end] for start, end in offsets]
    return tokens, np.array(offsets, np.int64).reshape(-1, 2)


@lru_cache(maxsize=1 << 14)
def _stands_alone(character: str) -> str:
    """Why a character is a token of its own: "punctuation", "letter" of `ONE_BY_ONE`, or "" if it is not."""
    if character in "$+<=>^`|~" or unicodedata.category(character).startswith("P"):
        return "punctuation"
    place = bisect.bisect(_STARTS, ord(character)) - 1
    return "letter" if place >= 0 and ord(character) <= ONE_BY_ONE[place][1] else ""


def token_edges(number: int) -> NDArray[np.int64]:
    """Start and end of tokens if spans count tokens, int64 [T, 2]."""
    return np.arange(number)[:, None] + [0, 1]
