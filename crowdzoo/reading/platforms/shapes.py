"""Conversion of platforms' shapes, rotated or run-length encoded, to the forms of `MarkedImage.of`."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.data.regions import mask_of_pixels, mask_tools
from crowdzoo.errors import DataError, short_repr
from crowdzoo.reading.platforms.png_masks import png_pixels

_FAR = 2  # in sides of the image; shapes farther outside are mistakes
_CIRCLE = np.linspace(0, 2 * np.pi, 72, endpoint=False)


@contextmanager
def named(label: Any, value: Any) -> Iterator[None]:
    """Add the shape to the message of an error.

    Args:
        label: class of the shape.
        value: value in the export.
    """
    try:
        yield
    except (DataError, LookupError, TypeError, ValueError, OverflowError) as error:
        why = error if isinstance(error, DataError) else "is not a shape. Mark it again, or leave it out."
        raise DataError(f"region ({label}): {short_repr(value)} {why}") from None


def point_of(x: Any, y: Any, label: Any) -> dict[str, Any]:
    """Convert a point to a region.

    Args:
        x: pixels from the left edge of the image, a number or text.
        y: pixels from the top edge.
        label: name of its class.

    Raises:
        DataError: a coordinate is missing or not a number.
    """
    with named(label, [x, y]):
        return {"category": label, "point": [float(x), float(y)]}


def box(left_top: ArrayLike, sides: ArrayLike, size: Sequence[int], degrees: float, about: ArrayLike) -> dict[str, Any]:
    """Create a box, or the mask of a rotated one, clipped to the image.

    Args:
        left_top: left top corner before rotation, in pixels.
        sides: width and height.
        size: height and width of the image.
        degrees: clockwise rotation.
        about: centre of rotation, in widths and heights from the left top corner.

    Raises:
        DataError: no area, or far outside the image.
    """
    first, wide = np.array(left_top, np.float64), np.array(sides, np.float64)
    if degrees % 360 == 0:
        return {"bbox": [*first.tolist(), *wide.tolist()]}
    if not (wide > 0).all():
        raise DataError("has no area. Mark it again, or leave it out.")
    corners = first + wide * [[0, 0], [1, 0], [1, 1], [0, 1]]
    return _turned(corners, first + wide * np.array(about), degrees, size)


def ellipse(centre: ArrayLike, radii: ArrayLike, size: Sequence[int], degrees: float) -> dict[str, Any]:
    """Create the mask of an ellipse as a polygon with 72 corners; arguments as for `box`, in pixels."""
    middle = np.array(centre, np.float64)
    around = np.array(radii, np.float64) * np.stack([np.cos(_CIRCLE), np.sin(_CIRCLE)], axis=1)
    return _turned(middle + around, middle, degrees, size)


def _turned(points: NDArray[np.float64], about: NDArray[np.float64], degrees: float, size: Sequence[int]) -> Any:
    angle = np.radians(degrees)
    turn = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    turned = (points - about) @ turn + about
    if not (np.abs(turned) <= _FAR * max(size)).all():
        raise DataError("lies far outside of the image, or has a number that is not finite. Mark it again.")
    (mask,) = mask_tools().frPyObjects([turned.ravel().tolist()], *size)
    return {"counts": str(mask["counts"], "ascii")}


def rows_mask(runs: Sequence[Any], place: Sequence[int], size: Sequence[int]) -> dict[str, Any]:
    """Create the mask of part of an image from row-wise runs, alternately outside and inside, as written by CVAT.

    Args:
        runs: lengths of the runs.
        place: left, top, width and height of the part.
        size: height and width of the image.

    Raises:
        DataError: the part is not within the image, or the runs do not fill it.
    """
    lengths, (left, top, width, height) = np.array(runs, np.int64), place
    if min(place) < 0 or left + width > size[1] or top + height > size[0]:
        raise DataError(f"lies outside of the image, {size[1]} x {size[0]} pixels. Correct it, or the size.")
    if ((lengths < 0) | (lengths > width * height)).any() or lengths.sum() != width * height:
        raise DataError(f"has runs of {lengths.sum():,} pixels, and a part of {width} x {height}. Mark it again.")
    pixels = np.zeros(size, bool)
    inside = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
    pixels[top : top + height, left : left + width] = inside.reshape(height, width)
    return {"counts": mask_of_pixels(pixels)}


def brush_mask(rle: Sequence[int], size: Sequence[int]) -> dict[str, Any]:
    """Create a mask of the pixels with non-zero alpha from an RGBA image packed by Label Studio.

    Args:
        rle: bytes. The header has 32 bits for the number of values, 5 for the bits per value, and four times 4 for the
            bits per length, each minus one. Each part has one bit for whether its values are equal, 2 bits for the
            choice of length bits, the length minus one, and the value or values.
        size: height and width of the image.

    Raises:
        DataError: an image of another size.

    Source:
        https://github.com/thi-ng/umbrella/blob/develop/packages/rle-pack, `decode`.
    """
    bits, place = "".join(f"{byte:08b}" for byte in bytes(rle)), 0

    def read(number: int) -> int:
        nonlocal place
        place += number
        return int(bits[place - number : place], 2)

    total, depth, widths = read(32), read(5) + 1, [read(4) + 1 for _ in range(4)]
    if total != 4 * size[0] * size[1]:
        raise DataError(f"has {total:,} numbers, and four for each of {size[1]} x {size[0]} pixels are needed.")
    pixels, counts, left = [], [], total
    while left > 0:
        is_one, length = read(1), read(widths[read(2)]) + 1
        values = [read(depth) for _ in range(1 if is_one else length)]
        pixels += values
        counts += [length] if is_one else [1] * length
        left -= length
    alpha = np.repeat(np.array(pixels) > 0, counts)[3:total:4]
    return {"counts": mask_of_pixels(alpha.reshape(*size))}


def url_mask(url: str, size: Sequence[int]) -> dict[str, Any]:
    """Create a mask of the pixels with non-zero alpha from a PNG image in a data URL.

    Args:
        url: "data:image/png;base64," followed by the image.
        size: height and width of the image.

    Raises:
        DataError: not such a URL, or an image that is damaged or of another size.
    """
    head, _, text = str(url).partition(",")
    if head != "data:image/png;base64":
        raise DataError("is not the data URL of a PNG image. Mark it again.")
    pixels = png_pixels(io.BytesIO(base64.b64decode(text, validate=True)), "RGBA")[..., 3]
    if [*pixels.shape] != [*size]:
        raise DataError(f"has {pixels.shape[1]} x {pixels.shape[0]} pixels, and the image {size[1]} x {size[0]}.")
    return {"counts": mask_of_pixels(pixels > 0)}


_LONGEST = 1 << 16  # values in a part


def brush_rle(pixels: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack a mask like Label Studio's RGBA image of a brush, whose pixels are four times 255 or 0.

    The header has 32 bits for the number of values, 5 for the bits per value, and four times 4 for the bits per length
    (each except the first minus one). Each part has one bit for equal values, 2 bits for the choice of length bits, its
    length minus one, and the value. `crowdzoo.reading.platforms.shapes.brush_mask` is the inverse.

    Args:
        pixels: bool `[H, W]`.

    Returns:
        The bytes.

    Source:
        https://github.com/thi-ng/umbrella/blob/develop/packages/rle-pack, `encode`.
    """
    flat = pixels.ravel()
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    lengths = 4 * np.diff(starts, append=flat.size)
    parts = -(-lengths // _LONGEST)
    sizes = np.full(parts.sum(), _LONGEST)
    sizes[np.cumsum(parts) - 1] = lengths - (parts - 1) * _LONGEST
    values = np.repeat(255 * flat[starts].astype(np.int64), parts)
    words = (1 << 26 | 3 << 24 | (sizes - 1) << 8 | values).astype(">u4")
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 32)[:, 5:]
    head = f"{4 * flat.size:032b}{7:05b}" + f"{15:04b}" * 4
    return np.packbits(np.concatenate([np.array([*head], np.uint8), bits.ravel()]))
