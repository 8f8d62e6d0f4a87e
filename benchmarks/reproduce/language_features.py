"""language_features: what a text is like as language, in numbers that need no model and no dictionary."""

import re

import numpy as np

__all__ = ["language_features"]

MODALS = frozenset(["can", "could", "may", "might", "must", "shall", "should", "will", "would"])
FIRST = frozenset(["i", "me", "my", "mine", "we", "us", "our", "ours"])
SECOND = frozenset(["you", "your", "yours", "u", "ur"])
CONNECTIVES = frozenset(
    [
        "also", "although", "because", "but", "example", "finally", "first", "furthermore", "hence", "however", "if",
        "instance", "moreover", "second", "since", "so", "then", "therefore", "though", "thus", "whereas", "while",
    ]
)  # fmt: skip
LONG = 6  # letters; a longer word is a long one


def language_features(texts: list[str], known: list[str]) -> np.ndarray:
    """Lengths, readability, marks, capitals, pronouns, modal verbs, connectives, and rare words of each text.

    After the linguistic features of Habernal and Gurevych (2016), section 5.1; those that need a parser, a dictionary
    or a sentiment model are left out. Counts are as log(1 + count).

    Args:
        texts: N texts.
        known: texts that say which words are rare, such as those of training.

    Returns:
        float64 [N, 31].
    """
    seen: dict[str, int] = {}
    for text in known:
        for word in set(_words(text.lower())):
            seen[word] = seen.get(word, 0) + 1
    return np.array([_of(text, seen) for text in texts])


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z']+", text)


def _syllables(word: str) -> int:
    return max(1, len(re.findall(r"[aeiouy]+", word)))


def _of(text: str, seen: dict[str, int]) -> list[float]:
    words = _words(text)
    lower = [word.lower() for word in words]
    sentences = [part.strip() for part in re.split(r"[.!?]+", text) if part.strip()]
    number, pieces, letters = max(len(words), 1), max(len(sentences), 1), max(len(text), 1)
    syllables = sum(map(_syllables, lower)) / number
    size = sum(map(len, words)) / number
    long_words = sum(len(word) > LONG for word in words)

    def share(group: frozenset[str]) -> float:
        return sum(word in group for word in lower) / number

    counts = [
        len(text), len(words), pieces, number / pieces, len(set(lower)), long_words, sum(map(str.isdigit, text)),
        text.count("!"), text.count("?"), text.count(","), sum(map(text.count, '"()')), text.count("\n"),
        sum(word in CONNECTIVES for word in lower),
    ]  # fmt: skip
    return [
        *np.log1p(counts),
        size,
        syllables,
        206.835 - 1.015 * number / pieces - 84.6 * syllables,  # Flesch's reading ease
        4.71 * size + 0.5 * number / pieces - 21.43,  # automated readability index
        len(set(lower)) / number,
        long_words / number,
        text.count(",") / number,
        sum(word.isupper() and len(word) > 1 for word in words) / number,
        sum(map(str.isupper, text)) / letters,
        share(MODALS),
        share(FIRST),
        share(SECOND),
        share(CONNECTIVES),
        sum(seen.get(word, 0) < 2 for word in lower) / number,  # misspelt, or about something else
        float(text[:1].isupper()),
        float(text.rstrip()[-1:] in (".", "!", "?")),
        float("http" in text),
        sum(part[0].islower() for part in sentences) / pieces,
    ]
