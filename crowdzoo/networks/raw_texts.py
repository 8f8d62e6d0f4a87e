"""Texts as they are, for a model of strings, and refused where they are not UTF-8."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import tensorflow as tf

from crowdzoo.data.instance_kinds import TEXTS
from crowdzoo.networks.instance_encoder import InstanceEncoder


class RawTexts(InstanceEncoder):
    """Texts as they are, a row of one string each, as `keras.layers.TextVectorization` takes them."""

    key = "raw_texts"
    instances: ClassVar = TEXTS
    example: ClassVar = {"instances": "warm up"}
    per_batch = False

    def get_config(self) -> dict[str, object]:
        """No arguments."""
        return {}

    def __call__(self, values: tf.Tensor) -> tf.Tensor:
        """Strings `[B, 1]` out of strings `[B]`.

        Raises:
            tf.errors.InvalidArgumentError: a text is not UTF-8; it names the rows, from 0.
        """
        return utf8_texts(values)[:, None]

    def to_numpy(self, values: Sequence[str | bytes]) -> np.ndarray:
        """Texts `[N, 1]`."""
        return np.array([text.decode() if isinstance(text, bytes) else text for text in values], dtype=object)[:, None]


def utf8_texts(texts: tf.Tensor) -> tf.Tensor:
    """The same texts, which can be had only if all of them are UTF-8.

    Args:
        texts: string `[B]`.

    Returns:
        string `[B]`.

    Raises:
        tf.errors.InvalidArgumentError: a text is not UTF-8; it names the rows, from 0.
    """
    texts = tf.convert_to_tensor(texts, tf.string)
    cleaned = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace", replacement_char=0xFFFD)
    bad = tf.where(tf.not_equal(cleaned, texts))[:, 0]
    valid = tf.debugging.Assert(tf.equal(tf.size(bad), 0), ["instances: not valid UTF-8 in row", bad], summarize=3)
    with tf.control_dependencies([valid]):
        return tf.identity(texts)
