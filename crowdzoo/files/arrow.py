"""All reading with Arrow: no file can run code, and every failure is a `DataError`.

Chunks of CSV and JSON lines are parsed here if Arrow and Python's own parsers are certain to agree; otherwise
`parse_csv` and `parse_json_lines` return None, and Python parses.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

if hasattr(pa, "PyExtensionType"):  # removed in pyarrow 21
    # CVE-2023-47248: a Parquet file can name this type and contain a pickle, which pyarrow before 14.0.1 loads
    import pyarrow_hotfix  # noqa: F401
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from crowdzoo.errors import CrowdzooError, DataError, Setting
from crowdzoo.files.json import MAX_DEPTH, read_json
from crowdzoo.files.regular import check_regular

LONGEST_TEXT = 1 << 17
_JSON_BLOCK = 1 << 20

# crowdzoo stores vocabularies in the footer, which may be large
_LIMITS = {"thrift_string_size_limit": 1 << 30, "thrift_container_size_limit": 1 << 24}


@contextmanager
def parquet_errors(path: str | os.PathLike[str], where: str = "") -> Iterator[None]:
    """Converts any error of Arrow while reading a Parquet file to a `DataError` that names the file.

    Arrow's errors have no common base class (they are `ValueError`, `OSError`, `KeyError`, `TypeError`,
    `RuntimeError`, `MemoryError`, ...), so all are caught.

    Args:
        path: path of the file.
        where: place for the message, such as " after row 7".
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
    """Opens a Parquet file; read from it within `parquet_errors`.

    Raises:
        DataError: not a regular file, empty, truncated, not Parquet, or with a type that would run code.
    """
    check_regular(path)
    with parquet_errors(path):
        if os.path.getsize(path) == 0:
            raise DataError(f"{os.fspath(path)} is empty.")
        file = pq.ParquetFile(os.fspath(path), **_LIMITS)
        file.schema_arrow.names  # noqa: B018  (decodes the names)
        return file


