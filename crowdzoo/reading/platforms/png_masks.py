"""PNG masks: a folder for each annotator, with a mask for each image; 0 is the background, other values are classes."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from crowdzoo.data.regions import mask_of_pixels, mask_tools
from crowdzoo.reading.platforms.image_entry import read_image
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Marked, Record


def _regions(entry: Mapping[str, Any], question: str) -> Marked:
    """Decodes the mask; equal values are one region."""
    mask_tools()  # says what is missing
    from PIL import Image

    who, _, task = entry["mask"].annotator.partition("/")
    task = task or PurePath(entry["mask"].name).stem  # of one image
    if task == who:
        raise BadValue(None, who, "stands in no folder of its annotator. Make one for each, named after them.")
    try:
        with entry["mask"].open() as stream, Image.open(stream) as image:
            pixels = np.asarray(image)
    except Exception as error:  # a damaged file ends in whatever a parser raises
        raise BadValue(None, task, f"by {who} is no sound image ({error}). Save it again.") from None
    if pixels.ndim != 2:
        raise BadValue(None, task, f"by {who} has colours. Save one number a pixel, the class: grey, or a palette.")
    values = np.unique(pixels[pixels > 0]).tolist()
    regions = [{"category": str(int(value)), "counts": mask_of_pixels(pixels == value)} for value in values]
    return Record(task, {"image": task}), [*pixels.shape], [(who, regions)]


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
