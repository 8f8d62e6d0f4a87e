"""Converts raw text to word ids in TensorFlow operations only, so that training and serving run the same graph."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from crowdzoo.checks.constraints import Choice, Number, checked
from crowdzoo.data.instance_kinds import TEXTS
from crowdzoo.errors import DataError
from crowdzoo.networks.instance_encoder import InstanceEncoder

PADDING = 0
UNKNOWN = 1
SPLITTINGS = ("words", "scripts", "characters")
# Separators of words: everything but letters, digits and apostrophes within a word. RE2 knows Unicode's classes
_BETWEEN = {"words": r"[^\pL\pN']+", "scripts": r"[^\pL\pM\pN']+"}
# A letter, with its marks, of a script without spaces between words; the last two are signs of Katakana
_LETTER = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\x{30FC}\x{FF70}]\pM*"


def words_of(texts: tf.Tensor, splitting: str = "words") -> tf.RaggedTensor:
    """Lower-cased words of texts.

    Args:
        texts: strings `[B]`, UTF-8: a TensorFlow tensor, or anything convertible to one.
        splitting: see `TextIds`.

    Returns:
        `tf.RaggedTensor` of strings `[B, words]`.
    """
    lower = tf.strings.lower(texts, encoding="utf-8")
    if splitting == "words":
        return tf.strings.split(tf.strings.regex_replace(lower, _BETWEEN[splitting], " "))
    if splitting == "characters":
        return _with_pairs(tf.strings.unicode_split(lower, "UTF-8"), ".|\n")
    # pairs do not cross word boundaries, so texts [B] are cut into pieces [B, pieces] first
    pieces = tf.strings.split(tf.strings.regex_replace(lower, _BETWEEN[splitting], "\n"), "\n")
    words = tf.strings.split(tf.strings.regex_replace(pieces.flat_values, f"({_LETTER})", r" \1 "))
    return tf.RaggedTensor.from_row_splits(_with_pairs(words, _LETTER), pieces.row_splits).merge_dims(1, 2)


def _with_pairs(words: tf.RaggedTensor, paired: str) -> tf.RaggedTensor:
    """Appends to each row of ragged `[B, words]` every two neighbours that both match the pattern."""
    left, right = words[:, :-1], words[:, 1:]
    pairs = left.with_flat_values(tf.strings.join([left.flat_values, right.flat_values]))
    matches = [tf.strings.regex_full_match(side.flat_values, paired) for side in (left, right)]
    return tf.concat([words, tf.ragged.boolean_mask(pairs, left.with_flat_values(matches[0] & matches[1]))], axis=1)


def mostly_without_spaces(words: Sequence[str]) -> bool:
    """Whether most words of a vocabulary are letters, or pairs of them, of scripts without spaces between words."""
    return (
        bool(words)
        and float(tf.reduce_mean(tf.cast(tf.strings.regex_full_match(words, f"({_LETTER})+"), "float32"))) > 0.5
    )


def build_vocabulary(
    texts: Iterable[str | bytes], *, max_words: int = 20_000, min_texts: int = 1, splitting: str = "words"
) -> list[str]:
    """The words of training texts, the most frequent first, ties in alphabetical order.

    Args:
        texts: training texts; iterated once, and not kept in memory.
        max_words: largest number of words.
        min_texts: number of texts that a word must occur in.
        splitting: see `TextIds`.

    Returns:
        Words; word i has id i + 2, because 0 is padding and 1 any other word.

    Raises:
        DataError: no word remains.
    """
    rest, num_texts = iter(texts), 0
    counts: Counter[str] = Counter()
    number: Counter[str] = Counter()
    while part := list(islice(rest, 1024)):
        num_texts += len(part)
        for row in words_of(part, splitting).to_list():
            words = [word.decode("utf-8") for word in row]
            counts.update(words)
            number.update(set(words))
    vocabulary = sorted((word for word in counts if number[word] >= min_texts), key=lambda word: (-counts[word], word))
    if not vocabulary:
        raise DataError(f"none of the {num_texts:,} texts has a word that occurs in {min_texts} of them")
    return vocabulary[:max_words]


class TextIds(InstanceEncoder):
    """Texts as word ids; callable inside a TensorFlow graph, such as a serving signature.

    | splitting | words |
    |-----------|-------|
    | words | runs of letters and digits; a language without spaces has one word per sentence |
    | scripts | the same, with marks; in Chinese, Japanese, Thai and so on every letter and every two neighbours |
    | characters | every character, and every two neighbours |

    A `tf.Module` that refers to `resources` exports them with the SavedModel.

    Args:
        vocabulary: words without repetition; word i has id i + 2.
        max_length: number of words read from a text; the rest is cut off. None reads all.
        splitting: how texts are split, see the table. Models saved before this setting existed have "words".

    Raises:
        DataError: an empty vocabulary, an empty or repeated word.
        ConfigError: max_length below 1.

    Example:
        >>> from crowdzoo.models import TextIds
        >>> encoder = TextIds(["good", "bad"])
        >>> encoder.to_numpy(["a good film", "bad"]).tolist()  # 1 is the unknown word, 0 is padding
        [[1, 2, 1], [3, 0, 0]]
    """

    key = "text_ids"
    instances = TEXTS
    example: ClassVar = {"instances": "warm up"}
    per_batch = False

    @checked(max_length=Number(1, whole=True, optional=True), splitting=Choice(SPLITTINGS))
    def __init__(self, vocabulary: Sequence[str], max_length: int | None = None, splitting: str = "words"):
        self.vocabulary = [str(word) for word in vocabulary]
        if not self.vocabulary or "" in self.vocabulary:
            raise DataError("a vocabulary must have at least one word, and no empty one")
        if len(set(self.vocabulary)) < len(self.vocabulary):
            word = next(word for word, count in Counter(self.vocabulary).items() if count > 1)
            raise DataError(f"a vocabulary must have each word once; {word!r} is repeated")
        self.max_length = max_length
        self.splitting = splitting
        words = tf.constant(self.vocabulary)
        numbers = tf.range(2, len(self.vocabulary) + 2, dtype=tf.int64)
        self._table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, numbers), UNKNOWN)

    @property
    def num_words(self) -> int:
        """V, number of ids, including padding and the unknown word."""
        return len(self.vocabulary) + 2

    @property
    def resources(self) -> dict[str, object]:
        """Lookup table from words to ids; an exported model must contain it."""
        return {"words": self._table}

    def get_config(self) -> dict[str, object]:
        """Every argument of the constructor."""
        return {"vocabulary": list(self.vocabulary), "max_length": self.max_length, "splitting": self.splitting}

    def __call__(self, values: Any) -> Any:
        """Ids of texts.

        Args:
            values: strings `[B]`.

        Returns:
            int32 tensor `[B, T]`, T the number of words of the longest text (at least 1), padded with 0.

        Raises:
            tf.errors.InvalidArgumentError: a text is not UTF-8; the message names the rows, from 0.
        """
        words = words_of(utf8_texts(values), self.splitting)
        if self.max_length is not None:
            words = words[:, : self.max_length]
        ids = tf.ragged.map_flat_values(self._table.lookup, words).to_tensor(PADDING)
        ids = tf.pad(ids, [[0, 0], [0, tf.maximum(0, 1 - tf.shape(ids)[1])]])
        return tf.cast(ids, tf.int32)

    def to_numpy(self, values: Sequence[str | bytes], batch_size: int = 1024) -> np.ndarray:
        """Ids of many texts in memory, int32 `[N, T]`, padded with 0 to the longest of all."""
        parts = [self(list(values[start : start + batch_size])).numpy() for start in range(0, len(values), batch_size)]
        length = max((part.shape[1] for part in parts), default=1)
        padded = [np.pad(part, ((0, 0), (0, length - part.shape[1]))) for part in parts]
        return np.concatenate(padded) if padded else np.zeros((0, 1), "int32")


class RawTexts(InstanceEncoder):
    """Passes on texts unchanged, as rows of one string for `keras.layers.TextVectorization`."""

    key = "raw_texts"
    instances: ClassVar = TEXTS
    example: ClassVar = {"instances": "warm up"}
    per_batch = False

    def get_config(self) -> dict[str, object]:
        """No arguments."""
        return {}

    def __call__(self, values: tf.Tensor) -> tf.Tensor:
        """Converts strings `[B]` to `[B, 1]`.

        Raises:
            tf.errors.InvalidArgumentError: a text is not UTF-8; the message names the rows, from 0.
        """
        return utf8_texts(values)[:, None]

    def to_numpy(self, values: Sequence[str | bytes]) -> np.ndarray:
        """Texts `[N, 1]`."""
        return np.array([text.decode() if isinstance(text, bytes) else text for text in values], dtype=object)[:, None]


def utf8_texts(texts: tf.Tensor) -> tf.Tensor:
    """Returns the texts unchanged, and fails if any of them is not UTF-8.

    Args:
        texts: string `[B]`.

    Returns:
        string `[B]`.

    Raises:
        tf.errors.InvalidArgumentError: a text is not UTF-8; the message names the rows, from 0.
    """
    texts = tf.convert_to_tensor(texts, tf.string)
    cleaned = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace", replacement_char=0xFFFD)
    bad = tf.where(tf.not_equal(cleaned, texts))[:, 0]
    valid = tf.debugging.Assert(tf.equal(tf.size(bad), 0), ["instances: not valid UTF-8 in row", bad], summarize=3)
    with tf.control_dependencies([valid]):
        return tf.identity(texts)
