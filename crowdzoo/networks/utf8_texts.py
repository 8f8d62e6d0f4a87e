"""Texts that are not UTF-8 are refused, inside a TensorFlow graph."""

from typing import Any


def utf8_texts(texts: Any) -> Any:
    """The same texts, which can be had only if all of them are UTF-8.

    Args:
        texts: string `[B]`.

    Returns:
        string `[B]`.

    Raises:
        tf.errors.InvalidArgumentError: a text is not UTF-8; it names the rows, from 0.
    """
    import tensorflow as tf

    texts = tf.convert_to_tensor(texts, tf.string)
    cleaned = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace", replacement_char=0xFFFD)
    bad = tf.where(tf.not_equal(cleaned, texts))[:, 0]
    valid = tf.debugging.Assert(tf.equal(tf.size(bad), 0), ["instances: not valid UTF-8 in row", bad], summarize=3)
    with tf.control_dependencies([valid]):
        return tf.identity(texts)
