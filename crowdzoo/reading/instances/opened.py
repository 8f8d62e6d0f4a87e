"""Instances as they are stored and sent: images are opened, everything else stays."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.reading.instances.image_file import read_image


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
    if not any(isinstance(value, os.PathLike) for value in values.flat):
        return values
    found = np.empty(values.shape, object)
    for place, value in np.ndenumerate(values):
        found[place] = read_image(Path(value)).content if isinstance(value, os.PathLike) else value
    return found
