"""Loaders of real and generated crowd data sets."""

from functools import cache
from typing import Any

from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.instance_kinds import IMAGES, SENTENCES, VECTORS, InstanceKind
from crowdzoo.datasets.crowd_dataset import CrowdDataset, data_folder
from crowdzoo.datasets.fetch import fetch, public_files
from crowdzoo.datasets.generated_ner import generated_ner
from crowdzoo.datasets.generated_ratings import generated_ratings
from crowdzoo.datasets.labelme import load_labelme, load_labelme_images
from crowdzoo.datasets.write_files import write_files
from crowdzoo.errors import ConfigError, DataError, unknown
from crowdzoo.plugins import Table

__all__ = [
    "CrowdDataset",
    "data_folder",
    "fetch",
    "generated_ner",
    "generated_ratings",
    "has",
    "instances_of",
    "load",
    "load_labelme",
    "load_labelme_images",
    "names",
    "public_files",
    "write_files",
]


def __dir__() -> list[str]:
    return __all__


@cache
def _describe_added(load: Any) -> Any:
    """The entry of `_SETS` for a data set of a package or script, which is loaded for it."""
    dataset = load()
    if isinstance(dataset, CrowdSequences):
        return "sequence", SENTENCES, load
    if not isinstance(dataset, CrowdDataset):
        raise ConfigError(f"a data set function must return a CrowdDataset or CrowdSequences, not {type(dataset)}")
    return dataset.annotations.kind, IMAGES if dataset.instances.dtype == object else VECTORS, load


# name -> kind of the labels, kind of the instances, and function that loads it
_OWN = {
    "labelme": ("classification", VECTORS, load_labelme),
    "labelme-images": ("classification", IMAGES, load_labelme_images),
    "generated-ner": ("sequence", SENTENCES, generated_ner),
    "generated-ratings": ("regression", VECTORS, generated_ratings),
}
_SETS = Table("dataset", _OWN, _describe_added)


def names(kind: str = "classification") -> tuple[str, ...]:
    """Names of the data sets that ship with crowdzoo or that packages and scripts add.

    Args:
        kind: kind of their labels.
    """
    return tuple(name for name, (of, _, _) in _SETS.items() if of == kind)


def has(name: str, kind: str = "classification") -> bool:
    """Whether a data set of a kind has the name; unlike `names`, this loads no other set."""
    return name in _SETS and _SETS[name][0] == kind


def instances_of(name: str) -> InstanceKind:
    """The kind of instances that a data set of `names()` has."""
    return _SETS[name][1]


def load(name: str) -> Any:
    """Loads a data set that ships with crowdzoo, or that a package or script adds.

    Args:
        name: one of `names()`, of any kind.

    Returns:
        `CrowdDataset`, or `CrowdSequences` for kind "sequence".

    Raises:
        DataError: an unknown data set.
    """
    if name not in _SETS:
        advice = f"data set {name!r} is not here: get its files by `crowdzoo datasets {name} --fetch`."
        raise DataError(advice if name in public_files() else unknown("data set", name, _SETS))
    return _SETS[name][2]()