def parquet_batches(path: str | os.PathLike[str], columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Iterates over some columns of a Parquet file, one row group at a time; strings are not checked.

    Args:
        path: path of the file.
        columns: names of the columns to read.
        rows: maximum number of rows per batch.

    Raises:
        DataError: as `open_parquet`; a damaged part, with the row before it.
    """
    with open_parquet(path) as file:
        start = 0
        for place in range(file.num_row_groups):
            # `iter_batches` aborts the process if a column ends early
            with parquet_errors(path, f" after row {start}"):
                part = file.read_row_group(place, columns=list(columns))
                part.validate()
            yield from part.to_batches(max_chunksize=rows)
            start += part.num_rows


def parquet_rows(path: str | os.PathLike[str], num_bytes: int) -> int:
    """Number of rows of a Parquet file that decode to about this number of bytes; 256 to 65,536.

    Raises:
        DataError: as `open_parquet`.
    """
    with open_parquet(path) as file, parquet_errors(path):
        metadata = file.metadata
        size = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
        return int(np.clip(num_bytes * metadata.num_rows // max(size, 1), 256, 65_536))


class ColumnFile:
    """Writes columns to a file in Arrow's own format, part by part, for `mapped_columns`.

    Args:
        path: path of the file.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._path = os.fspath(path)
        self._writer: pa.RecordBatchFileWriter | None = None

    def write(self, columns: Mapping[str, pa.Array]) -> None:
        """Writes some rows.

        Args:
            columns: name -> array [n]; names and types are the same in all calls.
        """
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        self._writer = self._writer or pa.ipc.new_file(self._path, batch.schema)
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Finishes the file."""
        if self._writer is not None:
            self._writer.close()


def mapped_columns(path: str | os.PathLike[str]) -> dict[str, pa.ChunkedArray]:
    """Maps the columns of a `ColumnFile` of this process into memory, with one chunk per part."""
    table = pa.ipc.open_file(pa.memory_map(os.fspath(path))).read_all()
    return dict(zip(table.column_names, table.columns, strict=True))


class StoredTexts:
    """Strings in a file, read on access: `[row]` is a string, `[rows]` an array of objects.

    Args:
        column: large_string [N], mapped from the file.
    """

    dtype = np.dtype(object)

    def __init__(self, column: pa.ChunkedArray):
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @property
    def shape(self) -> tuple[int]:
        """(N,)."""
        return (len(self),)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (int, np.integer)):
            return self._column[int(rows)].as_py()
        texts = (
            self._column[rows] if isinstance(rows, slice) else self._column.take(pa.array(np.arange(len(self))[rows]))
        )
        return np.array([*texts.to_pylist(), None], object)[:-1]


class ValueFile:
    """Values of instances, written part by part and read as one array.

    Args:
        path: path of the file; it must not exist.
    """

    def __init__(self, path: Path):
        self._path = path
        self._texts: ColumnFile | None = None
        self._dtype = np.dtype(object)
        self._shape: tuple[int, ...] = ()
        self._rows = 0

    def add(self, values: np.ndarray) -> None:
        """Writes the next rows.

        Args:
            values: numbers [n, ...], or strings as objects [n]; type and shape are the same in all calls.
        """
        self._dtype, self._shape = values.dtype, values.shape[1:]
        self._rows += len(values)
        if values.dtype == object:
            self._texts = self._texts or ColumnFile(self._path)
            self._texts.write({"texts": pa.array(values, pa.large_string())})
        else:
            with open(self._path, "ab") as file:
                file.write(np.ascontiguousarray(values).data)

    def read(self) -> Any:
        """Returns all values: a read-only `numpy.memmap` [N, ...] of numbers, or `StoredTexts` of strings."""
        if self._texts is not None:
            self._texts.close()
            return StoredTexts(mapped_columns(self._path)["texts"])
        return np.memmap(self._path, self._dtype, "r", shape=(self._rows, *self._shape))


def read_parquet(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pa.Table:
    """Reads a Parquet file, and checks every value: lists within bounds, strings UTF-8.

    Args:
        path: path of the file.
        columns: names of the columns to read, or None for all.

    Raises:
        DataError: as `open_parquet`; a damaged part; a string that is not UTF-8.
    """
    with open_parquet(path) as file, parquet_errors(path, " inside"):
        table = file.read(columns=None if columns is None else list(columns))
        table.validate(full=True)
        return table


def read_dataset_folder(path: str | os.PathLike[str]) -> pa.Table | dict[str, pa.Table]:
    """Reads a folder written by `save_to_disk` of Hugging Face's library `datasets`, without that library.

    Args:
        path: path of the folder.

    Returns:
        The rows, mapped into memory; for a `DatasetDict` a dictionary of the splits.

    Raises:
        DataError: another folder, a missing or damaged part, or a string that is not UTF-8.
    """
    folder = Path(path)
    if not os.path.isfile(folder / "dataset_dict.json"):
        return _read_split(folder)
    return {split: _read_split(folder / split) for split in _part_names(folder / "dataset_dict.json", "splits")}


def _read_split(folder: Path) -> pa.Table:
    if not os.path.isfile(folder / "state.json"):
        platform = Setting("platform", "png-masks")
        named = f"a file in it, a folder by Dataset.save_to_disk, or its platform, such as {platform}"
        raise DataError(f"{folder} is a folder. Name {named}.")
    parts = []
    for name in _part_names(folder / "state.json", "_data_files"):
        check_regular(folder / name)
        with parquet_errors(folder / name, " inside"):
            parts.append(pa.ipc.open_stream(pa.memory_map(os.fspath(folder / name))).read_all())
            parts[-1].validate(full=True)
    with parquet_errors(folder, " inside"):
        return pa.concat_tables(parts)


def _part_names(file: Path, key: str) -> list[str]:
    """Names of files or folders next to a JSON file that lists them: at least one, without repeats."""
    try:
        parts = read_json(file)[key]
        names = [Path(part["filename"]).name if isinstance(part, dict) else part for part in parts]
        sound = isinstance(parts, list) and 0 < len(names) == len({*names})
        sound = sound and all(Path(name).name == name not in ("", "..") for name in names)
    except (KeyError, TypeError):
        sound = False
    if not sound:
        raise DataError(f"{file} is not a file that Dataset.save_to_disk wrote. Save it again.")
    return names


def parse_csv(
    chunk: bytes, ends: np.ndarray, delimiter: str, width: int, columns: dict[int, pa.DataType]
) -> list[pa.Array] | None:
    """Parses whole lines of CSV without a header.

    Args:
        chunk: the lines; the last may lack its line end.
        ends: positions of the line ends, int64.
        delimiter: separator of values.
        width: number of values per line.
        columns: index -> type of the columns to return.

    Returns:
        The columns, one row per line; None if a line is invalid, or Arrow and the csv module may differ.
    """
    if chunk.startswith(b"\xef\xbb\xbf") or b"\0" in chunk or _longest_line(chunk, ends) > LONGEST_TEXT:
        return None  # Arrow would skip the first three bytes as a byte order mark
    if b"\r" in chunk and chunk.count(b"\r") != chunk.count(b"\r\n"):
        return None
    types = {str(place): kind for place, kind in columns.items()}
    names = [str(place) for place in range(width)]  # names are not used, and may occur twice
    read = pyarrow.csv.ReadOptions(column_names=names, block_size=len(chunk) + 1)
    parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = pyarrow.csv.ConvertOptions(include_columns=[*types], column_types=types, null_values=[""])
    try:
        table = pyarrow.csv.read_csv(_reader(chunk), read_options=read, parse_options=parse, convert_options=convert)
    except pa.ArrowException:
        return None
    return _columns(table, chunk, ends)


def parse_json_lines(chunk: bytes, ends: np.ndarray, types: dict[str, pa.DataType]) -> list[pa.Array] | None:
    """Parses whole lines with a JSON object each.

    Arrow 10 reads beyond its memory if the first value of a block is `null`, so it only gets chunks in which each line
    begins with `{` and ends with `}`, and nothing is nested deeper than MAX_DEPTH.

    Args:
        chunk: the lines; the last may lack its line end.
        ends: positions of the line ends, int64.
        types: name -> type of the keys to return.

    Returns:
        The columns, one row per line; None if a line is invalid, or Arrow and Python may differ.
    """
    # a NUL in a string is legal JSON, and Python's error names its row
    if b"\\u0000" in chunk or not _is_objects(chunk, ends):
        return None
    # Arrow reads at most 100,000 rows per block, which a MiB of rows with three keys does not reach
    read, schema = pyarrow.json.ReadOptions(block_size=_JSON_BLOCK), pa.schema(list(types.items()))
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        chunk.decode("utf-8")  # Arrow's JSON parser does not check this
        table = pyarrow.json.read_json(_reader(chunk), read_options=read, parse_options=parse)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    columns = _columns(table.select(list(types)), chunk, ends)
    if columns is None:
        return None
    for column in columns:
        # Arrow accepts NaN and Infinity, which are not JSON
        if pa.types.is_floating(column.type) and not np.isfinite(column.fill_null(0).to_numpy()).all():
            return None
    return columns


def _reader(chunk: bytes) -> pa.BufferReader:
    """Copies bytes to Arrow's own memory, which its threads may release after Python has ended.

    If such a thread holds the last reference to Python's bytes, it waits for an interpreter that no longer exists, and
    the process aborts ("terminate called without an active exception") after a command has finished.
    """
    memory = pa.allocate_buffer(len(chunk))
    memoryview(memory).cast("B")[:] = chunk
    return pa.BufferReader(memory)


def _columns(table: pa.Table, chunk: bytes, ends: np.ndarray) -> list[pa.Array] | None:
    if table.num_rows != len(ends) + (not chunk.endswith(b"\n")):
        return None
    return [one_array(column) for column in table.columns]


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Converts a chunked array to a single one."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)


def _longest_line(chunk: bytes, ends: np.ndarray) -> int:
    edges = np.concatenate([[-1], ends, [len(chunk)]])
    return int(np.diff(edges).max())


def _is_objects(chunk: bytes, ends: np.ndarray) -> bool:
    """Whether each line of a chunk begins with `{` and ends with `}`, without deep nesting."""
    letters = np.frombuffer(chunk, np.uint8)
    if not chunk.endswith(b"\n"):
        ends = np.append(ends, len(chunk))
    starts = np.concatenate([[0], ends[:-1] + 1])
    last = ends - 1
    if b"\r" in chunk:
        last = last - (letters[np.maximum(last, 0)] == ord("\r"))
    if (last <= starts).any() or (letters[starts] != ord("{")).any() or (letters[last] != ord("}")).any():
        return False
    # Arrow stops silently at a closing bracket without an opening one
    opened, closed = chunk.count(b"{"), chunk.count(b"}")
    if opened != closed:
        return False
    if opened == len(ends) and b"[" not in chunk:
        return True
    nested = np.flatnonzero((letters == ord("{")) | (letters == ord("[")))
    return int(np.bincount(np.searchsorted(ends, nested)).max()) <= MAX_DEPTH
