"""Annotations from files, frames and arrays."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from crowdzoo.data.annotations import VOCABULARIES, Annotations
from crowdzoo.data.label_kinds import PREFERENCE
from crowdzoo.data.vocabulary import sort_names
from crowdzoo.errors import BadRow, ConfigError, DataWarning, Setting, unknown
from crowdzoo.files.text import readable
from crowdzoo.reading.platforms.export import Export, counted
from crowdzoo.reading.platforms.record import Record
from crowdzoo.reading.tables.collecting import collect
from crowdzoo.reading.tables.frames import array_source, frame_source
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, OF_LABELS, Layout
from crowdzoo.reading.tables.options import FileOptions, ReadingOptions, Rules
from crowdzoo.reading.tables.sources import SLOW_ROWS, Batch, Source
from crowdzoo.reading.tables.suffixes import source_of

_Row = tuple[Record, str, Any, float, float]  # record, annotator, label, duration in seconds, timestamp


class PlatformSource(Source):
    """Annotations of an export, one row per label; gold is ignored.

    Args:
        export: the export.
        kind: kind of the labels.
        layout: defines missing labels, and the label for none; without the latter, answers without a label are left
            out.

    Raises:
        ConfigError: an export with spans, which have other readers.
    """

    text = sparse = True

    def __init__(self, export: Export, kind: str, layout: Layout):
        super().__init__(kind, replace(layout, columns={}))  # only for tables
        if export.spans:
            raise ConfigError("an export with spans is read by crowdzoo.sequences.read_spans(path, platform=...).")
        self.export, self.path, self.name = export, export.path, export.name
        self.tasks: dict[str, None] = {}  # including tasks without answers

    def batches(self) -> Iterator[Batch]:
        """Iterate over the export from its start."""
        platform, image = self.export.platform, self.export.image
        ends = {"label": self.export.question}
        self.found = {what: platform.column(what, ends.get(what, "")) for what in self.required}  # "" if none
        if image is not None:
            self.found["task"] = platform.column("data", image)
        nothing = [] if self.layout.no_label is None else [self.layout.no_label]
        rows: list[_Row] = []
        bad: list[tuple[BadRow, str]] = []
        for record in self.export.records():
            if isinstance(record, BadRow):
                bad.append((record, str(record.value)))
            else:
                self.tasks[record.task] = None
                self.images |= {image.text: image for image in record.images}
                for (who, labels), seconds, time in zip(record.answers, record.seconds, record.times, strict=True):
                    if who is not None:
                        rows += [(record, who, label, seconds, time) for label in labels or nothing]
            if len(rows) + len(bad) >= SLOW_ROWS:
                yield self._batch(rows, bad)
                rows, bad = [], []
        self.void = counted(self.export.left_out + self.export.empty)
        yield self._batch(rows, bad)

    def _batch(self, rows: list[_Row], bad: list[tuple[BadRow, str]]) -> Batch:
        values = ((record.task, who, label) for record, who, label, *_ in rows)
        if self.export.pairs:
            values = ((*label[:2], who, label[2]) for _, who, label, *_ in rows)
        columns = zip(*values, strict=True) if rows else ((),) * len(self.required)

        def originals(wanted: Sequence[int]) -> list[str]:
            return [readable(json.dumps(rows[row][0].entry, ensure_ascii=False, default=str)) for row in wanted]

        arrays = {name: pa.array(cells, pa.large_string()) for name, cells in zip(self.required, columns, strict=True)}
        arrays["seconds"], arrays["timestamp"] = (pa.array([row[at] for row in rows], pa.float64()) for at in (3, 4))
        return Batch(arrays, np.array([record.row for record, *_ in rows], np.int64), originals, bad)


if TYPE_CHECKING:
    from typing_extensions import Unpack


def read_annotations(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    platform: str | None = None,
    field: str | None = None,
    image: str | bool | None = None,
    all_tasks: bool = False,
    **options: Unpack[FileOptions],
) -> Annotations:
    """Read a file by its suffix, or a platform's export; see `Annotations.read`."""
    if platform is None:
        if image:
            raise ConfigError(f"{Setting('image')} belongs to an export of a labelling platform: name it as well.")
        return _read(source_of(path, kind, replace(Layout.of(options), question=field)), options)
    layout, usual = Layout.of(options), Layout()
    own = (*OF_LABELS, "encoding", "separator", *(["columns"] if kind == PREFERENCE.name else []))
    of_tables = [name for name in LAYOUT_OPTIONS if name not in own]
    if laid_out := [name for name in of_tables if getattr(layout, name) != getattr(usual, name)]:
        raise ConfigError(f"{laid_out[0]} is for tables; an export of a labelling platform has a form of its own.")
    kind = kind or "classification"
    export = Export(path, platform, kind, field, image, layout)
    source = PlatformSource(export, kind, layout)
    annotations = _read(source, options)
    if all_tasks and annotations.right_ids is None and options.get("tasks") is None:
        annotations = _with_tasks(annotations, source.tasks)
    if len(export.files) > 1 < annotations.num_annotators and annotations.redundancy.max() < 2:
        text = "no task has the answers of two annotators. Do their files name tasks alike?"
        if not export.regions:  # the reader of regions warns by itself
            warnings.warn(f"{source.name}: {text}", DataWarning, stacklevel=3)
    export.warn_of(export.left_out + (Counter() if layout.no_label else export.empty))
    return annotations


def _with_tasks(annotations: Annotations, names: Iterable[str]) -> Annotations:
    """Add tasks without answers, in sorted order."""
    answered = [*map(str, annotations.tasks.tolist())]
    every = pa.array([*answered, *sorted({*names} - {*answered})], pa.large_string())
    order, tasks = sort_names(every, True)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    tasks = tasks if isinstance(tasks, np.ndarray) else tasks.to_numpy(zero_copy_only=False)
    return replace(annotations, tasks=tasks, task_ids=places[annotations.task_ids])


def file(path: str | os.PathLike[str], kind: str | None, form: str, options: Mapping[str, Any]) -> Annotations:
    """Read a file in a given format ("csv", "tsv", "jsonl" or "parquet"), regardless of its suffix."""
    return _read(source_of(path, kind, Layout.of(options), f".{form}"), options)


def frame(table: Any, kind: str, options: Mapping[str, Any]) -> Annotations:
    """Read a pandas or polars frame, an Arrow table or a dictionary of columns."""
    return _read(frame_source(table, kind, _given(options), Layout.of(options)), options)


def arrays(columns: dict[str, Any], kind: str, options: Mapping[str, Any]) -> Annotations:
    """Read columns of equal length."""
    return _read(array_source(columns, kind, _given(options)), options)


def of_source(source: Source, rules: Rules) -> Annotations:
    """Read an open source; see `collect`."""
    return Annotations(**collect(source, rules))


def _read(source: Source, options: Mapping[str, Any]) -> Annotations:
    known = {*LAYOUT_OPTIONS, *ReadingOptions.__annotations__}
    for name in options.keys() - known:
        raise TypeError(unknown("option of reading annotations", name, sorted(known)))
    rules = {name: value for name, value in options.items() if name not in LAYOUT_OPTIONS}
    return of_source(source, Rules.of(source.label_kind, source.names, **rules))


def _given(options: Mapping[str, Any]) -> set[str]:
    """Columns with given names."""
    return {column for column, names in VOCABULARIES.items() if options.get(names) is not None}
