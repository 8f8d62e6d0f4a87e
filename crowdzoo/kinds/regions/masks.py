"""Regions as masks, which hold the class of each pixel as a network has it, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage, Region, mask_of_pixels, mask_tools
from crowdzoo.errors import DataError
from crowdzoo.reading.instances.upright_image import read_image

MOST = 256  # values of a PNG mask
Mask = NDArray[np.signedinteger[Any]]


def class_names(annotations: Annotations) -> list[str]:
    """Classes of pixels: the background first, then those that anybody marked, sorted.

    Raises:
        DataError: nobody marked anything.
    """
    marked = map(MarkedImage.parse, np.asarray(annotations.classes).tolist())
    names = sorted({region.label for image in marked for region in image.regions})
    if not names:
        raise DataError("nobody marked a region, so there is nothing to learn.")
    background = "background"
    while background in names:
        background = f"({background})"
    return [background, *names]


def mask_of(image: MarkedImage, classes: Sequence[str], height: int, width: int) -> Mask:
    """The class of each pixel, `[height, width]`, scaled to the nearest one; the surest region lies on top."""
    pixels = np.zeros((image.height, image.width), np.min_scalar_type(-len(classes)))
    pairs = sorted(zip(image.regions, image.masks, strict=True), key=lambda pair: pair[0].score or 0.0)
    for region, mask in pairs:
        pixels[mask_tools().decode(mask) > 0] = classes.index(region.label)
    return _scaled(pixels, height, width)


def image_of(mask: Mask, classes: Sequence[str], height: int, width: int) -> MarkedImage:
    """The regions of a mask, one a class, on an image of that size."""
    pixels = _scaled(mask, height, width)
    codes = (code for code in np.unique(pixels).tolist() if code)
    return MarkedImage(height, width, tuple(Region(classes[code], mask_of_pixels(pixels == code)) for code in codes))


def check_sizes(images: Iterable[tuple[Any, Path, str]], path: Any) -> None:
    """Refuses masks of another size than their image.

    Args:
        images: name, path of the file, and what an annotator marked on it, as text.
        path: of the images, for the message.

    Raises:
        DataError: names the first one.
    """
    for name, file, text in images:
        marked, (width, height) = MarkedImage.parse(text), read_image(file).size
        if (height, width) != (marked.height, marked.width):
            raise DataError(
                f"{path}: image {name!r} is of size {[height, width]} there, and {[marked.height, marked.width]} of "
                "the annotators. Give the images that they marked."
            )


def write_png(mask: Mask, classes: Sequence[str], height: int, width: int, path: Path) -> None:
    """Writes a mask in colours, whose values are the classes where these are numbers as PNG masks have, else codes."""
    from PIL import Image, PngImagePlugin

    own = all(name.isascii() and name.isdigit() and 0 < int(name) < MOST for name in classes[1:])
    values = np.array([0, *(int(name) for name in classes[1:])] if own else range(len(classes)))
    image = Image.fromarray(values[_scaled(mask, height, width)].astype(np.uint8), "P")
    colours = np.random.default_rng(0).integers(64, 256, (MOST, 3), np.uint8)
    colours[0] = 0
    image.putpalette(colours.tobytes())
    own_text = PngImagePlugin.PngInfo()
    own_text.add_text("Software", "crowdzoo")  # by which `crowdzoo predict` knows its own
    image.save(path, pnginfo=own_text)


def _scaled(pixels: Mask, height: int, width: int) -> Mask:
    """By the nearest pixel."""
    rows, columns = (
        ((np.arange(size) + 0.5) * own / size).astype(np.int64)
        for size, own in zip((height, width), pixels.shape, strict=True)
    )
    return pixels[np.ix_(rows, columns)]
