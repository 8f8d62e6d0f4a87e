"""Loaders of real crowd sets, and simulated annotators."""

from collections.abc import Callable
from typing import Any

from crowdzoo.datasets.circles import ask_annotators, make_circles, neighbour_annotators
from crowdzoo.datasets.common_confusions import CommonConfusions, simulate_common_confusions
from crowdzoo.datasets.crowd_dataset import CrowdDataset
from crowdzoo.datasets.folder import data_folder
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.datasets.generated_ratings import generated_ratings
from crowdzoo.datasets.labelme import load_labelme
from crowdzoo.datasets.movie_reviews import MovieReviews, load_movie_reviews
from crowdzoo.datasets.ner_amt import NerAmt, load_ner_amt
from crowdzoo.datasets.simulated import simulate_annotations
from crowdzoo.datasets.write_files import write_files
from crowdzoo.errors import DataError, did_you_mean

__all__ = [
    "CommonConfusions",
    "CrowdDataset",
    "MovieReviews",
    "NerAmt",
    "ask_annotators",
    "data_folder",
    "generated_ner",
    "generated_ratings",
    "load",
    "load_labelme",
    "load_movie_reviews",
    "load_ner_amt",
    "make_circles",
    "names",
    "neighbour_annotators",
    "simulate_annotations",
    "simulate_common_confusions",
    "write_files",
]

_LOADERS: dict[str, Callable[[], Any]] = {
    "labelme": load_labelme,
    "generated-ner": generated_ner,
    "generated-ratings": generated_ratings,
}
_KINDS = {"generated-ner": "sequence", "generated-ratings": "regression"}


def names(kind: str = "classification") -> tuple[str, ...]:
    """Names of the data sets that ship with crowdzoo.

    Args:
        kind: of their labels.
    """
    return tuple(name for name in _LOADERS if _KINDS.get(name, "classification") == kind)


def load(name: str) -> Any:
    """Loads a data set that ships with crowdzoo.

    Args:
        name: one of `names()`, of any kind.

    Returns:
        `CrowdDataset`; of kind "sequence" `CrowdSequences`.

    Raises:
        DataError: there is no data set of that name.
    """
    if name not in _LOADERS:
        hint = did_you_mean(name, _LOADERS)
        raise DataError(f"there is no data set {name!r}; crowdzoo ships {', '.join(_LOADERS)}.{hint}")
    return _LOADERS[name]()
