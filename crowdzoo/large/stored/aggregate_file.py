"""aggregate_file: from a file of annotations to files of labels, in memory that does not follow the rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from crowdzoo.files.writing import scratch_folder
from crowdzoo.large.stored.aggregate_blocks import StoredAggregation, aggregate_blocks, check_streams
from crowdzoo.large.stored.write_blocks import write_blocks

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crowdzoo.reading.tables.options import FileOptions


def aggregate_file(
    path: str | os.PathLike[str],
    aggregator: Any,
    out: str | os.PathLike[str],
    *,
    file_format: str = "parquet",
    **options: Unpack[FileOptions],
) -> StoredAggregation:
    """Aggregates a file of annotations of classes that does not fit into memory.

    What `aggregator.fit(Annotations.read(path, **options)).write(out)` does, by way of blocks on disk (`write_blocks`,
    `aggregate_blocks`), which stand beside `out` under a hidden name and are removed at the end.

    Args:
        path: path of the file: .csv, .tsv, .jsonl (each also in .gz) or .parquet.
        aggregator: a MajorityVote, DawidSkene, OneCoinDawidSkene, GLAD or IBCC.
        out: a folder for the result; or a file ending in .csv, .parquet or .jsonl, for the table of tasks alone.
        file_format: "parquet", "csv" or "jsonl", of the tables in a folder.
        **options: see `FileOptions` of `crowdzoo.reading.tables.options`.

    Returns:
        What was learnt of the annotators, and where the answers are.

    Raises:
        ConfigError: the method does not stream, or an option is out of its range.
        DataError: as `Annotations.read`; or the file holds another kind of labels.
    """
    check_streams(aggregator)
    with scratch_folder(out) as scratch:
        return aggregate_blocks(write_blocks(path, scratch / "blocks", **options), aggregator, out, file_format)
