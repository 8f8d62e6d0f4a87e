"""chosen: the annotations of some annotators, or of the time since a date."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError, Setting
from crowdzoo.reading.tables.options import not_excluded


def chosen(
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
        without: annotators, and from when to when their annotations go; see `Kind.read`.
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
    if keep_tasks:
        return kept
    sides = [kept.task_ids] if kept.right_ids is None else [kept.task_ids, kept.right_ids]
    tasks, codes = np.unique(np.concatenate(sides), return_inverse=True)
    right = None if kept.right_ids is None else codes[len(kept) :]
    return replace(kept, tasks=crowd.tasks[tasks], task_ids=codes[: len(kept)], right_ids=right)
