"""How much memory a file of annotations takes when it is aggregated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from crowdzoo.files.regular import open_regular

if TYPE_CHECKING:
    from crowdzoo.reading.tables.layout import Layout

BYTES_A_ROW = 100  # measured: 76 with integer names, K = 10 and five annotations a task; names that are text take more
GROWTH = 5  # of a compressed file
HEAD = 1 << 20


def needed_memory(path: str | os.PathLike[str], layout: Layout | None = None) -> int:
    """Bytes that reading a file of annotations of classes and aggregating it in memory takes, roughly.

    100 bytes a row. The rows of a Parquet file are known, those of a text file follow from its size and its first
    mebibyte; a compressed file is taken to grow to five times its size.

    Args:
        path: path of the file.
        layout: of the file; a line of a wide table has an annotation for each of its columns but one.

    Raises:
        DataError: the file is missing, is no regular file or has a name of no known kind.
    """
    from crowdzoo.files.arrow import open_parquet
    from crowdzoo.reading.tables.parquet import ParquetSource
    from crowdzoo.reading.tables.suffixes import source_of

    source = source_of(path, layout=layout)
    in_line = len(source.read_header()) - 1 if source.layout.wide else 1
    if isinstance(source, ParquetSource):
        with open_parquet(path) as file:
            return int(file.metadata.num_rows) * in_line * BYTES_A_ROW
    with open_regular(path) as stream:
        head = stream.read(HEAD)
    size = os.path.getsize(path) * (GROWTH if Path(path).suffix in (".gz", ".zip") else 1)
    lines = head.count(b"\n") * size // max(len(head), 1) if len(head) == HEAD else head.count(b"\n")
    return lines * in_line * BYTES_A_ROW
