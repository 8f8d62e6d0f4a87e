"""read_word_vectors: vectors of words out of GloVe's or word2vec's text files, for a tagger to start from."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import SHOWN, BadRow, ConfigError, DataError
from crowdzoo.sequences.text_lines import read_lines, shorten

__all__ = ["read_word_vectors"]

FIRST = 2  # ids 0 and 1 are padding and unknown words, as in `crowdzoo.models.TokenEncoder`
BY_FORM, EXACT = 1, 2


def read_word_vectors(path: str | os.PathLike[str], words: Sequence[str], size: int) -> tuple[NDArray[np.float32], int]:
    """Reads the vectors of some words, for `SequenceTagger.set_word_vectors`.

    The file is text as GloVe has it: a line a word, the word and its numbers, single spaces between. The last `size`
    fields are the numbers, so that words may hold spaces. A first line "count size", as word2vec's text form has it, is
    passed over. UTF-8; gzip where the name ends in .gz. The file is read line by line; of the numbers only those of
    the words asked for are looked at.

    A word of the file is first taken as it stands, and where `words` has none such, in the form in which
    `TokenEncoder` looks words up: lower case, every digit 0. Of several with one form the one that is written so
    counts, else the first, which in files sorted by frequency is the most frequent.

    Args:
        path: path of the file.
        words: vocabulary, V words, such as `TokenEncoder.words`.
        size: length of a vector, D.

    Returns:
        Vectors float32 `[V + 2, D]`: row i + 2 is that of word i; rows of NaN for padding (0), unknown words (1) and
        words that the file lacks. And how many words were found.

    Raises:
        ConfigError: `size` is no whole number of at least 1.
        DataError: with file, line, value and a way out (ten shown, the rest counted): a line with another number of
            numbers, what is no finite number, bytes that are no UTF-8; or for the whole file: missing, empty, cut off,
            of another size, without a single one of the words.

    Source:
        J. Pennington, R. Socher, C. Manning: GloVe. EMNLP 2014 (the format of its files).
    """
    if isinstance(size, bool) or int(size) != size or size < 1:
        raise ConfigError(f"size is a whole number of at least 1. Received: size={size!r}.")
    reader = _Reader(os.fspath(path), {word: row for row, word in enumerate(words, start=FIRST)}, int(size))
    reader.read(len(words))
    return reader.vectors, int(np.count_nonzero(reader.found))


@dataclass
class _Reader:
    """One file while it is read."""

    name: str
    rows: dict[str, int]
    size: int
    bad: list[BadRow] = field(default_factory=list)
    num_bad: int = 0
    count: int | None = None  # of vectors, as word2vec's first line says

    def read(self, num_words: int) -> None:
        self.vectors = np.full((num_words + FIRST, self.size), np.nan, np.float32)
        self.found = np.zeros(num_words + FIRST, np.int8)
        num_vectors = 0
        for number, line in read_lines(self.name, self._note):
            if line is None:
                num_vectors += 1
                continue
            line = line.rstrip(" ")
            if not line or (number == 1 and self._is_header(line)):
                continue
            num_vectors += 1
            self._line(number, line)
        if self.num_bad:
            raise DataError(f"{self.name} cannot be read as word vectors.", self.bad, self.num_bad)
        if self.count is not None and num_vectors != self.count:
            raise DataError(
                f"{self.name} has {num_vectors:,} vectors, where its first line says {self.count:,}. Copy or download "
                "it again."
            )
        if not self.found.any():
            raise DataError(
                f"{self.name} has none of the {num_words:,} words, so it is of another language or kind. The words "
                f"look like {', '.join(map(repr, list(self.rows)[:3])) or 'nothing: there are none'}."
            )

    def _is_header(self, line: str) -> bool:
        """Whether the first line is word2vec's "count size"."""
        fields = line.split(" ")
        if len(fields) != 2 or not all(field.isascii() and field.isdigit() and len(field) < 18 for field in fields):
            return False
        if int(fields[1]) != self.size:
            if self.size == 1:
                return False  # a word that is a number, and its one number
            raise DataError(f"{self.name}: its vectors have {fields[1]} numbers by its first line, not {self.size}.")
        self.count = int(fields[0])
        return True

    def _line(self, number: int, line: str) -> None:
        fields = line.count(" ")
        word = line.partition(" ")[0]
        if fields > self.size:
            word = line.rsplit(" ", self.size)[0]
        if fields < self.size or (fields > self.size and _is_number(word.rpartition(" ")[2])):
            self._note_length(number, line)
            return
        row, rank = self.rows.get(word), EXACT
        if row is None:
            row, rank = self.rows.get(_normal(word)), BY_FORM
        if row is None or self.found[row] >= rank:
            return
        vector = self._numbers(number, line.rsplit(" ", self.size)[1:])
        if vector is not None:
            self.vectors[row] = vector
            self.found[row] = rank

    def _numbers(self, number: int, fields: list[str]) -> NDArray[np.float32] | None:
        try:
            with np.errstate(over="ignore"):
                vector = np.array([float(each) for each in fields]).astype(np.float32)
        except ValueError:
            wrong = next(place for place, each in enumerate(fields) if not _is_number(each))
            self._note(BadRow(self.name, number, _column(wrong), shorten(fields[wrong]), "is not a number."))
            return None
        finite = np.isfinite(vector)
        if not finite.all():
            wrong = int(finite.argmin())
            reason = "is not a finite number of 32 bits. Fix the line, or remove it."
            self._note(BadRow(self.name, number, _column(wrong), shorten(fields[wrong]), reason))
            return None
        return vector

    def _note_length(self, number: int, line: str) -> None:
        fields, numbers = line.split(" "), 0
        while numbers < len(fields) - 1 and _is_number(fields[-1 - numbers]):
            numbers += 1
        many = f"{numbers} number{'s' * (numbers != 1)}"
        reason = f"has {many} after the word where {self.size} are due. Check size, or fix the line."
        self._note(BadRow(self.name, number, None, shorten(line), reason))

    def _note(self, row: BadRow) -> None:
        self.num_bad += 1
        if len(self.bad) < SHOWN:
            self.bad.append(row)


def _column(place: int) -> str:
    return f"number {place + 1}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _normal(word: str) -> str:
    """Lower case, every digit 0: as `TokenEncoder` looks words up, without TensorFlow."""
    word = word.lower()
    if word.isalpha():
        return word
    return "".join("0" if unicodedata.category(letter).startswith("N") else letter for letter in word)
