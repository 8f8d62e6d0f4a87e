"""Converts raw strings to a tagger's input, with one TensorFlow graph for training and serving."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from crowdzoo.checks.constraints import Choice, Number, checked
from crowdzoo.data.instance_kinds import TEXTS
from crowdzoo.data.tokens import ONE_BY_ONE
from crowdzoo.errors import DataError
from crowdzoo.networks.text_ids import utf8_texts

# Where `crowdzoo.sequences.split_tokens` cuts, in RE2's syntax: white space as Python defines it, and punctuation
SPACE = r"\t-\r\x1c-\x20\x{85}\p{Z}"
PUNCTUATION = r"\p{P}$+<=>^`|~"
_LETTER = "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in ONE_BY_ONE)
# name -> separators of tokens, and which of them are tokens themselves
TOKENIZERS = {
    "scripts": (rf"[{SPACE}{PUNCTUATION}]|[{_LETTER}]\pM*", rf"[{PUNCTUATION}]|[{_LETTER}]\pM*"),
    "words": (f"[{SPACE}{PUNCTUATION}]", f"[{PUNCTUATION}]"),
    "whitespace": (f"[{SPACE}]", ""),
}
# Shapes of tokens, of which the first match counts; ids from 1, and one more for all others
SHAPES = (
    r"\pN+",  # 1996
    r"[\pN\p{P}\p{S}]*\pN[\pN\p{P}\p{S}]*",  # 3.5%, 1996-08-22
    r"[\p{P}\p{S}]+",  # ...
    r"[\p{Ll}\p{Lo}\p{Lm}\pM]+",  # lower, and scripts without capitals
    r"\p{Lu}\pM*",  # A
    r"[\p{Lu}\pM]+",  # NATO
    r"[\p{Lu}\p{Lt}]\pM*[\p{Ll}\p{Lm}\pM]+",  # Paris
    r"(\p{Lu}\.)+",  # U.N.
    r".*\pN.*",  # F16
)
PADDING, UNKNOWN, FIRST = 0, 1, 2


class TokenEncoder:
    """Cuts text into tokens and turns tokens into the ids that `SequenceTagger` reads; needs TensorFlow.

    A word is looked up in lower case with every digit as 0. A token's ids do not depend on its neighbours.

    Args:
        words: vocabulary, word i has id i + 2; 0 is padding, 1 any other word.
        characters: characters with ids of their own, from 2; 0 is padding, 1 any other; "" leaves characters out.
        shapes: whether tokens have the id of their shape (capitalised, all digits, ...).
        tokenizer: "scripts": as `crowdzoo.sequences.split_tokens` cuts; "words": the same without cuts between letters
            of scripts without spaces, for older models; "whitespace": tokens are separated by white space.
        max_characters: number of characters read from a token; the rest is ignored.

    Raises:
        ConfigError: an unknown tokenizer, or characters out of range.

    Example:
        >>> from crowdzoo.models import TokenEncoder
        >>> encoder = TokenEncoder.fit([["Ann", "sleeps"], ["Bob", "saw", "Cem"]])
        >>> x = encoder([["Ann", "saw", "Dan"]])
        >>> sorted(encoder.sizes)  # arguments of SequenceTagger
        ['num_characters', 'num_shapes', 'num_words']
    """

    key = "encoder"
    instances = TEXTS
    example: ClassVar = {"instances": "warm up"}

    @checked(tokenizer=Choice(TOKENIZERS), max_characters=Number(1, whole=True))
    def __init__(
        self,
        words: Sequence[str],
        characters: str = "",
        shapes: bool = True,
        tokenizer: str = "scripts",
        max_characters: int = 20,
    ):
        self.words = list(words)
        self.characters = characters
        self.shapes = bool(shapes)
        self.tokenizer = tokenizer
        self.max_characters = max_characters

    @classmethod
    def fit(
        cls,
        sentences: Iterable[Sequence[str]],
        *,
        min_count: int = 2,
        max_words: int = 50_000,
        characters: bool = False,
        shapes: bool = True,
        tokenizer: str = "scripts",
    ) -> "TokenEncoder":
        """Creates an encoder with the words of a corpus.

        Args:
            sentences: tokens of each sentence.
            min_count: number of times that a word must occur; rarer words are unknown words, which trains their vector.
            max_words: size of the vocabulary, the most frequent words.
            characters: whether characters have ids as well.
            shapes: see the class.
            tokenizer: see the class.
        """
        counts = Counter(token for sentence in sentences for token in sentence)
        tokens = list(counts)
        normal: Counter[str] = Counter()
        for word, token in zip(_normal(tokens), tokens, strict=True):
            normal[word] += counts[token]
        frequent = sorted((word for word, count in normal.items() if count >= min_count), key=lambda w: (-normal[w], w))
        letters: Counter[str] = Counter()
        for token, count in counts.items():
            for letter in token:
                letters[letter] += count
        alphabet = "".join(sorted(letter for letter, count in letters.items() if count >= min_count))
        return cls(frequent[:max_words], alphabet if characters else "", shapes, tokenizer)

    @property
    def sizes(self) -> dict[str, Any]:
        """Arguments of `SequenceTagger` that depend on the encoder."""
        return {
            "num_words": len(self.words) + FIRST,
            "num_shapes": len(SHAPES) + 2 if self.shapes else 0,
            "num_characters": len(self.characters) + FIRST if self.characters else 0,
        }

    def get_config(self) -> dict[str, object]:
        """Every argument of the constructor, for JSON."""
        return {
            "words": self.words,
            "characters": self.characters,
            "shapes": self.shapes,
            "tokenizer": self.tokenizer,
            "max_characters": self.max_characters,
        }

    # === In Python ===

    def __call__(self, sentences: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Ids of tokenised sentences.

        Args:
            sentences: tokens of each sentence.

        Returns:
            "words" int32 `[N, T]`, and "shapes" `[N, T]`, "characters" `[N, T, C]` if used; T the length of the longest
            sentence, at least 1, padding 0.
        """
        lengths = [len(sentence) for sentence in sentences]
        flat = tf.constant([token for sentence in sentences for token in sentence], tf.string)
        encoded = self.encode(tf.RaggedTensor.from_row_lengths(flat, tf.constant(lengths, tf.int64)))
        return {name: np.asarray(ids) for name, ids in encoded.items()}

    def split(self, texts: Sequence[str]) -> tuple[list[list[str]], list[list[tuple[int, int]]]]:
        """Tokens of texts, and their positions.

        Args:
            texts: N strings.

        Returns:
            Tokens of each text; and their `(start, end)` in bytes of its UTF-8.
        """
        tokens, starts, ends = self.tokenize(tf.constant([text.encode() for text in texts], tf.string))
        places = [
            list(zip(row_starts, row_ends, strict=True))
            for row_starts, row_ends in zip(starts.to_list(), ends.to_list(), strict=True)
        ]
        return [[token.decode() for token in row] for row in tokens.to_list()], places

    # === In the graph ===

    def tokenize(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Cuts texts into tokens.

        Args:
            texts: string `[B]`, UTF-8.

        Returns:
            Ragged `[B, T]`: tokens (string), starts and ends (int64, bytes, end exclusive).

        Raises:
            tf.errors.InvalidArgumentError: a text is not UTF-8; the message names the row, from 0.
        """
        try:
            import tensorflow_text
        except ImportError as error:
            raise DataError("cutting text into tokens needs tensorflow-text: pip install 'crowdzoo[text]'") from error
        # the splitter stops at a NUL; another control character of the same length keeps offsets right
        no_nul = tf.strings.regex_replace(utf8_texts(texts), r"\x00", "\x01")
        _, starts, ends = tensorflow_text.regex_split_with_offsets(no_nul, *TOKENIZERS[self.tokenizer])
        first, last = starts.to_tensor(), ends.to_tensor()
        tokens = tf.strings.substr(texts[:, None], first, last - first)
        return tf.RaggedTensor.from_tensor(tokens, starts.row_lengths()), starts, ends

    def encode(self, tokens: tf.RaggedTensor) -> dict[str, tf.Tensor]:
        """Ids of tokens.

        Args:
            tokens: ragged string `[B, T]`.

        Returns:
            Dense int32, as in a call.
        """

        def dense(ids: tf.Tensor) -> tf.Tensor:
            ids = tokens.with_flat_values(tf.cast(ids, tf.int32)).to_tensor(PADDING)
            # at least one token: a convolution over none fails
            missing = tf.maximum(1 - tf.shape(ids)[1], 0)
            return tf.pad(ids, [[0, 0], [0, missing], *([[0, 0]] * (ids.shape.rank - 2))])

        flat = tokens.flat_values
        encoded = {"words": dense(self.resources["words"].lookup(_normal_form(flat)))}
        if self.shapes:
            shape = tf.fill(tf.shape(flat), len(SHAPES) + 1)
            for number, pattern in reversed(list(enumerate(SHAPES, start=1))):
                shape = tf.where(tf.strings.regex_full_match(flat, pattern), number, shape)
            encoded["shapes"] = dense(shape)
        if self.characters:
            letters = tf.strings.unicode_split(flat, "UTF-8", errors="replace")[:, : self.max_characters]
            codes = letters.with_flat_values(self.resources["characters"].lookup(letters.flat_values)).to_tensor(
                PADDING
            )
            # at least one column, for texts without tokens
            codes = tf.pad(codes, [[0, 0], [0, tf.maximum(1 - tf.shape(codes)[1], 0)]])
            encoded["characters"] = dense(codes)
        return encoded

    @property
    def inputs(self) -> dict[str, tf.TensorSpec]:
        """Texts, strings `[B]`."""
        return {"instances": tf.TensorSpec([None], tf.string, name="instances")}

    @cached_property
    def resources(self) -> dict[str, tf.lookup.StaticHashTable]:
        """Lookup tables from words and characters to ids; an exported model must contain them."""
        vocabularies = {"words": self.words, "characters": list(self.characters)}
        return {name: _table(values) for name, values in vocabularies.items()}


def _table(values: list[str]) -> tf.lookup.StaticHashTable:
    values = values or ["1"]  # a table cannot be empty, and every digit is looked up as 0
    ids = tf.range(FIRST, len(values) + FIRST, dtype=tf.int64)
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(values, tf.string), ids), default_value=UNKNOWN
    )


def _normal_form(tokens: tf.Tensor) -> tf.Tensor:
    """Lower case, every digit 0; string tensors."""
    return tf.strings.regex_replace(tf.strings.lower(tokens, encoding="utf-8"), r"\pN", "0")


def _normal(tokens: list[str]) -> list[str]:
    return [word.decode() for word in _normal_form(tf.constant(tokens, tf.string)).numpy()] if tokens else []
