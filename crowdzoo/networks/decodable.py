"""Finds images that Pillow reads and TensorFlow does not."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from crowdzoo.errors import SHOWN, BadRow, DataError
from crowdzoo.reading.instances.upright_image import read_image

_REASON = "is damaged: TensorFlow does not decode it. Open it in an image editor and save it again, or leave it out."


def is_decodable(content: bytes) -> bool:
    """Whether TensorFlow decodes a result of `upright_image`.

    Pillow accepts a JPEG file with all pixels but without an end marker; TensorFlow rejects it. For PNG files both
    check the checksums.

    Args:
        content: bytes of a JPEG or PNG file.
    """
    import tensorflow as tf

    if not content.startswith(b"\xff\xd8"):
        return True
    try:
        tf.io.decode_jpeg(content, ratio=8)  # every byte is read, but pixels are computed at an eighth of the size
    except tf.errors.InvalidArgumentError:
        return False
    return True


@contextlib.contextmanager
def naming_undecodable(values: object) -> Iterator[None]:
    """If TensorFlow rejects a batch of images, raises an error that names all files it cannot decode.

    Args:
        values: as `Instances.values`; anything but paths is ignored.

    Raises:
        DataError: there are such files; the first ten are listed.
    """
    try:
        yield
    except Exception as error:
        if type(error).__name__ == "InvalidArgumentError":  # TensorFlow's error, without importing TensorFlow
            bad = [path for path in _paths(values) if not is_decodable(read_image(path).content)]
            if bad:
                raise not_decodable(bad) from error
        raise


def _paths(values: object) -> Iterator[Path]:
    if isinstance(values, dict):
        for column in values.values():
            yield from _paths(column)
    elif isinstance(values, np.ndarray) and values.dtype == object:
        yield from (Path(value) for value in values.flat if isinstance(value, os.PathLike))


def not_decodable(paths: Sequence[Path]) -> DataError:
    """The error about images that TensorFlow does not decode."""
    rows = [BadRow(os.fspath(path.parent), None, "image", path.name, _REASON) for path in paths[:SHOWN]]
    return DataError("Some images cannot be used.", rows, len(paths))
