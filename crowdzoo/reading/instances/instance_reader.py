"""InstanceReader: how a file of one kind of instances is known and read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdzoo.data.instance_kinds import InstanceKind
from crowdzoo.reading.instances.table import Table
from crowdzoo.reading.tables.layout import Layout


@dataclass(frozen=True, eq=False)
class InstanceReader(InstanceKind):
    """A kind of instance with what reads it.

    Attributes:
        values: from the table to `Instances.values` and `Instances.names`.
        looks_like: whether a file, given its path, our names of its columns and its layout, holds this kind; the names
            are empty for what is no table, such as a text file. None: the kind is not known by its file, or is the one
            that is left over.
        wanted: columns of the table that are read; None is all.
        check_header: refuses column names, given the file's name.
        table: reads the table from a path, where it is not a file of columns as it stands; `wanted` and `check_header`
            are not used then.
        as_text: whether features of a CSV file are read as they are written, and not as numbers.

    Other attributes: see `InstanceKind`.
    """

    values: Callable[[Table], tuple[Any, tuple[str, ...] | None]]
    looks_like: Callable[[Path, Sequence[str], Layout | None], bool] | None = None
    wanted: tuple[str, ...] | None = None
    check_header: Callable[[str, Sequence[str]], None] = lambda name, header: None
    table: Callable[[Path, Layout | None], Table] | None = None
    as_text: bool = False
