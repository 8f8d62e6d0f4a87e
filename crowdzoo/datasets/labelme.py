"""LabelMe scenes with annotators from Amazon Mechanical Turk."""

import dataclasses
import zipfile
from pathlib import Path

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.errors import DataError
from crowdzoo.files.regular import open_regular
from crowdzoo.reading.instances.table import read_table

FOLDER = Path(__file__).with_name("labelme")

LICENCE = "CC BY 4.0"
CITATION = (
    "F. Rodrigues, F. C. Pereira: Deep Learning from Crowds. AAAI 2018 (annotations); B. C. Russell, A. Torralba, "
    "K. P. Murphy, W. T. Freeman: LabelMe. IJCV 77, 2008, and A. Oliva, A. Torralba: Modeling the Shape of the Scene. "
    "IJCV 42(3), 2001 (photographs); T. Lefort, B. Charlier, A. Joly, J. Salmon: Peerannot. Computo, 2024 (source)."
)
DESCRIPTION = (
    "1,000 photographs of eight kinds of scene, each labelled by one to three of 59 people on Amazon Mechanical Turk "
    "(2,547 annotations; a majority vote is right for 77 % of the photographs). Instances are 512 descriptors computed "
    "from the photographs without any trained network. A quarter of the tasks is held out for evaluation."
)


def load_labelme() -> CrowdDataset:
    """Loads the LabelMe set that ships with crowdzoo.

    Returns:
        1,000 tasks (names are integers), 59 annotators (0 to 58), 8 classes in alphabetical order, 512 features,
        750 tasks of split "train" and 250 of "eval".

    Raises:
        DataError: a file of the installation is missing or changed.

    Source:
        See the README next to the files; `benchmarks/datasets/labelme.py` in the repository made them.
    """
    try:
        with open_regular(FOLDER / "descriptors.npz") as stream, np.load(stream) as file:
            tasks, features = file["task"], file["features"].astype(np.float32)
        table = read_table(FOLDER / "gold.csv", ("task", "gold", "split"))
        classes, gold = np.unique(table.names("gold"), return_inverse=True)
        annotations = Annotations.from_csv(FOLDER / "annotations.csv", tasks=tasks, classes=classes)
    except DataError as error:
        raise DataError(f"{error} Install crowdzoo again.") from error
    if table.names("task").tolist() != [str(task) for task in tasks.tolist()]:
        raise DataError(f"{FOLDER}: gold.csv and descriptors.npz do not list the same tasks: install crowdzoo again.")
    return CrowdDataset(
        name="labelme",
        annotations=annotations,
        instances=features,
        gold=gold,
        split=table.names("split").astype(str),
        licence=LICENCE,
        citation=CITATION,
        description=DESCRIPTION,
    )


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
        DataError: a file of the installation is missing or changed.

    Source:
        See the README next to the file; `benchmarks/datasets/labelme_images.py` in the repository made it.
    """
    labelme = load_labelme()
    try:
        with open_regular(FILE, unzip=False) as stream, zipfile.ZipFile(stream) as archive:
            photographs = [archive.read(f"{task}.jpg") for task in labelme.annotations.tasks.tolist()]
    except (DataError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{FILE}: {error}. Install crowdzoo again.") from error
    images = np.empty(len(photographs), object)
    images[:] = photographs
    return dataclasses.replace(labelme, name="labelme-images", instances=images, description=DESCRIPTION)
