"""Loaders of real crowd sets, and simulated annotators."""

from crowdzoo.datasets.circles import ask_annotators, make_circles, neighbour_annotators
from crowdzoo.datasets.common_confusions import CommonConfusions, simulate_common_confusions
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.datasets.folder import data_folder
from crowdzoo.datasets.labelme import load_labelme
from crowdzoo.datasets.simulated import simulate_annotations
from crowdzoo.datasets.write_files import write_files
from crowdzoo.errors import DataError, did_you_mean

__all__ = [
    "CommonConfusions",
    "CrowdDataset",
    "ask_annotators",
    "data_folder",
    "load",
    "load_labelme",
    "make_circles",
    "names",
    "neighbour_annotators",
    "simulate_annotations",
    "simulate_common_confusions",
    "write_files",
]

_LOADERS = {"labelme": load_labelme}


def names() -> tuple[str, ...]:
    """Names of the data sets that ship with crowdzoo."""
    return tuple(_LOADERS)


def load(name: str) -> CrowdDataset:
    """Loads a data set that ships with crowdzoo.

    Args:
        name: one of `names()`.

    Raises:
        DataError: there is no data set of that name.
    """
    if name not in _LOADERS:
        hint = did_you_mean(name, _LOADERS)
        raise DataError(f"there is no data set {name!r}; crowdzoo ships {', '.join(_LOADERS)}.{hint}")
    return _LOADERS[name]()
