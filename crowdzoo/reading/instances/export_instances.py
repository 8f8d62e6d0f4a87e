"""Write the task data of a labelling platform's export as a file of instances."""

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from crowdzoo.errors import BadRow, ConfigError, DataError, Setting, did_you_mean
from crowdzoo.files.text import is_text, shown
from crowdzoo.files.writing import write_rows
from crowdzoo.reading.platforms.export import Export, is_picture
from crowdzoo.reading.platforms.record import Record

_OURS = ("task", "gold", "split")


def write_export_instances(
    export: Export, path: str | Path, columns: Mapping[str, str] | None = None, keep: Collection[str] = ()
) -> dict[str, str | None]:
    """Write one row per task: name, what annotators saw, and gold if the export has any.

    The columns `text` and `image` are the export's column of that name, the one named in `columns`, or the only
    candidate. If there is a text or image, other columns are left out; if there is neither, all are kept. Columns
    called task, gold or split get the prefix "data_".

    Args:
        export: the export. Unusable gold is left out with a warning.
        path: path of the file, which is written atomically.
        columns: "text" or "image" -> name of that column in the export; may be empty.
        keep: names of further columns to keep with text and image.

    Returns:
        Name of each column in the export -> its name in the file, None if left out. No file is written if the export
        has only tasks and answers.

    Raises:
        ConfigError: the export lacks a column in `columns` or `keep`.
        DataError: see `Export.records`; or a value with a NUL or a lone surrogate.
    """
    tasks: dict[str, dict[str, str]] = {}
    gold: dict[str, str] = {}
    left_out: Counter[str] = Counter()
    for record in export.records():
        if isinstance(record, BadRow):  # reported when the annotations were read
            continue
        tasks.setdefault(record.task, {}).update(_cells(export, record))
        for who, labels in record.answers:
            if who is None:
                _add_gold(gold, left_out, record.task, labels)
    export.warn_of(left_out)
    columns_in_file = list(dict.fromkeys(name for cells in tasks.values() for name in cells))
    for option, own in [*(columns or {}).items(), *(("keep", own) for own in keep)]:
        if own not in columns_in_file:
            listed = ", ".join(f"'{column}'" for column in columns_in_file) or "none"
            hint = did_you_mean(own, columns_in_file)
            raise ConfigError(f"{Setting(option, own)} is not a column of the export; there are: {listed}.{hint}")
    names = _names(columns_in_file, tasks, {own: name for name, own in (columns or {}).items()}, keep)
    written = {own: name for own, name in names.items() if name is not None}
    header = ["task", *written.values(), *(["gold"] if gold else [])]
    if len(header) == 1:
        return names
    rows = (
        [task, *(cells.get(name, "") for name in written), *([gold.get(task, "")] if gold else [])]
        for task, cells in tasks.items()
    )
    write_rows(path, header, rows)
    return names


def _add_gold(gold: dict[str, str], left_out: Counter[str], task: str, labels: list[str]) -> None:
    """Store a task's first gold, if it is a single label."""
    if not labels:
        return
    if len(labels) != 1:
        left_out["gold with several labels"] += 1
    elif gold.setdefault(task, labels[0]) != labels[0]:
        left_out["gold that differs from the task's first"] += 1


def _cells(export: Export, record: Record) -> dict[str, str]:
    """A record's data as text."""
    cells = {}
    for name, value in record.data.items():
        if isinstance(value, str):
            cell = value
        elif value is None or (isinstance(value, float) and math.isnan(value)):
            cell = ""
        else:
            cell = json.dumps(value, ensure_ascii=False)
        if not is_text(cell) or not is_text(name):
            reason = "holds a NUL or half a character, which no file can."
            row = BadRow(export.name, record.row, str(shown(name)), shown(cell), reason)
            raise DataError(f"{export.name}: what annotators saw cannot be written.", [row])
        cells[name] = cell
    return cells


def _names(
    columns: list[str], tasks: Mapping[str, Mapping[str, str]], named: dict[str, str], keep: Collection[str]
) -> dict[str, str | None]:
    """Name of each column in the export -> its name in the file; `named` are those given as text or image."""
    if len(columns) == 1 and not named:
        values = [cell for cells in tasks.values() for cell in cells.values() if cell]
        named = {columns[0]: "image" if values and all(map(is_picture, values)) else "text"}
    used = {*_OURS, *named.values()}
    names = {name: named.get(name, f"data_{name}" if name in used else name) for name in columns}
    if not {"text", "image"} & set(names.values()):
        return dict(names)
    return {own: name if name in ("text", "image") or own in keep else None for own, name in names.items()}


def named_by_image(options: Mapping[str, Any], instances: str | Path) -> dict[str, Any]:
    """Name tasks of an export after their images if the instances are a folder of images.

    Args:
        options: options of `crowdzoo.Annotations.read`.
        instances: path of the instances.

    Returns:
        The options, with `image` if needed.
    """
    if options.get("platform") is None or not Path(instances).is_dir():
        return dict(options)
    return {**options, "image": options.get("image") or True}
