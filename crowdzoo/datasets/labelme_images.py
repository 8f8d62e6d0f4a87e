"""LabelMe's photographs themselves, small, with annotators from Amazon Mechanical Turk."""

import dataclasses
import zipfile
from pathlib import Path

import numpy as np

from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.datasets.labelme import load_labelme
from crowdzoo.errors import DataError
from crowdzoo.files.regular import open_regular

FILE = Path(__file__).with_name("labelme_images") / "images.zip"
DESCRIPTION = (
    "The photographs of the set labelme themselves, 64 x 64 pixels: 1,000 JPEG files of eight kinds of scene, each "
    "labelled by one to three of 59 people on Amazon Mechanical Turk. Tasks, annotations, gold and split are those of "
    "labelme."
)


def load_labelme_images() -> CrowdDataset:
    """Loads the photographs of LabelMe that ship with crowdzoo.

    Returns:
        As `load_labelme`, with the bytes of 1,000 JPEG files as instances, objects [1000].

    Raises:
        DataError: a file of the installation is missing or was changed.

    Source:
        See the README beside the file; `benchmarks/datasets/labelme_images.py` in the repository made it.
    """
    labelme = load_labelme()
    try:
        with open_regular(FILE, unzip=False) as stream, zipfile.ZipFile(stream) as archive:
            found = [archive.read(f"{task}.jpg") for task in labelme.annotations.tasks.tolist()]
    except (DataError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{FILE}: {error}. Install crowdzoo again.") from error
    images = np.empty(len(found), object)
    images[:] = found
    return dataclasses.replace(labelme, name="labelme-images", instances=images, description=DESCRIPTION)
