"""Reading: reads labels of one kind, and gold, from files."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.label_kinds import LabelKind
from crowdzoo.errors import ConfigError, DataError, DataWarning, Setting, shorten
from crowdzoo.kinds.scoring import Rows
from crowdzoo.reading.instances.export_instances import write_export_instances
from crowdzoo.reading.instances.table import find_instance_columns, shown_names
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.reading.tables.layout import Layout, own_encoding
from crowdzoo.reading.tables.options import not_excluded
from crowdzoo.reading.tables.suffixes import column_names

Crowd = TypeVar("Crowd", bound=Annotations | CrowdSequences)  # input of a kind's aggregators
Gold = TypeVar("Gold")  # gold of the tasks, in a kind's own form
Period = tuple[str, float, float]  # an annotator, and start and end (excluded), seconds since 1970
# An annotator and a time of `exclude`, such as bob:2026-02-14.. or bob:..2026-02-14T12:00
_PERIOD = re.compile(r"(.+?):(?=\.*\d)(\d{4}-\d\d-\d\d\S*?)?\.\.(\d{4}-\d\d-\d\d\S*)?$")
_FIRST, _LAST = "0001-01-01", "9999-12-31"


@dataclass(frozen=True)
class Reading(Generic[Crowd, Gold]):
    """Reading and writing of one kind of labels, by default from tables of annotations.

    Args:
        labels: kind of label.
        counted: name of the counted items in tables of sizes: "annotations", "ratings", "sentences".
        read_gold: reads gold from a file by task names; None: the class has its own `gold_of`.
    """

    labels: LabelKind
    counted: str
    read_gold: Callable[[Path, np.ndarray, Layout | None], Gold] | None = None

    def read(
        self,
        annotations: str | Path,
        *,
        tasks: ArrayLike | None = None,
        only: Sequence[str] | None = None,
        since: float | None = None,
        until: float | None = None,
        exclude: Sequence[str] | None = None,
        **options: Any,
    ) -> Crowd:
        """Read annotators' labels.

        Args:
            annotations: file; see `crowdzoo.data.annotations.Annotations.read`; for sentences spans or columns.
            tasks: names of the tasks, in the order of their codes; None: those that occur. Not for sentences.
            only: names of the annotators to keep; None: all. Tasks labelled only by others are dropped, unless they are
                in `tasks`. Not for sentences.
            since: earliest timestamp of annotations to keep, seconds since 1970. Not for sentences.
            until: annotations before this timestamp are kept, seconds since 1970. Not for sentences.
            exclude: names of annotators whose annotations are left out; "bob:2026-02-14.." leaves out those from this
                time on (UTC), "bob:..2026-02-14" those before it. Sentences have no times.
            **options: any of `KindOptions.reading`.

        Returns:
            Input of the kind's aggregators: `Annotations`; for sentences `CrowdSequences`.

        Raises:
            ConfigError: a time that is not a date, or an annotator without annotations.
            DataError: a file that is invalid, lacks required timestamps, or of which nothing is kept.
        """
        periods = [period for name in exclude or () if (period := period_of(name))]
        if whole := [name for name in exclude or () if not _PERIOD.match(name)]:
            options["exclude"] = whole
        table = Annotations.read(annotations, kind=self.labels.name, tasks=tasks, **options)
        column = Setting("columns", {"timestamp": "COLUMN"})
        fix = "leave it out" if options.get("platform") else f"name their column, {column}"
        keep_tasks = tasks is not None or options.get("all_tasks", False)
        return cast(Crowd, _select(table, annotations, only, (since, until), periods, keep_tasks, fix))

    def gold_of(self, crowd: Crowd, path: Path | None, layout: Layout | None = None) -> Gold | None:
        """Read gold of the tasks; None without a file.

        Args:
            crowd: result of `read`.
            path: file of gold, or None.
            layout: layout of that file.
        """
        assert self.read_gold is not None
        return None if path is None else self.read_gold(path, cast(Annotations, crowd).tasks, layout)

    def predictions_of(self, crowd: Crowd, path: Path, column: str, layout: Layout | None = None) -> Any:
        """Read a model's answers to the tasks, in the form of gold.

        Args:
            crowd: result of `read`.
            path: file with the columns task and `column`, as written by `crowdzoo predict`, or as for `gold_of`.
            column: column of the answers.
            layout: layout of that file.
        """
        layout = Layout() if layout is None else layout
        names = column_names(path, own_encoding(path, layout))
        if column in names:
            layout = replace(layout, columns={**layout.columns, "gold": column})
        elif "gold" not in find_instance_columns(str(path), names, layout, ("task", "gold"))[0]:
            form = f"Predictions have the columns task and {column}, as `crowdzoo predict` writes, or task and gold."
            raise DataError(f"{path}: has no column {column!r}; its columns are {shown_names(names)}. {form}")
        return self.gold_of(crowd, path, layout)

    def size_rows(self, crowd: Crowd, what: str = "") -> Rows:
        """Rows of a table of sizes.

        Args:
            crowd: result of `read`.
            what: suffix of the names of counted items, such as " trained on".
        """
        table = cast(Annotations, crowd)
        rows = [(f"{self.counted}{what}", f"{len(table):,}")]
        if table.num_rejected:  # never drop rows silently
            rows.append(("rows left out", f"{table.num_rejected:,}"))
        return [*rows, (f"tasks{what}", f"{table.num_tasks:,}"), ("annotators", f"{table.num_annotators:,}")]

    def write_export(
        self, crowd: Crowd, export: Export, folder: Path, columns: Mapping[str, str], keep: Collection[str] = ()
    ) -> dict[str, str | None]:
        """Write the annotations read from a labelling platform's export, and the export's data on the tasks.

        Args:
            crowd: result of `read`.
            export: the export.
            folder: folder for the files.
            columns: "text" or "image" -> name of that column in the export.
            keep: names of further columns to keep.

        Returns:
            Name of each column of the instances in the export -> its name in the file, None if left out.
        """
        write_annotations(cast(Annotations, crowd), folder / "annotations.csv")
        if self.labels.has_pairs:  # a task of the export is a pair of tasks
            return {}
        return write_export_instances(export, folder / "instances.csv", columns, keep)


def date(text: str) -> float:
    """Parse an ISO 8601 date or time to seconds since 1970; UTC unless it has another time zone.

    Raises:
        ArgumentTypeError: not a date or time.
    """
    try:
        day = datetime.fromisoformat(re.sub(" ?(Z|UTC)$", "", text))  # Python 3.10 does not read Z
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a date such as 2026-03-01") from None
    return (day if day.tzinfo else day.replace(tzinfo=timezone.utc)).timestamp()


def period_of(name: str) -> Period | None:
    """Parse an entry of `exclude` to annotator and times; None if it is only a name.

    Raises:
        ConfigError: a time that is not a date, or an end that is not after the start.
    """
    if (match := _PERIOD.match(name)) is None:
        return None
    try:
        start, end = date(match[2] or _FIRST), date(match[3] or _LAST)
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"{Setting('exclude', shorten(name))}: {error}.", setting="exclude", value=name) from None
    if start >= end:
        raise ConfigError(f"{Setting('exclude', shorten(name))}: the end is not after the start. Swap the two dates.")
    return match[1], start, end


def _select(
    crowd: Annotations,
    place: str | Path,
    only: Sequence[str] | None,
    times: tuple[float | None, float | None],
    without: Sequence[Period],
    keep_tasks: bool,
    fix: str,
) -> Annotations:
    """Select annotations, as if there were no others.

    Args:
        crowd: all annotations.
        place: file of the annotations, for messages.
        only: names of the annotators to keep; None: all.
        times: `since` and `until` of `Reading.read`. Annotations without a timestamp are dropped if one is given.
        without: annotators and periods whose annotations are dropped.
        keep_tasks: whether to keep tasks without annotations.
        fix: advice for files without timestamps.

    Raises:
        ConfigError: an unknown annotator.
        DataError: no timestamps, or no annotations left.
    """
    rows, names = np.ones(len(crowd), bool), list(map(str, crowd.annotators.tolist()))
    for option, named in (("only", only or ()), ("exclude", [name for name, *_ in without])):
        if unmet := [name for name in named if name not in names]:
            raise not_excluded(unmet[0], place, names, option)
    if only is not None:
        rows &= np.isin(crowd.annotator_ids, [names.index(name) for name in only])
    since, until = times
    if since is not None and until is not None and since >= until:
        raise ConfigError(f"{Setting('until')} is not after {Setting('since')}. Swap the two dates.")
    dated = [str(Setting(name)) for name, time in (("since", since), ("until", until)) if time is not None]
    dated += [f"a time in {Setting('exclude')}"] if without else []
    if dated and crowd.timestamp is None:
        raise DataError(f"{place}: has no timestamps, which {dated[0]} needs: {fix}.")
    time = np.zeros(len(crowd)) if crowd.timestamp is None else crowd.timestamp
    if (undated := int((rows & np.isnan(time)).sum())) and (since, until) != (None, None):
        warnings.warn(f"{place}: {dated[0]} leaves out annotations without a timestamp: {undated:,}", DataWarning, 3)
    rows &= time >= since if since is not None else True
    rows &= time < until if until is not None else True
    for name, start, end in without:
        rows &= ~((crowd.annotator_ids == names.index(name)) & (time >= start) & (time < end))
    if rows.all():
        return crowd
    if not rows.any():
        options = {"only": only, "since": since, "until": until, "exclude": without or None}
        flags = [str(Setting(name)) for name, value in options.items() if value is not None]
        left = "leaves" if len(flags) == 1 else "leave"
        latest = ""
        if dated and np.isfinite(time).any():
            ends = (datetime.fromtimestamp(float(end), timezone.utc) for end in (np.nanmin(time), np.nanmax(time)))
            latest = " Timestamps are from {:%Y-%m-%d %H:%M} to {:%Y-%m-%d %H:%M}.".format(*ends)
        raise DataError(f"{place}: {' and '.join(flags)} {left} no annotation of {len(rows):,}.{latest}")
    kept = crowd.select_rows(rows)
    owners, annotator_ids = np.unique(kept.annotator_ids, return_inverse=True)
    kept = replace(kept, annotators=crowd.annotators[owners], annotator_ids=annotator_ids)
    return kept if keep_tasks else kept.select_tasks(kept.redundancy > 0)
