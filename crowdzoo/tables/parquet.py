"""Annotations as a Parquet file that knows its own vocabularies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdzoo.errors import DataError, short_repr
from crowdzoo.files.arrow import open_parquet
from crowdzoo.files.json import JsonError, parse_json
from crowdzoo.files.text import is_utf8
from crowdzoo.files.writing import atomic_file
from crowdzoo.tables.sources import KINDS, ParquetSource
from crowdzoo.tables.vocabulary import sort_names

if TYPE_CHECKING:
    from crowdzoo.tables.annotations import Annotations

__all__ = ["read_metadata", "write_parquet"]

KEY = b"crowdzoo.annotations"
ROWS = 1 << 20


def write_parquet(annotations: Annotations, path: str | os.PathLike[str]) -> Path:
    """Writes names as columns, and what columns cannot hold into the file's metadata.

    The metadata holds the kind, and each vocabulary that is not simply the sorted names of its column.

    Args:
        annotations: annotations to write.
        path: path of the file; it appears only when it is complete.

    Returns:
        The path.

    Raises:
        DataError: for names that are neither strings nor integers.
    """
    path = Path(path)
    names = {
        "task": (annotations.task_ids, _arrow_names(annotations.tasks, "tasks")),
        "annotator": (annotations.annotator_ids, _arrow_names(annotations.annotators, "annotators")),
    }
    if annotations.classes is not None:
        names["label"] = (annotations.labels, _arrow_names(annotations.classes, "classes"))
    plain = {
        "label": annotations.labels if annotations.classes is None else None,
        "position": annotations.positions,
        "confidence": annotations.confidence,
        "timestamp": annotations.timestamp,
    }
    columns: dict[str, np.ndarray] = {name: values for name, values in plain.items() if values is not None}
    about = {"version": 1, "kind": annotations.kind, "names": {name: _listed(*pair) for name, pair in names.items()}}
    order = [name for name in ("task", "annotator", "label", *plain) if name in names or name in columns]
    order = list(dict.fromkeys(order))
    fields = [(name, names[name][1].type if name in names else pa.array(columns[name][:0]).type) for name in order]
    schema = pa.schema(fields, metadata={KEY: json.dumps(about).encode()})
    with atomic_file(path) as file, pq.ParquetWriter(file, schema) as writer:
        for start in range(0, max(len(annotations), 1), ROWS):
            rows = slice(start, start + ROWS)
            arrays = [
                names[name][1].take(pa.array(names[name][0][rows])) if name in names else pa.array(columns[name][rows])
                for name in order
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return path


def read_metadata(source: ParquetSource) -> tuple[str | None, dict[str, np.ndarray]]:
    """What `write_parquet` wrote beside the rows.

    Args:
        source: the file.

    Returns:
        The kind, or None for a file that something else wrote; and column -> names in code order, for the
        columns whose names are not simply sorted.
    """
    with open_parquet(source.path) as file:
        metadata = file.schema_arrow.metadata or {}
    if KEY not in metadata:
        return None, {}
    try:
        about = parse_json(metadata[KEY])
        if isinstance(about, dict) and isinstance(about.get("version"), int) and about["version"] > 1:
            version = about["version"]
            raise DataError(f"{source.name}: written by a later crowdzoo (format {version}). Update crowdzoo.")
        return _checked_kind(about), _checked_names(about)
    except DataError:
        raise
    except (JsonError, ValueError, OverflowError) as error:
        raise DataError(
            f"{source.name}: the footer is damaged: {KEY.decode()} {error}. Write the file again."
        ) from None


def _checked_kind(about: Any) -> str:
    if not isinstance(about, dict) or about.get("version") != 1 or about.get("kind") not in KINDS:
        raise ValueError(f"holds no kind of annotations, but {short_repr(about)}")
    return about["kind"]


def _checked_names(about: dict[str, Any]) -> dict[str, np.ndarray]:
    """Column -> its vocabulary, for those that are listed."""
    listed = about.get("names")
    if not isinstance(listed, dict) or not set(listed) <= {"task", "annotator", "label"}:
        raise ValueError(f"holds no names by column, but {short_repr(listed)}")
    found = {}
    for column, entry in listed.items():
        if entry is None:
            continue
        entry = entry if isinstance(entry, dict) else {}
        kind = {"integer": int, "string": str}.get(str(entry.get("type")))
        names = entry.get("names")
        if kind is None or not isinstance(names, list) or any(type(name) is not kind for name in names):
            raise ValueError(f"holds no list of names of '{column}', but {short_repr(entry)}")
        if len(set(names)) < len(names):
            raise ValueError(f"holds a name of '{column}' twice")
        array = np.empty(len(names), dtype=np.int64 if kind is int else object)
        array[:] = names
        found[column] = array
    if about["kind"] == "regression" and "label" in found:
        raise ValueError("holds names of ratings, which have none")
    return found


def _arrow_names(names: np.ndarray, what: str) -> pa.Array:
    if names.dtype.kind == "i":
        return pa.array(names)
    half = next((name for name in names.tolist() if isinstance(name, str) and not is_utf8(name)), None)
    if half is not None:
        raise DataError(f"{what} holds {half!r}, which is half a character; a file holds UTF-8.")
    other = next((name for name in names.tolist() if not isinstance(name, str)), None)
    if other is not None:
        kind = type(other).__name__
        raise DataError(f"{what} holds {other!r}, of type {kind}; a file holds names that are strings or integers.")
    return pa.array(names, type=pa.large_string())


def _listed(codes: np.ndarray, names: pa.Array) -> dict[str, Any] | None:
    """The vocabulary, or None where reading the column finds the same one."""
    if len(names) and np.bincount(codes, minlength=len(names)).all():
        order, _ = sort_names(names)
        if (order == np.arange(len(order))).all():
            return None
    return {"type": "integer" if pa.types.is_integer(names.type) else "string", "names": names.to_pylist()}
