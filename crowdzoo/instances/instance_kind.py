"""InstanceKind: what was labelled, how it is read, and which base model takes it for which kind of label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdzoo.instances.table import Table

__all__ = ["InstanceKind"]


@dataclass(frozen=True)
class InstanceKind:
    """One kind of instance.

    Attributes:
        name: in messages.
        bases: kind of label -> name of the base model, as configurations write it.
        wanted: columns of the table that are read; None is all.
        check_header: refuses column names, given the file's name; None where there is no table.
        fields: from the table to fields of `Instances`; None where there is no table.
    """

    name: str
    bases: Mapping[str, str]
    wanted: tuple[str, ...] | None = None
    check_header: Callable[[str, Sequence[str]], None] | None = None
    fields: Callable[[Table], dict[str, Any]] | None = None
