"""PNG masks: one folder per annotator, with one mask per image; 0 is the background, other values are classes.

Connected pixels of a class, also at corners, form a region. Specks are left out, and a class in very many parts is one
region.
"""

import warnings
from collections.abc import Mapping
from pathlib import PurePath
from typing import IO, Any

import numpy as np

from crowdzoo.data.regions import mask_tools
from crowdzoo.errors import DataError, DataWarning
from crowdzoo.reading.instances.upright_image import MAX_MEGAPIXELS
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.image_entry import read_image
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Marked, Record

MOST_PARTS, MOST_VALUES = 500, 50  # regions per class and number of classes in a mask, from which to warn
MOST_WORK = 1 << 31  # number of pixels times classes
SPECK, BESIDE = 4, 100  # maximum pixels of a speck, and least ratio of the largest part to it


def read_mask(file: ExportFile) -> tuple[list[int], list[dict[str, Any]], int]:
    """Read a mask: height and width; regions, see `MarkedImage.of`, of each non-zero value; and number of specks.

    Raises:
        DataError: not a PNG file, damaged, too large, in colour, or with too many values; the end of a sentence.

    Warns:
        DataWarning: very many values, or parts of a value.
    """
    mask_tools()  # raises if the package is missing
    from scipy.ndimage import label

    with file.open() as stream:
        pixels = png_pixels(stream)
    if pixels.ndim != 2:
        raise DataError("has colours. Save one number a pixel, the class: grey, or a palette.")
    regions, specks, values = [], 0, np.unique(pixels[pixels > 0]).tolist()
    if len(values) > 255 or len(values) * pixels.size > MOST_WORK:
        raise DataError(f"has {len(values):,} values, each a class, in {pixels.size:,} pixels. Save fewer classes.")
    if len(values) > MOST_VALUES:
        _warn(f"more than {MOST_VALUES} values, each a class. If they are smoothed edges, save it without.")
    for value in values:
        parts, _ = label(pixels == value, np.ones((3, 3)))
        areas = np.bincount(parts.ravel())[1:]
        kept = (areas > SPECK) | (areas * BESIDE >= areas.max())
        if kept.sum() > MOST_PARTS:
            _warn(f"a class in more than {MOST_PARTS} parts, which is taken for one region.")
            parts, kept = (parts > 0).astype(np.int32), np.array([True])
        specks += int((~kept).sum())
        flat = parts.ravel("F")
        begins = np.flatnonzero(np.diff(flat, prepend=-1))
        runs, codes = np.c_[begins, np.r_[begins[1:], flat.size]], flat[begins]
        for part in np.flatnonzero(kept) + 1:
            counts = np.diff(runs[codes == part].ravel(), prepend=0, append=flat.size).tolist()
            regions.append({"category": str(int(value)), "counts": counts})
    return [*pixels.shape], regions, specks


def png_pixels(stream: IO[bytes], mode: str | None = None) -> np.ndarray:
    """Read the pixels of a PNG image, unchanged or in a mode of Pillow.

    Raises:
        DataError: not a PNG file, damaged or too large; the end of a sentence.
    """
    mask_tools()
    from PIL import Image

    try:
        with Image.open(stream, formats=("PNG",)) as image:
            if image.width * image.height > MAX_MEGAPIXELS * 1e6:
                raise ValueError(f"more than {MAX_MEGAPIXELS:g} megapixels")
            return np.asarray(image if mode is None else image.convert(mode))
    except Exception as error:  # parsers of damaged files raise all kinds of errors
        raise DataError(f"is not a valid image ({str(error).partition(' <')[0]}). Save it again.") from None


def _warn(what: str) -> None:
    warnings.warn(f"a mask has {what}", DataWarning, stacklevel=1)  # always from here, so that it is shown once


def _regions(entry: Mapping[str, Any], question: str) -> Marked:
    """Decode the mask."""
    who, _, task = entry["mask"].annotator.partition("/")
    task = task or PurePath(entry["mask"].name).stem  # a single image
    if task == who:
        raise BadValue(None, who, "is in no folder of its annotator. Make one for each, named after them.")
    try:
        size, regions, specks = read_mask(entry["mask"])
    except DataError as error:
        raise BadValue(None, task, f"by {who} {error}") from None
    record = Record(task, {"image": task})
    record.left_out = [f"specks of {SPECK} pixels or fewer"] * specks
    return record, size, [(who, regions)]


PNG_MASKS = Platform(
    name="png-masks",
    title="PNG masks",
    suffixes=(".png",),
    menu="Give the folder that holds a folder for each annotator, with a mask for each image.",
    records=lambda file: iter([(1, {"mask": file})]),
    is_own=lambda entry: "mask" in entry and entry["mask"].name.lower().endswith(".png"),
    questions=lambda entry: (),  # so `read` is never called
    read=read_image,
    regions=_regions,
)
