"""The one module that opens Parquet files: nothing in a file can run code, and every failure is a `DataError`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

if hasattr(pa, "PyExtensionType"):  # gone from pyarrow 21 on
    # CVE-2023-47248: a Parquet file names this type and carries a pickle, which pyarrow before 14.0.1 loads
    import pyarrow_hotfix  # noqa: F401
import pyarrow.parquet as pq

from crowdzoo.errors import CrowdzooError, DataError
from crowdzoo.files.regular import check_regular

__all__ = ["open_parquet", "parquet_batches", "parquet_errors", "read_parquet"]

# crowdzoo keeps a table's vocabularies in the footer, which may be large
_LIMITS = {"thrift_string_size_limit": 1 << 30, "thrift_container_size_limit": 1 << 24}


@contextmanager
def parquet_errors(path: str | os.PathLike[str], where: str = "") -> Iterator[None]:
    """Whatever Arrow raises while it reads a Parquet file, as a `DataError` that names the file.

    Arrow has no common parent for its errors (they are `ValueError`, `OSError`, `KeyError`, `TypeError`,
    `RuntimeError`, `MemoryError`, ...), so all are caught.

    Args:
        path: of the file.
        where: the place, such as " after row 7".
    """
    try:
        yield
    except CrowdzooError:
        raise
    except Exception as error:
        name = os.fspath(path)
        if "arrow.py_extension_type" in str(error):
            raise DataError(
                f"{name}: a column has a Python extension type, which carries code. Write the file without it."
            ) from None
        if isinstance(error, UnicodeDecodeError):
            raise DataError(f"{name}: names of columns are not UTF-8. Write the file again.") from None
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        if where:
            raise DataError(f"{name}: the file is damaged{where}. ({reason})") from None
        raise DataError(f"{name}: not a whole Parquet file. Write or copy it again. ({reason})") from None


def open_parquet(path: str | os.PathLike[str]) -> pq.ParquetFile:
    """Opens a Parquet file; what is then read from it belongs into `parquet_errors`.

    Raises:
        DataError: not a regular file, empty, cut off, not Parquet, or with a type that would run code.
    """
    check_regular(path)
    with parquet_errors(path):
        if os.path.getsize(path) == 0:
            raise DataError(f"{os.fspath(path)} is empty.")
        file = pq.ParquetFile(os.fspath(path), **_LIMITS)
        file.schema_arrow.names  # noqa: B018  (decodes the names)
        return file


def parquet_batches(path: str | os.PathLike[str], columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Walks through some columns of a Parquet file; strings are not looked at.

    Args:
        path: of the file.
        columns: names of those that are read.
        rows: most rows of a batch.

    Raises:
        DataError: as `open_parquet`; a damaged part, with the row after which it stands.
    """
    with open_parquet(path) as file:
        with parquet_errors(path, " after row 0"):
            batches = file.iter_batches(batch_size=rows, columns=list(columns))
        start = 0
        while True:
            with parquet_errors(path, f" after row {start}"):
                batch = next(batches, None)
                if batch is None:
                    return
                batch.validate()
            yield batch
            start += batch.num_rows


def read_parquet(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pa.Table:
    """Reads a Parquet file, and looks at every value: lists within bounds, strings UTF-8.

    Args:
        path: of the file.
        columns: names of those that are read, or None for all.

    Raises:
        DataError: as `open_parquet`; a damaged part; a string that is not UTF-8.
    """
    with open_parquet(path) as file, parquet_errors(path, " inside"):
        table = file.read(columns=None if columns is None else list(columns))
        table.validate(full=True)
        return table
