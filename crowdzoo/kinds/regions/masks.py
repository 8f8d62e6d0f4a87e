"""Conversion between regions and masks with the class of each pixel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage, Region, mask_of_pixels, mask_tools
from crowdzoo.errors import DataError
from crowdzoo.kinds.scoring import Objects
from crowdzoo.reading.instances.upright_image import read_image, upright_image

if TYPE_CHECKING:
    from crowdzoo.training.crowd_model import CrowdModel
    from crowdzoo.training.pair_rows import Examples


def mask_of(image: MarkedImage, classes: Sequence[str], height: int, width: int) -> NDArray[np.integer]:
    """Class of each pixel, int `[height, width]`; where regions overlap, the one with the highest score counts."""
    pixels = np.zeros(image.size, np.min_scalar_type(-len(classes)))
    for region, mask in sorted(zip(image.regions, image.masks, strict=True), key=lambda pair: pair[0].score or 0.0):
        pixels[mask_tools().decode(mask) > 0] = classes.index(region.label)
    return _scaled(pixels, height, width)


def marked_images(masks: Iterable[NDArray[np.integer]], classes: Sequence[str], like: Iterable[MarkedImage]) -> Objects:
    """Convert masks to `MarkedImage`, objects [n], with one region per class, in the sizes of `like`."""
    images = []
    for mask, image in zip(masks, like, strict=True):
        pixels = _scaled(mask, *image.size)
        codes = (code for code in np.unique(pixels).tolist() if code)
        regions = (Region(classes[code], mask_of_pixels(pixels == code)) for code in codes)
        images.append(MarkedImage(*image.size, tuple(regions)))
    return np.array(images, object)


def write_png(mask: NDArray[np.integer], classes: Sequence[str], path: Path, like: Path) -> list[int]:
    """Write a mask in the size of an image; return its pixel values: numeric class names, else spread evenly."""
    from PIL import Image, PngImagePlugin

    (width, height), names, software = read_image(like).size, classes[1:], PngImagePlugin.PngInfo()
    own = all(name.isascii() and name.isdigit() and 0 < int(name) < 256 for name in names)
    values = np.array([0, *map(int, names)] if own else np.linspace(0, 255, len(classes)).round(), np.uint8)
    software.add_text("Software", "crowdzoo")  # marks files written by `crowdzoo predict`
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values[_scaled(mask, height, width)]).save(path, pnginfo=software)
    return values.tolist()


def check_sizes(answers: Iterable[MarkedImage], image: Path | bytes, name: object, path: Path | str | None) -> None:
    """Reject an image (`name` in `path`) whose size differs from that of an answer to it.

    Raises:
        DataError: sizes differ; names both.
    """
    width, height = (upright_image(image, whole=False) if isinstance(image, bytes) else read_image(image)).size
    for marked in answers:
        if marked.size != (height, width):
            raise DataError(
                f"{path}: image {str(name)!r} is of size {[height, width]} there, and {[*marked.size]} of an "
                "annotator. Give the images that were marked, or masks of their size."
            )


def categories(images: Iterable[MarkedImage]) -> set[str]:
    """Categories that annotators used."""
    return {region.label for image in images for region in image.regions}


def class_names(annotations: Annotations) -> list[str]:
    """Classes of pixels: the background, then marked classes, sorted.

    Raises:
        DataError: there are no regions, or there are points.
    """
    if any(image.points for image in np.asarray(annotations.values)):
        raise DataError("points have no pixels, which networks for masks learn. Leave them out.")
    names = sorted(categories(np.asarray(annotations.values)))
    if not names:
        raise DataError("nobody marked a region, so there is nothing to learn.")
    return ["(background)" if "background" in names else "background", *names]


def predict_images(model: CrowdModel, x: Examples, annotations: Annotations, like: Iterable[MarkedImage]) -> Objects:
    """Predictions of a segmentation network, in the sizes of the images `like`, [n]."""
    masks = model.predict(x, verbose=0).argmax(axis=-1)
    return marked_images(masks, class_names(annotations), like)


def _scaled(pixels: NDArray[np.integer], *size: int) -> NDArray[np.integer]:
    """Scale by nearest neighbour."""
    places = (((np.arange(new) + 0.5) * old / new).astype(int) for new, old in zip(size, pixels.shape, strict=True))
    return pixels[np.ix_(*places)]
