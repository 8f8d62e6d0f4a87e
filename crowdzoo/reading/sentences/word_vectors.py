"""read_word_vectors: reads word vectors from GloVe's or word2vec's text files, to initialize a tagger."""

import os
import re
import unicodedata
from collections.abc import Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from crowdzoo.checks.constraints import Number, checked
from crowdzoo.errors import DataError, shorten
from crowdzoo.reading.sentences.text_lines import TextFile

FIRST = 2  # ids 0 and 1 are padding and unknown words, as in `crowdzoo.models.TokenEncoder`
BY_FORM, EXACT = 1, 2
_HEADER = re.compile(r"([0-9]{1,17}) ([0-9]{1,17})")


@checked(size=Number(1, whole=True))
def read_word_vectors(path: str | os.PathLike[str], words: Sequence[str], size: int) -> tuple[NDArray[np.float32], int]:
    """Read the vectors of given words, for `SequenceTagger.set_word_vectors`.

    The file is text in GloVe's format: one line per word, with the word and its numbers separated by single spaces. The
    last `size` fields are the numbers, so words may contain spaces. A first line "count size", as in word2vec's text
    format, is ignored. UTF-8; gzip if the name ends in .gz. The file is read line by line, and only numbers of the
    given words are parsed.

    A word of the file is first looked up unchanged and, if `words` does not contain it, in the form of `TokenEncoder`:
    lower case, every digit 0. Of several words with the same form, the one written in this form is used, else the
    first, which in files sorted by frequency is the most frequent.

    Args:
        path: path of the file.
        words: vocabulary, V words, such as `TokenEncoder.words`.
        size: length of a vector, D.

    Returns:
        Vectors float32 `[V + 2, D]`: row i + 2 is word i; rows of NaN for padding (0), unknown words (1) and words
        missing from the file. And the number of words found.

    Raises:
        ConfigError: `size` is not a whole number of at least 1.
        DataError: with file, line, value and a fix (ten shown, the rest counted): a line with a wrong number of values,
            a value that is not a finite number, bytes that are not UTF-8; for the whole file: missing, empty, cut off,
            of another size, or without any of the words.

    Source:
        J. Pennington, R. Socher, C. Manning: GloVe. EMNLP 2014 (the format of its files).
    """
    reader = _Reader(TextFile(path), words, size)
    reader.read()
    return reader.vectors, int(np.count_nonzero(reader.found))


class _Reader:
    """Reader of one file."""

    def __init__(self, file: TextFile, words: Sequence[str], size: int):
        self.file = file
        self.rows = {word: row for row, word in enumerate(words, start=FIRST)}
        self.size = size
        self.vectors = np.full((len(words) + FIRST, size), np.nan, np.float32)
        self.found = np.zeros(len(words) + FIRST, np.int8)
        self.count: int | None = None  # number of vectors in word2vec's first line

    def read(self) -> None:
        name, num_words, num_vectors = self.file.name, len(self.found) - FIRST, 0
        for number, line in self.file.lines():
            if line is not None:
                line = line.rstrip(" ")
                if not line or (number == 1 and self._is_header(line)):
                    continue
                self._line(number, line)
            num_vectors += 1
        self.file.stop_if_bad(f"{name} cannot be read as word vectors.")
        if self.count is not None and num_vectors != self.count:
            count = f"{num_vectors:,} vectors, where its first line says {self.count:,}"
            raise DataError(f"{name} has {count}. Copy or download it again.")
        if not self.found.any():
            look = ", ".join(map(repr, list(self.rows)[:3])) or "nothing: there are no words"
            kind = f"has none of the {num_words:,} words, so it is of another language or kind"
            raise DataError(f"{name} {kind}. The words look like {look}.")

    def _is_header(self, line: str) -> bool:
        """Whether the first line is word2vec's "count size"."""
        header = _HEADER.fullmatch(line)
        if header is None:
            return False
        if int(header[2]) != self.size:
            if self.size == 1:
                return False  # a word that is a number, with its single value
            raise DataError(f"{self.file.name}: vectors have {header[2]} numbers by its first line, not {self.size}.")
        self.count = int(header[1])
        return True

    def _line(self, number: int, line: str) -> None:
        fields = line.count(" ")
        word = line.rsplit(" ", self.size)[0] if fields > self.size else line.partition(" ")[0]
        if fields < self.size or (fields > self.size and _is_number(word.rpartition(" ")[2])):
            self._note_length(number, line)
            return
        row, rank = self.rows.get(word), EXACT
        if row is None:
            row, rank = self.rows.get(_normal(word)), BY_FORM
        if row is None or self.found[row] >= rank:
            return
        if (vector := self._numbers(number, line.rsplit(" ", self.size)[1:])) is not None:
            self.vectors[row] = vector
            self.found[row] = rank

    def _numbers(self, number: int, fields: list[str]) -> NDArray[np.float32] | None:
        try:
            with np.errstate(over="ignore"):
                vector = np.array([float(field) for field in fields]).astype(np.float32)
        except ValueError:
            wrong = next(place for place, field in enumerate(fields) if not _is_number(field))
            reason = "is not a number."
        else:
            finite = np.isfinite(vector)
            if finite.all():
                return vector
            wrong = int(finite.argmin())
            reason = "is not a finite number of 32 bits. Fix the line, or remove it."
        self.file.note(number, f"number {wrong + 1}", shorten(fields[wrong]), reason)
        return None

    def _note_length(self, number: int, line: str) -> None:
        numbers = sum(1 for _ in takewhile(_is_number, reversed(line.split(" ")[1:])))
        many = f"{numbers} number{'s' * (numbers != 1)}"
        reason = f"has {many} after the word where {self.size} are due. Check size, or fix the line."
        self.file.note(number, None, shorten(line), reason)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _normal(word: str) -> str:
    """Lower case, every digit 0, like `TokenEncoder` but without TensorFlow."""
    word = word.lower()
    if word.isalpha():
        return word
    return "".join("0" if unicodedata.category(letter).startswith("N") else letter for letter in word)
