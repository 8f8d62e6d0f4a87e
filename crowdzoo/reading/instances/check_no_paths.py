"""Texts that are to be sent, and are the paths of images."""

import os

import numpy as np

from crowdzoo.errors import ServingError, short_repr
from crowdzoo.reading.instances.images import ENDINGS


def check_no_paths(name: str, values: np.ndarray) -> None:
    """Refuses texts that are paths of image files, which would be sent as they stand.

    Args:
        name: of the input, for messages.
        values: objects [n], ...

    Raises:
        ServingError: the first text that ends as an image's name does, where there is such a file.
    """
    for place, value in np.ndenumerate(values):
        if isinstance(value, str) and value.lower().endswith(ENDINGS) and os.path.isfile(value):
            raise ServingError(
                f"input {name!r}: {short_repr(value)} at {list(place)} is a text, and the path of an image is needed "
                "as a Path: give pathlib.Path(...), or the bytes of the file."
            )
