"""Reading: from files to the labels of one kind, and to what is known of the tasks."""

from __future__ import annotations

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
from crowdzoo.errors import DataError, Setting
from crowdzoo.kinds.scoring import Rows
from crowdzoo.reading.instances.export_instances import write_export_instances
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.options import not_excluded

Crowd = TypeVar("Crowd", bound=Annotations | CrowdSequences)  # what the aggregators of a kind fit
Gold = TypeVar("Gold")  # what is known of the tasks, in a kind's own form


@dataclass(frozen=True)
class Reading(Generic[Crowd, Gold]):
    """How labels of one kind are read, and written again; as annotations in tables, unless the kind has another way.

    Args:
        labels: the kind.
        counted: what is given, as tables of sizes count it: "annotations", "ratings", "sentences".
        read_gold: reads what a file knows of tasks, by their names; None: the class has its own `gold_of`.
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
        without: Sequence[tuple[str, float, float]] = (),
        **options: Any,
    ) -> Crowd:
        """Reads annotators' labels.

        Args:
            annotations: file; see `crowdzoo.data.annotations.Annotations.read`; for sentences spans or columns.
            tasks: names of the tasks, in the order of their codes; None takes those that occur. Not for sentences.
            only: names of the annotators who are kept; None: all. Tasks that nobody else labelled go, unless `tasks`
                names them. Not for sentences.
            since: annotations with a timestamp from this one on are kept, seconds since 1970. Not for sentences.
            without: annotators, and from when to when (not included) annotations with a timestamp are left out, seconds
                since 1970. Not for sentences.
            **options: any of `KindOptions.reading`.

        Returns:
            What the kind's aggregators fit: `Annotations`; for sentences `CrowdSequences`.

        Raises:
            DataError: a file that cannot be used.
        """
        table = Annotations.read(annotations, kind=self.labels.name, tasks=tasks, **options)
        column = Setting("columns", {"timestamp": "COLUMN"})
        fix = "leave it out" if options.get("platform") else f"name their column, {column}"
        keep_tasks = tasks is not None or options.get("all_tasks", False)
        return cast(Crowd, _select(table, annotations, only, since, without, keep_tasks, fix))

    def gold_of(self, crowd: Crowd, path: Path | None, layout: Layout | None = None) -> Gold | None:
        """What is known of the tasks; None where nothing is.

        Args:
            crowd: what `read` gave.
            path: file of gold, or None.
            layout: of that file.
        """
        assert self.read_gold is not None
        return None if path is None else self.read_gold(path, cast(Annotations, crowd).tasks, layout)

    def size_rows(self, crowd: Crowd, what: str = "") -> Rows:
        """Rows of a table that say how much there is.

        Args:
            crowd: what `read` gave.
            what: follows the names of what is counted, such as " trained on".
        """
        table = cast(Annotations, crowd)
        rows = [(f"{self.counted}{what}", f"{len(table):,}")]
        if table.num_rejected:  # nothing disappears quietly
            rows.append(("rows left out", f"{table.num_rejected:,}"))
        return [*rows, (f"tasks{what}", f"{table.num_tasks:,}"), ("annotators", f"{table.num_annotators:,}")]

    def write_export(
        self, crowd: Crowd, export: Export, folder: Path, columns: Mapping[str, str], keep: Collection[str] = ()
    ) -> dict[str, str | None]:
        """Writes what `read` gave of a labelling platform's export, and what the export says of the tasks.

        Args:
            crowd: what `read` gave.
            export: the export.
            folder: where the files go.
            columns: "text" or "image" -> the export's name of that column.
            keep: names of columns that are kept in addition to these.

        Returns:
            The export's name of each column of the instances -> the file's, None where it is left out.
        """
        write_annotations(cast(Annotations, crowd), folder / "annotations.csv")
        if self.labels.has_pairs:  # a task of the export is a pair of theirs
            return {}
        return write_export_instances(export, folder / "instances.csv", columns, keep)


def _select(
    crowd: Annotations,
    place: str | Path,
    only: Sequence[str] | None,
    since: float | None,
    without: Sequence[tuple[str, float, float]],
    keep_tasks: bool,
    fix: str,
) -> Annotations:
    """Some of the annotations, as if there were no others.

    Args:
        crowd: all of them.
        place: their file, for messages.
        only: names of the annotators who are kept; None: all.
        since: seconds since 1970, from which timestamps are kept; None: all. Annotations without one go.
        without: annotators, and from when to when their annotations go; see `Reading.read`.
        keep_tasks: whether tasks without annotations stay.
        fix: what to do where there are no timestamps.

    Raises:
        ConfigError: nobody has one of the names.
        DataError: there are no timestamps, or nothing is left.
    """
    rows, names = np.ones(len(crowd), bool), list(map(str, crowd.annotators.tolist()))
    for option, named in (("only", only or ()), ("exclude", [name for name, *_ in without])):
        if unmet := [name for name in named if name not in names]:
            raise not_excluded(unmet[0], place, option)
    if only is not None:
        rows &= np.isin(crowd.annotator_ids, [names.index(name) for name in only])
    if since is not None:
        if crowd.timestamp is None:
            raise DataError(f"{place}: has no timestamps, which {Setting('since')} needs: {fix}.")
        rows &= crowd.timestamp >= since
    for name, start, end in without:
        if crowd.timestamp is None:
            raise DataError(f"{place}: has no timestamps, which a time in {Setting('exclude')} needs: {fix}.")
        rows &= ~((crowd.annotator_ids == names.index(name)) & (crowd.timestamp >= start) & (crowd.timestamp < end))
    if rows.all():
        return crowd
    if not rows.any():
        options = {"only": only, "since": since, "exclude": without or None}
        flags = [str(Setting(name)) for name, value in options.items() if value is not None]
        left = "leaves" if len(flags) == 1 else "leave"
        latest = ""
        if crowd.timestamp is not None and since is not None and np.isfinite(last := np.nanmax(crowd.timestamp)):
            latest = f" The last timestamp is {datetime.fromtimestamp(last, timezone.utc):%Y-%m-%d %H:%M}."
        raise DataError(f"{place}: {' and '.join(flags)} {left} no annotation of {len(rows):,}.{latest}")
    kept = crowd.select_rows(rows)
    owners, annotator_ids = np.unique(kept.annotator_ids, return_inverse=True)
    kept = replace(kept, annotators=crowd.annotators[owners], annotator_ids=annotator_ids)
    return kept if keep_tasks else kept.select_tasks(kept.redundancy > 0)
