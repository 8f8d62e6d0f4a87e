"""Annotations from files, frames and arrays."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crowdzoo.data.annotations import VOCABULARIES, Annotations
from crowdzoo.errors import ConfigError
from crowdzoo.reading.tables.collecting import collect
from crowdzoo.reading.tables.csv import CsvSource
from crowdzoo.reading.tables.frames import array_source, frame_source
from crowdzoo.reading.tables.jsonl import JsonlSource
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, OF_LABELS, Layout
from crowdzoo.reading.tables.options import FileOptions, Rules
from crowdzoo.reading.tables.parquet import ParquetSource
from crowdzoo.reading.tables.platform_source import PlatformSource
from crowdzoo.reading.tables.sources import Source
from crowdzoo.reading.tables.suffixes import source_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


def read_annotations(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    platform: str | None = None,
    field: str | None = None,
    image: str | bool | None = None,
    **options: Unpack[FileOptions],
) -> Annotations:
    """Reads a file by its suffix, or a platform's export: what `Annotations.read` is."""
    if platform is None:
        for name, value in (("field", field), ("image", image)):
            if value:
                raise ConfigError(f"{name} belongs to an export of a labelling platform: name the platform as well.")
        return _read(source_of(path, kind, Layout.of(options)), options)
    layout, usual = Layout.of(options), Layout()
    of_tables = [name for name in LAYOUT_OPTIONS if name not in OF_LABELS]
    if laid_out := [name for name in of_tables if getattr(layout, name) != getattr(usual, name)]:
        raise ConfigError(f"{laid_out[0]} is for tables; an export of a labelling platform has a form of its own.")
    source = PlatformSource(path, kind or "classification", platform, field, image, layout)
    annotations = _read(source, options)
    source.export.warn_of(source.export.left_out + (Counter() if layout.no_label else source.export.empty))
    return annotations


def file(path: str | os.PathLike[str], kind: str | None, form: str, options: Mapping[str, Any]) -> Annotations:
    """A file of a form that is said ("csv", "tsv", "jsonl" or "parquet"), whatever its suffix."""
    layout = Layout.of(options)
    source: Source
    if form == "parquet":
        source = ParquetSource(path, kind, layout)
    elif form == "jsonl":
        source = JsonlSource(path, str(kind), layout)
    else:
        source = CsvSource(path, str(kind), "\t" if form == "tsv" else ",", layout)
    return _read(source, options)


def frame(table: Any, kind: str, options: Mapping[str, Any]) -> Annotations:
    """A pandas or polars frame, an Arrow table or a dictionary of columns."""
    return _read(frame_source(table, kind, _given(options), Layout.of(options)), options)


def arrays(columns: dict[str, Any], kind: str, options: Mapping[str, Any]) -> Annotations:
    """Columns of equal length."""
    return _read(array_source(columns, kind, _given(options)), options)


def of_source(source: Source, rules: Rules) -> Annotations:
    """Annotations of an open source; see `collect`."""
    return Annotations(**collect(source, rules))


def _read(source: Source, options: Mapping[str, Any]) -> Annotations:
    rules = {name: value for name, value in options.items() if name not in LAYOUT_OPTIONS}
    return of_source(source, Rules.of(source.label_kind, source.names, **rules))


def _given(options: Mapping[str, Any]) -> set[str]:
    """Columns whose names are given."""
    return {column for column, names in VOCABULARIES.items() if options.get(names) is not None}
