"""InstanceKind: what was labelled, how a file of it is known and read, and which base model takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdzoo.reading.instances.table import Table
from crowdzoo.reading.tables.layout import Layout

__all__ = ["InstanceKind"]


@dataclass(frozen=True)
class InstanceKind:
    """One kind of instance.

    Attributes:
        name: in messages, and in the settings of the pipeline's components.
        bases: kind of label -> name of the base model, as configurations write it.
        looks_like: whether a file, given its path, our names of its columns and its layout, holds this kind; the names
            are empty for what is no table, such as a text file. None: the kind is not known by its file, or is the one
            that is left over.
        wanted: columns of the table that are read; None is all.
        check_header: refuses column names, given the file's name; None where there is no table.
        table: reads the table from a path, where it is not a file of columns as it stands; `wanted` and `check_header`
            are not used then.
        values: from the table to `Instances.values` and `Instances.names`; None where there is no table.
        as_text: whether features of a CSV file are read as they are written, and not as numbers.

    Kinds are equal where their names are.
    """

    name: str
    bases: Mapping[str, str] = field(compare=False)
    looks_like: Callable[[Path, Sequence[str], Layout | None], bool] | None = field(default=None, compare=False)
    wanted: tuple[str, ...] | None = field(default=None, compare=False)
    check_header: Callable[[str, Sequence[str]], None] | None = field(default=None, compare=False)
    table: Callable[[Path, Layout | None], Table] | None = field(default=None, compare=False)
    values: Callable[[Table], tuple[Any, tuple[str, ...] | None]] | None = field(default=None, compare=False)
    as_text: bool = field(default=False, compare=False)
