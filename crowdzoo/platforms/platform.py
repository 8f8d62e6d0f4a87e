"""Platform: where the exports of one labelling platform differ from those of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crowdzoo.errors import BadRow
from crowdzoo.platforms.export_file import ExportFile
from crowdzoo.platforms.record import Record

__all__ = ["Platform"]


@dataclass(frozen=True)
class Platform:
    """One labelling platform. Each has a file in this folder, which names the pages that document its format.

    Attributes:
        name: as users write it.
        title: as the platform writes it.
        suffixes: endings of the files of an export, without .gz.
        menu: what to choose where the platform exports, as the end of a message.
        records: the entries of a file with their numbers (JSON lines and CSV: the line, from 1); a `BadRow` for one
            that cannot be taken apart.
        is_own: whether an entry has the shape of this platform.
        questions: name and sort of each question that an entry answers. Sorts: "class", "number", "spans" and "other",
            which is never chosen unless it is named. Raises `BadValue`.
        read: what an entry says, given the question, whether spans are wanted, and who annotated the file where the
            entry does not say. Raises `BadValue`.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    menu: str
    records: Callable[[ExportFile], Iterator[tuple[int, dict[str, Any] | BadRow]]]
    is_own: Callable[[Mapping[str, Any]], bool]
    questions: Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]
    read: Callable[[Mapping[str, Any], str, bool, str], Record]
