"""An image file's bytes, checked, and changed where the model's graph would not read them as people see them."""

import io
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.errors import ConfigError, DataError, shorten
from crowdzoo.files.regular import open_regular

# Format by Pillow's name -> endings of its files. MPO is a JPEG with more pictures behind the first, as phones write
FORMATS = {
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "MPO": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "PNG": (".png",),
    "GIF": (".gif",),
    "BMP": (".bmp", ".dib"),
}
_DECODERS = tuple(name for name in FORMATS if name != "MPO")  # which Pillow finds among JPEG; no other sees the bytes
MAX_MEGAPIXELS = 50.0
# Place and bytes by which files of other formats are known
_OTHERS = (
    (8, b"WEBP", "WEBP"), (0, b"II*\0", "TIFF"), (0, b"MM\0*", "TIFF"), (8, b"heic", "HEIC"), (8, b"heix", "HEIC"),
    (8, b"mif1", "HEIC"), (8, b"avif", "AVIF"), (4, b"jP  ", "JPEG 2000"), (0, b"\xffO\xffQ", "JPEG 2000"),
)  # fmt: skip

_ORIENTATION = 0x0112
_QUALITY = 95  # of JPEG files that have to be written again
_WAY_OUT = "Give a JPEG, PNG, GIF or BMP file."


@dataclass(frozen=True)
class UprightImage:
    """An image as it is stored: a JPEG or PNG file.

    Attributes:
        content: the file's bytes; where nothing had to be changed, those that were given.
        size: width and height, in pixels, as `content` has them.
        changes: what was changed or overlooked, in words that a count can be before; often none.
    """

    content: bytes
    size: tuple[int, int]
    changes: tuple[str, ...] = ()


def upright_image(
    content: bytes, name: str = "", *, max_megapixels: float = MAX_MEGAPIXELS, whole: bool = True
) -> UprightImage:
    """Checks an image, and brings it to what is stored and sent: upright, three colours or grey, 8 bits, one picture.

    | found | what happens |
    |---|---|
    | JPEG or PNG, upright, RGB or grey of 8 bits | kept byte for byte |
    | an orientation in its EXIF data | turned; JPEG is written again, with quality 95 |
    | JPEG in CMYK | RGB |
    | more than 8 bits a colour | the upper 8 |
    | a palette, or black and white | RGB |
    | transparency | laid on white |
    | several pictures (animation) | the first |
    | GIF, BMP | PNG |
    | an ending of another of these formats | what the file holds counts |
    | empty, cut off or damaged, another format, more pixels than `max_megapixels` | refused |

    Args:
        content: bytes of a file.
        name: its name, whose ending is compared with the format; "" compares nothing.
        max_megapixels: most pixels, in millions. The file's header says how many there are, before anything is decoded.
        whole: decode all of it, to find out whether it is sound; else only what has to be changed is decoded.

    Returns:
        What is stored.

    Raises:
        DataError: it is refused; the message is the end of a sentence that begins with the file.
        ConfigError: Pillow is not installed.
    """
    if not content:
        raise DataError("is empty. Copy or download it again.")
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ConfigError("reading images needs Pillow: pip install 'crowdzoo[images]'") from None
    with warnings.catch_warnings():
        # of a size that is judged below, and of damaged EXIF data
        warnings.simplefilter("ignore")
        try:
            image = Image.open(io.BytesIO(content), formats=_DECODERS)
        except Image.DecompressionBombError:
            raise DataError(_too_large("far more", max_megapixels)) from None
        except UnidentifiedImageError:
            raise DataError(f"is {_beginning(content)}. {_WAY_OUT}") from None
        except Exception as error:  # a damaged header ends in whatever a parser of it raises
            raise DataError(_damaged(error)) from None
        with image:
            width, height = image.size
            if width * height > max_megapixels * 1e6:
                raise DataError(_too_large(f"{width:,} x {height:,}", max_megapixels))
            try:
                return _upright(image, content, name, whole)
            except Exception as error:  # as above, of the pixels
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
            image.draft(image.mode, (1, 1))  # every byte is read, but pixels are computed at an eighth of the size
        image.load()
        if image.format == "PNG":
            Image.open(io.BytesIO(content), formats=("PNG",)).verify()  # checksums, which TensorFlow looks at
    if name and not name.lower().endswith(FORMATS[image.format]):
        changes.append("had the ending of another format")
    return UprightImage(content, size, tuple(changes))


def _changes(image: Any, content: bytes) -> list[str]:
    """What has to be changed."""
    kind, mode = image.format, image.mode
    changes = {
        "turned upright, as their EXIF data say": _orientation(image) > 1,
        "CMYK, now RGB": mode == "CMYK",
        # the header of a PNG file has the bits at byte 24
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
    """How the picture lies, 1 to 8 as EXIF counts; 1, upright, where nothing readable says so."""
    try:
        orientation = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # damaged EXIF data; the picture may be sound
        return 1
    return orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1


def _colours(image: Any) -> Any:
    """The first picture in RGB, or grey, of 8 bits."""
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
    """What a file seems to be instead."""
    start = content[:64].lstrip().lower()
    for marks, what in (((b"<!doctype", b"<html"), "a web page"), ((b"<svg", b"<?xml"), "SVG")):
        if start.startswith(marks):
            return f"not a readable image ({what})"
    other = next((name for at, mark, name in _OTHERS if content[at:].startswith(mark)), None)
    return f"a {other} image" if other else f"not a readable image (it begins with {content[:8]!r})"


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


def opened(values: Any) -> Any:
    """Opens the files that values name.

    Args:
        values: some of `Instances.values`, an array `[n, ...]`, or a dictionary of them; paths among objects are those
            of images.

    Returns:
        The same with the bytes of each image for its path; an array without paths itself.

    Raises:
        DataError: an image that cannot be read; names the file.
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
