"""PNG masks: a folder for each annotator, with a mask for each image; 0 is the background, other values are classes.

Pixels of a class that touch each other, also at a corner, are a region; specks belong to the largest of them. A class
in very many parts is one region.
"""

import warnings
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from crowdzoo.data.regions import mask_of_pixels, mask_tools
from crowdzoo.errors import DataError, DataWarning
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.image_entry import read_image
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Marked, Record

MOST_PARTS, MOST_VALUES = 500, 50  # regions of a class in a mask, and classes from where it is said
SPECK = 0.01  # of the area of the largest part


def read_mask(file: ExportFile) -> tuple[list[int], list[dict[str, Any]]]:
    """Height and width of a mask, and its regions, of each value that is not 0; see `MarkedImage.of`.

    Raises:
        DataError: it cannot be read, or has more than one number a pixel; the end of a sentence.
    """
    mask_tools()  # says what is missing
    from PIL import Image
    from scipy.ndimage import label

    try:
        with file.open() as stream, Image.open(stream) as image:
            pixels = np.asarray(image)
    except Exception as error:  # a damaged file ends in whatever a parser raises
        raise DataError(f"is no sound image ({error}). Save it again.") from None
    if pixels.ndim != 2:
        raise DataError("has colours. Save one number a pixel, the class: grey, or a palette.")
    regions = []
    values = np.unique(pixels[pixels > 0]).tolist()
    if len(values) > MOST_VALUES:
        text = f"a mask has more than {MOST_VALUES} values, each a class. If they are smoothed edges, save it without."
        warnings.warn(text, DataWarning, stacklevel=1)  # from one place, so that it is shown once
    for value in values:
        parts, _ = label(pixels == value, np.ones((3, 3)))
        areas = np.bincount(parts.ravel())[1:]
        speck, largest = areas < SPECK * areas.max(), areas.argmax()
        parts = np.r_[0, np.where(speck, largest, np.arange(len(areas))) + 1][parts]
        if (~speck).sum() > MOST_PARTS:
            parts, speck = parts > 0, np.array([False])
        masks = (mask_of_pixels(parts == part) for part in np.flatnonzero(~speck) + 1)
        regions += [{"category": str(int(value)), "counts": mask} for mask in masks]
    return [*pixels.shape], regions


def _regions(entry: Mapping[str, Any], question: str) -> Marked:
    """Decodes the mask."""
    who, _, task = entry["mask"].annotator.partition("/")
    task = task or PurePath(entry["mask"].name).stem  # of one image
    if task == who:
        raise BadValue(None, who, "stands in no folder of its annotator. Make one for each, named after them.")
    try:
        size, regions = read_mask(entry["mask"])
    except DataError as error:
        raise BadValue(None, task, f"by {who} {error}") from None
    return Record(task, {"image": task}), size, [(who, regions)]


PNG_MASKS = Platform(
    name="png-masks",
    title="PNG masks",
    suffixes=(".png",),
    menu="Give the folder that holds a folder for each annotator, with a mask for each image.",
    records=lambda file: iter([(1, {"mask": file})]),
    is_own=lambda entry: "mask" in entry and entry["mask"].name.lower().endswith(".png"),
    questions=lambda entry: (),  # so `read` is never asked
    read=read_image,
    regions=_regions,
)
