"""Shapes as platforms draw them, turned or run-length encoded, in the forms of `MarkedImage.of`."""

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

_FAR = 2  # sides of the image; a shape that lies farther outside is a mistake
_CIRCLE = np.linspace(0, 2 * np.pi, 72, endpoint=False)


@contextmanager
def named(label: Any, value: Any) -> Iterator[None]:
    """Says of which shape an error is.

    Args:
        label: its class.
        value: as the export has it.
    """
    try:
        yield
    except (DataError, LookupError, TypeError, ValueError, OverflowError) as error:
        why = error if isinstance(error, DataError) else "is not a shape. Mark it again, or leave it out."
        raise DataError(f"region ({label}): {short_repr(value)} {why}") from None


def point_of(x: Any, y: Any, label: Any) -> dict[str, Any]:
    """A point as a region.

    Args:
        x: pixels from the left edge of the image, a number or its text.
        y: pixels from the top edge.
        label: name of its class.

    Raises:
        DataError: a coordinate is missing or is not a number.
    """
    with named(label, [x, y]):
        return {"category": label, "point": [float(x), float(y)]}


def box(left_top: ArrayLike, sides: ArrayLike, size: Sequence[int], degrees: float, about: ArrayLike) -> dict[str, Any]:
    """A box, or the mask of one that is turned, of which what lies outside of the image is cut off.

    Args:
        left_top: before it is turned, in pixels.
        sides: width and height.
        size: height and width of the image.
        degrees: by which it is turned clockwise.
        about: the point that stays where it is, in widths and heights from the left top.

    Raises:
        DataError: it has no area, or lies far outside of the image.
    """
    first, wide = np.array(left_top, np.float64), np.array(sides, np.float64)
    if degrees % 360 == 0:
        return {"bbox": [*first.tolist(), *wide.tolist()]}
    if not (wide > 0).all():
        raise DataError("has no area. Mark it again, or leave it out.")
    corners = first + wide * [[0, 0], [1, 0], [1, 1], [0, 1]]
    return _turned(corners, first + wide * np.array(about), degrees, size)


def ellipse(centre: ArrayLike, radii: ArrayLike, size: Sequence[int], degrees: float) -> dict[str, Any]:
    """The mask of an ellipse, a polygon of 72 corners; arguments as for `box`, in pixels."""
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
    """The mask of a part of an image, whose runs go row by row, outside and inside in turn, as CVAT writes it.

    Args:
        runs: their lengths.
        place: left, top, width and height of the part.
        size: height and width of the image.

    Raises:
        DataError: the part does not lie in the image, or the runs do not fill it.
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
    """The pixels whose alpha is not 0, of an image RGBA as Label Studio packs it.

    Args:
        rle: bytes. 32 bits say how many values there are, 5 of how many bits a value is, and four times 4 of how many
            bits a length is, each less one. Then parts follow: a bit whether all values of the part are one, 2 which
            length it has, the length less one, and the value, or the values.
        size: height and width of the image.

    Raises:
        DataError: it is of an image of another size.

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
    """The pixels whose alpha is not 0, of a PNG image in a data URL.

    Args:
        url: "data:image/png;base64," and the image.
        size: height and width of the image.

    Raises:
        DataError: it is not such a URL, its image is damaged, or of another size.
    """
    head, _, text = str(url).partition(",")
    if head != "data:image/png;base64":
        raise DataError("is not the data URL of a PNG image. Mark it again.")
    pixels = png_pixels(io.BytesIO(base64.b64decode(text, validate=True)), "RGBA")[..., 3]
    if [*pixels.shape] != [*size]:
        raise DataError(f"has {pixels.shape[1]} x {pixels.shape[0]} pixels, and the image {size[1]} x {size[0]}.")
    return {"counts": mask_of_pixels(pixels > 0)}


_LONGEST = 1 << 16  # numbers of a part


def brush_rle(pixels: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A mask as Label Studio packs the image RGBA of a brush, whose pixels are 255 four times, or 0.

    The 32 bits of the number of values, 5 of the bits of a value, and four times 4 of the bits of a length (each but
    the first less one) come first. A part is a bit that says that its values are one, 2 that say which length it has,
    its length less one, and the value. `crowdzoo.reading.platforms.shapes.brush_mask` is the way back.

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
