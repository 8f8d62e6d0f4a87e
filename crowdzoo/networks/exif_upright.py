"""Rotates photographs according to their EXIF data in a TensorFlow graph, as TensorFlow's decoders ignore them."""

from typing import Any

import tensorflow as tf

EXIF_WITHIN = 1 << 17  # EXIF data have at most 64 KiB, in the first or second segment
_ORIENTATION = 0x0112
_MOST_ENTRIES = 512


def exif_upright(image: tf.Tensor, content: tf.Tensor) -> tf.Tensor:
    """Rotates an image upright.

    Args:
        image: `[H, W, C]`.
        content: scalar string, bytes of the file that it was decoded from; images of other formats than JPEG are not
            rotated.

    Returns:
        `[H, W, C]`, or `[W, H, C]` if the image was on its side.

    Source:
        CIPA DC-008, Exchangeable image file format, tag Orientation.
    """
    way = _orientation(content)
    image = tf.cond(way >= 5, lambda: tf.transpose(image, [1, 0, 2]), lambda: image)
    image = tf.cond(_among(way, 2, 3, 6, 7), lambda: tf.reverse(image, [1]), lambda: image)
    return tf.cond(_among(way, 3, 4, 7, 8), lambda: tf.reverse(image, [0]), lambda: image)


def _among(way: Any, *ways: int) -> tf.Tensor:
    return tf.reduce_any(tf.equal(way, ways))


def _orientation(content: tf.Tensor) -> tf.Tensor:
    """Orientation from 1 (upright) to 8, scalar int32; 1 if missing or not readable."""
    head = tf.io.decode_raw(tf.strings.substr(content, 0, EXIF_WITHIN), tf.uint8)
    size = tf.size(head)
    head = tf.cast(tf.pad(head, [[0, 16]]), tf.int32)

    def number(place: tf.Tensor, length: int, little: tf.Tensor | bool = False) -> tf.Tensor:
        """Reads unsigned numbers of `length` bytes at one or more places; at most 2**31 - 1."""
        steps = tf.range(length)
        digits = tf.gather(head, tf.clip_by_value(place[..., None] + steps, 0, size + 15))
        weights = tf.cast(256 ** tf.cast(tf.where(little, steps, length - 1 - steps), tf.int64), tf.int64)
        total = tf.reduce_sum(tf.cast(digits, tf.int64) * weights, axis=-1)
        return tf.cast(tf.minimum(total, 2**31 - 1), tf.int32)

    # segments: 0xFF, a marker, and their length including its own two bytes; pixels begin after marker 0xDA
    def is_exif(place: tf.Tensor) -> tf.Tensor:
        marked = tf.equal(number(place, 2), 0xFFE1)
        return tf.logical_and(marked, tf.equal(number(place + 4, 4), 0x45786966))  # "Exif"

    def goes_on(place: tf.Tensor) -> tf.Tensor:
        is_marker = tf.logical_and(place < size, tf.equal(number(place, 1), 0xFF))
        return is_marker & ~is_exif(place) & ~tf.equal(number(place + 1, 1), 0xDA)

    place = tf.while_loop(goes_on, lambda place: (place + 2 + tf.maximum(number(place + 2, 2), 1),), [tf.constant(2)])
    place = place[0] if isinstance(place, (list, tuple)) else place

    # TIFF: byte order, 42, offset of the entries; number of entries, and 12 bytes each: tag, type, count, value
    start = place + 10
    little = tf.equal(number(start, 2), 0x4949)
    first = start + tf.clip_by_value(number(start + 4, 4, little), 0, EXIF_WITHIN)
    entries = first + 2 + 12 * tf.range(tf.minimum(number(first, 2, little), _MOST_ENTRIES))
    is_orientation = tf.equal(number(entries, 2, little), _ORIENTATION) & (entries < size)
    value = tf.reduce_max(tf.where(is_orientation, number(entries + 8, 2, little), 1))
    known = is_exif(place) & tf.equal(number(tf.constant(0), 2), 0xFFD8) & (value >= 1) & (value <= 8)
    return tf.where(known, value, 1)
