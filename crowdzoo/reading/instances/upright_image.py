"""Check the bytes of an image file, and convert them if a model's graph would read them differently from viewers."""

import io
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.errors import ConfigError, DataError, shorten
from crowdzoo.files.regular import open_regular

# Format by Pillow's name -> suffixes of its files. MPO, written by phones, is a JPEG followed by further pictures
FORMATS = {
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "MPO": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "PNG": (".png",),
    "GIF": (".gif",),
    "BMP": (".bmp", ".dib"),
}
_DECODERS = tuple(name for name in FORMATS if name != "MPO")  # Pillow detects MPO in JPEG
MAX_MEGAPIXELS = 50.0
# Position and bytes that identify files of other formats
_OTHERS = (
    (8, b"WEBP", "WEBP"), (0, b"II*\0", "TIFF"), (0, b"MM\0*", "TIFF"), (8, b"heic", "HEIC"), (8, b"heix", "HEIC"),
    (8, b"mif1", "HEIC"), (8, b"avif", "AVIF"), (4, b"jP  ", "JPEG 2000"), (0, b"\xffO\xffQ", "JPEG 2000"),
)  # fmt: skip

_ORIENTATION = 0x0112
_QUALITY = 95  # of JPEG files that are written again
_WAY_OUT = "Give a JPEG, PNG, GIF or BMP file."


@dataclass(frozen=True)
class UprightImage:
    """An image to be stored: a JPEG or PNG file.

    Attributes:
        content: bytes of the file; the given bytes if nothing had to be changed.
        size: width and height of `content`, in pixels.
        changes: descriptions of changes and ignored problems, to follow a count; often empty.
    """

    content: bytes
    size: tuple[int, int]
    changes: tuple[str, ...] = ()


def upright_image(
    content: bytes, name: str = "", *, max_megapixels: float = MAX_MEGAPIXELS, whole: bool = True
) -> UprightImage:
    """Check an image, and convert it to the stored form: upright, three colours or grey, 8 bits, one picture.

    | input | result |
    |---|---|
    | JPEG or PNG, upright, RGB or grey of 8 bits | kept byte for byte |
    | an orientation in its EXIF data | rotated; JPEG is written again with quality 95 |
    | JPEG in CMYK | RGB |
    | more than 8 bits per colour | the upper 8 |
    | a palette, or black and white | RGB |
    | transparency | white background |
    | several pictures (animation) | the first |
    | GIF, BMP | PNG |
    | a suffix of another of these formats | the contents count |
    | empty, cut off or damaged, another format, more pixels than `max_megapixels` | rejected |

    Args:
        content: bytes of a file.
        name: its name, whose suffix is compared with the format; "" skips this check.
        max_megapixels: maximum number of pixels, in millions, checked in the header before decoding.
        whole: whether to decode all of it to detect damage; if not, only images that need changes are decoded.

    Returns:
        The image to store.

    Raises:
        DataError: the image is rejected; the message is the end of a sentence that starts with the file.
        ConfigError: Pillow is not installed.
    """
    if not content:
        raise DataError("is empty. Copy or download it again.")
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ConfigError("reading images needs Pillow: pip install 'crowdzoo[images]'") from None
    with warnings.catch_warnings():
        # about size, which is checked below, and damaged EXIF data
        warnings.simplefilter("ignore")
        try:
            image = Image.open(io.BytesIO(content), formats=_DECODERS)
        except Image.DecompressionBombError:
            raise DataError(_too_large("far more", max_megapixels)) from None
        except UnidentifiedImageError:
            raise DataError(f"is {_beginning(content)}. {_WAY_OUT}") from None
        except Exception as error:  # parsers of damaged headers raise all kinds of errors
            raise DataError(_damaged(error)) from None
        with image:
            width, height = image.size
            if width * height > max_megapixels * 1e6:
                raise DataError(_too_large(f"{width:,} x {height:,}", max_megapixels))
            try:
                return _upright(image, content, name, whole)
            except Exception as error:  # the same for pixels
                raise DataError(_damaged(error)) from None


