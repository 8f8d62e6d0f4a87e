"""Choice of the reader for a file of annotations or instances by suffix."""

import os
from pathlib import Path

from crowdzoo.errors import ConfigError, DataError, Setting, did_you_mean
from crowdzoo.files.arrow import read_dataset_folder
from crowdzoo.files.regular import plain_name
from crowdzoo.files.workbooks import WORKBOOK, is_workbook
from crowdzoo.reading.tables.csv import CsvSource
from crowdzoo.reading.tables.frames import TableSource, frame_source
from crowdzoo.reading.tables.jsonl import JsonlSource, JsonSource
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.parquet import ParquetSource
from crowdzoo.reading.tables.sources import TextSource

SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", WORKBOOK)


def source_of(
    path: str | os.PathLike[str], kind: str | None = None, layout: Layout | None = None, suffix: str = ""
) -> TextSource | ParquetSource | TableSource:
    """Create the source of a file: .csv, .tsv, .jsonl, .json (each also in .gz or .zip), .xlsx or .parquet.

    Args:
        path: path of the file, or of a folder written by `save_to_disk` of Hugging Face's library `datasets`.
        kind: kind of the labels; None: "classification", or for a Parquet file the kind stored in it.
        layout: layout of the file's table.
        suffix: suffix to use instead of the file's own.

    Raises:
        DataError: another suffix.
    """
    layout = layout or Layout()
    is_parquet = (suffix or Path(path).suffix) == ".parquet"
    suffix = suffix or Path(plain_name(path)).suffix
    if suffix not in SUFFIXES and Path(path).is_dir():
        return frame_source(read_dataset_folder(path), kind or "classification", (), layout, os.fspath(path))
    if layout.separator or not layout.header:
        if suffix in (".parquet", ".jsonl", ".json"):
            raise ConfigError(f"{os.fspath(path)}: separator and header are options of CSV files; leave them out.")
        # declared as CSV, so any other suffix is accepted
        suffix = suffix if suffix in SUFFIXES else ".csv"
    if is_parquet:
        return ParquetSource(path, kind, layout)
    kind = kind or "classification"
    if layout.sheet is not None and not is_workbook(path):
        raise ConfigError(f"{os.fspath(path)}: sheet is an option of Excel workbooks (.xlsx); leave it out.")
    if suffix in (".csv", ".tsv") or is_workbook(path):
        return CsvSource(path, kind, "\t" if suffix == ".tsv" else ",", layout)
    if suffix in (".jsonl", ".json") and layout.wide:
        raise ConfigError(f"{os.fspath(path)}: a wide table is a CSV or Parquet file, as keys of JSON may come and go.")
    if suffix in (".jsonl", ".json"):
        return (JsonlSource if suffix == ".jsonl" else JsonSource)(path, kind, layout)
    platform = Setting("platform", "label-studio")
    export = f" An export of a labelling platform is read with its name, such as {platform}."
    raise DataError(
        f"{os.fspath(path)}: files of annotations end in .csv, .tsv, .jsonl, .json (each also in .gz or .zip), .xlsx "
        f"or .parquet, not in '{suffix}'.{export if suffix == '.xml' else did_you_mean(suffix, SUFFIXES)}"
    )


def column_names(path: str | os.PathLike[str], layout: Layout | None = None) -> list[str]:
    """Read the names of a table's columns from its head; for JSON lines, the keys of the first line.

    Raises:
        DataError: another suffix, not a regular file, or a file that is empty, damaged or in another encoding.
    """
    return source_of(path, layout=layout).read_header()
