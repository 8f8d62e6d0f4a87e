"""The kinds of instances, and which of them a file holds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from crowdzoo.errors import ConfigError, unknown
from crowdzoo.instances.images import IMAGES
from crowdzoo.instances.instance_kind import InstanceKind
from crowdzoo.instances.sentences import SENTENCES
from crowdzoo.instances.table import check_ending
from crowdzoo.instances.tables import TABLES, tables
from crowdzoo.instances.texts import TEXTS
from crowdzoo.instances.vectors import VECTORS
from crowdzoo.tables.suffixes import column_names

__all__ = ["INSTANCE_KINDS", "instance_kind", "recognised"]

INSTANCE_KINDS = (VECTORS, TEXTS, IMAGES, TABLES, SENTENCES)


def recognised(path: str | Path, inputs: Mapping[str, str] | None = None) -> InstanceKind:
    """The kind of instances that a file holds, by its name and its columns; feature vectors if no other fits.

    Args:
        path: of the file.
        inputs: types of some columns, as for `tables`: where there are any, the file is a table.

    Raises:
        DataError: the file does not exist, or is neither a table nor what another kind is read from.
    """
    path = Path(path)
    if inputs:
        return tables(inputs)
    found = _looks_like(path, ())  # what is no table has no columns
    if found is None:
        check_ending(path)
        found = _looks_like(path, column_names(path))
    return found or VECTORS


def _looks_like(path: Path, header: Sequence[str]) -> InstanceKind | None:
    kinds = (kind for kind in INSTANCE_KINDS if kind.looks_like is not None and kind.looks_like(path, header))
    return next(kinds, None)


def instance_kind(name: str) -> InstanceKind:
    """The kind of that name.

    Raises:
        ConfigError: there is none.
    """
    kinds = {kind.name: kind for kind in INSTANCE_KINDS}
    if name not in kinds:
        raise ConfigError(unknown("kind of instances", name, kinds))
    return kinds[name]
