"""Reading one image file."""

import os
from pathlib import Path

from crowdzoo.errors import DataError
from crowdzoo.files.regular import open_regular
from crowdzoo.reading.instances.upright_image import MAX_MEGAPIXELS, UprightImage, upright_image

_BYTES_A_PIXEL = 8  # four colours of 16 bits: what no format exceeds by more than its header
_HEADER = 1 << 24  # thumbnails and colour profiles, too


def read_image(path: str | Path, *, max_megapixels: float = MAX_MEGAPIXELS, whole: bool = False) -> UprightImage:
    """Reads an image as it is stored and sent; `upright_image` says what is changed and what is refused.

    Args:
        path: of a JPEG, PNG, GIF or BMP file.
        max_megapixels: most pixels, in millions.
        whole: decode all of it, to find out whether it is sound; for files that were not checked before.

    Raises:
        DataError: no such file, or it is refused; names the file.
        ConfigError: Pillow is not installed.
    """
    most = int(max_megapixels * 1e6) * _BYTES_A_PIXEL + _HEADER
    with open_regular(path) as file:
        content = file.read(most + 1)
    try:
        if len(content) > most:
            raise DataError(f"has more than {most:,} bytes, as no image of {max_megapixels:g} megapixels has.")
        return upright_image(content, os.fspath(path), max_megapixels=max_megapixels, whole=whole)
    except DataError as error:
        raise DataError(f"{os.fspath(path)} {error}") from None
