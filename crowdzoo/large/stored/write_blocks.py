"""write_blocks: a file of annotations as blocks in a folder, in memory that follows the names and not the rows."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crowdzoo.aggregation.engine.block import MAX_ANNOTATIONS, MAX_CELLS, Block
from crowdzoo.aggregation.engine.coding import encode
from crowdzoo.data.label_kinds import CLASSIFICATION, require_kind
from crowdzoo.errors import DataError
from crowdzoo.files.writing import atomic_folder
from crowdzoo.large.stored.stored_blocks import SUMMARY, TASKS, StoredBlocks, block_name

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crowdzoo.reading.tables.options import FileOptions
    from crowdzoo.reading.tables.spilled_table import SpilledTable


def write_blocks(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    max_annotations: int | None = None,
    **options: Unpack[FileOptions],
) -> StoredBlocks:
    """Reads a file of annotations of classes into blocks on disk, with the checks of `Annotations.read`.

    The file is read once. Memory follows the names of the tasks, not the rows. The folder takes 23 to 44 bytes a row
    while it is written, and about 7 when it is complete.

    Args:
        path: path of the file: .csv, .tsv, .jsonl (each also in .gz) or .parquet.
        folder: is made, with its parents; it does not exist yet, or is empty. It appears when it is complete.
        max_annotations: most annotations a block, and most tasks. Default: 2**20, fewer where there are many classes.
        **options: see `FileOptions` of `crowdzoo.reading.tables.options`.

    Returns:
        The folder's blocks.

    Raises:
        DataError: as `Annotations.read`; or the file holds another kind of labels.
        ConfigError: an option that is out of its range.
    """
    from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
    from crowdzoo.reading.tables.options import Rules
    from crowdzoo.reading.tables.spilled_table import SpilledTable
    from crowdzoo.reading.tables.suffixes import source_of

    source = source_of(path, None, Layout.of(options))
    require_kind(source.label_kind, "Aggregation out of core", CLASSIFICATION)
    rules = {name: value for name, value in options.items() if name not in LAYOUT_OPTIONS}
    with atomic_folder(folder) as fresh:
        rows = fresh / "rows"
        rows.mkdir()
        table = SpilledTable.read(source, Rules.of(source.label_kind, source.names, **rules), rows)  # type: ignore[arg-type]  # the keys are those of `ReadingOptions`
        if not len(table.classes):
            raise DataError(f"{source.name}: there are no annotations and no classes were given.")
        write_parts(table, fresh, max_annotations)
        shutil.rmtree(rows)
    return StoredBlocks.open(folder)


def write_parts(table: SpilledTable, folder: Path, max_annotations: int | None = None) -> None:
    """Writes the parts of a table as blocks.

    Args:
        table: whose rows are in parts; K classes, 1 at least.
        folder: an empty folder.
        max_annotations: see `write_blocks`.
    """
    import pyarrow as pa
    import pyarrow.parquet

    most = min(MAX_ANNOTATIONS, max(1, MAX_CELLS // len(table.classes))) if max_annotations is None else max_annotations
    names = pa.array(table.tasks) if isinstance(table.tasks, np.ndarray) else table.tasks
    first_tasks: list[int] = []
    with pyarrow.parquet.ParquetWriter(folder / TASKS, pa.schema([("task", names.type)])) as writer:
        for part in table.parts():
            tasks = np.arange(part.begin, part.end)
            for block in Block(part.task_ids, part.annotator_ids, part.labels, tasks).cut(most):
                (folder / block_name(len(first_tasks))).write_bytes(encode(block))
                writer.write_table(pa.table({"task": names.slice(int(block.tasks[0]), len(block.tasks))}))
                first_tasks.append(int(block.tasks[0]))
    stored = StoredBlocks(
        folder,
        table.annotators,
        table.classes,
        table.annotations_per_annotator,
        len(table.tasks),
        table.num_annotations,
        table.num_rejected,
        table.repeats,
        tuple(first_tasks),
    )
    (folder / SUMMARY).write_text(json.dumps(stored.summary()) + "\n", encoding="utf-8")