def _upright(image: Any, content: bytes, name: str, whole: bool) -> UprightImage:
    from PIL import Image, ImageOps

    jpeg, size = image.format in ("JPEG", "MPO"), image.size
    changes = _changes(image, content)
    if changes:
        upright = _colours(ImageOps.exif_transpose(image) if _orientation(image) > 1 else image)
        stream = io.BytesIO()
        options = {"format": "JPEG", "quality": _QUALITY, "subsampling": 0} if jpeg else {"format": "PNG"}
        upright.save(stream, **options)
        content, size = stream.getvalue(), upright.size
    elif whole:
        if jpeg:
            image.draft(image.mode, (1, 1))  # reads every byte, but computes pixels at an eighth of the size
        image.load()
        if image.format == "PNG":
            Image.open(io.BytesIO(content), formats=("PNG",)).verify()  # checksums, which TensorFlow checks
    if name and not name.lower().endswith(FORMATS[image.format]):
        changes.append("had the ending of another format")
    return UprightImage(content, size, tuple(changes))


def _changes(image: Any, content: bytes) -> list[str]:
    """Required changes."""
    kind, mode = image.format, image.mode
    changes = {
        "turned upright, as their EXIF data say": _orientation(image) > 1,
        "CMYK, now RGB": mode == "CMYK",
        # byte 24 of a PNG header is the number of bits
        "of more than 8 bits a colour, now 8": _is_deep(image) or (kind == "PNG" and content[24] > 8),
        "of a palette or black and white, now RGB": kind == "PNG" and mode in ("P", "PA", "1"),
        "transparent, now on white": _is_transparent(image),
        "animated, now the first picture": kind in ("GIF", "PNG") and getattr(image, "n_frames", 1) > 1,
        f"{kind}, now PNG": kind in ("GIF", "BMP"),
    }
    return [change for change, applies in changes.items() if applies]


def _is_deep(image: Any) -> bool:
    return image.mode.startswith(("I", "F"))


def _is_transparent(image: Any) -> bool:
    return not _is_deep(image) and ("A" in image.mode or "transparency" in image.info)


def _orientation(image: Any) -> int:
    """EXIF orientation of the picture, 1 to 8; 1, upright, if it is not readable."""
    try:
        orientation = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # damaged EXIF data; the picture may be intact
        return 1
    return orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1


def _colours(image: Any) -> Any:
    """The first picture in RGB or grey with 8 bits."""
    from PIL import Image

    if _is_deep(image):
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if _is_transparent(image):
        picture = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
    return image if image.mode == "L" else image.convert("RGB")


def _too_large(size: str, most: float) -> str:
    return f"has {size} pixels, more than {most:g} megapixels. Make it smaller, or leave the task out."


def _damaged(error: Exception) -> str:
    return f"is cut off or damaged ({shorten(str(error)) or type(error).__name__}). Copy or download it again."


def _beginning(content: bytes) -> str:
    """Describe what a file seems to be instead."""
    start = content[:64].lstrip().lower()
    for marks, what in (((b"<!doctype", b"<html"), "a web page"), ((b"<svg", b"<?xml"), "SVG")):
        if start.startswith(marks):
            return f"not a readable image ({what})"
    other = next((name for at, mark, name in _OTHERS if content[at:].startswith(mark)), None)
    return f"a {other} image" if other else f"not a readable image (it begins with {content[:8]!r})"


_BYTES_A_PIXEL = 8  # four colours of 16 bits, which no format exceeds except for its header
_HEADER = 1 << 24  # includes thumbnails and colour profiles


def read_image(path: str | Path, *, max_megapixels: float = MAX_MEGAPIXELS, whole: bool = False) -> UprightImage:
    """Read an image in the form to be stored and sent; see `upright_image` for changes and rejections.

    Args:
        path: path of a JPEG, PNG, GIF or BMP file.
        max_megapixels: maximum number of pixels, in millions.
        whole: whether to decode all of it to detect damage; for files not checked before.

    Raises:
        DataError: no such file, or the image is rejected; names the file.
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


def opened(values: Any) -> Any:
    """Replace paths among values by the contents of the image files.

    Args:
        values: rows of `Instances.values`, an array `[n, ...]` or a dictionary of them; paths among objects are images.

    Returns:
        The values with the bytes of each image instead of its path; arrays without paths are returned unchanged.

    Raises:
        DataError: an unreadable image; names the file.
    """
    if isinstance(values, dict):
        return {name: opened(column) for name, column in values.items()}
    if not isinstance(values, np.ndarray) or values.dtype != object:
        return values
    images = values.copy()
    for place, value in np.ndenumerate(values):
        if isinstance(value, os.PathLike):
            images[place] = read_image(Path(value)).content
    return images
