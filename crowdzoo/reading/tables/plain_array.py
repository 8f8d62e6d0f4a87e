"""Conversion of typed columns to the types that table readers support, and of their rows to text.

Hugging Face tables also contain codes with names, and cells with lists of answers.
"""

import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.errors import DataError, Setting
from crowdzoo.files.arrow import one_array
from crowdzoo.files.json import JsonError, parse_json
from crowdzoo.reading.tables.layout import OPTIONAL

_KEY = b"huggingface"
LISTS = ("annotator", "label")  # columns whose cells may contain several values


def plain_array(array: pa.Array | pa.ChunkedArray, column: str, name: str, source: str) -> pa.Array:
    """Convert a typed column to int64, float64, large_string or timestamp, without dictionaries.

    Args:
        array: the column.
        column: our name of the column.
        name: the source's name of the column.
        source: name of the source in error messages.

    Raises:
        DataError: a type that cannot be an id or a number.
    """
    array = one_array(array) if isinstance(array, pa.ChunkedArray) else array
    kind = array.type
    try:
        plain = _plain(array.dictionary_decode() if pa.types.is_dictionary(kind) else array, column)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{source}: column '{name}' of type {kind} holds what cannot be read: {reason}") from None
    if plain is None:
        way_out = f" Leave it out: {Setting('columns', {column: ''})}." if column in OPTIONAL else ""
        text = f"column '{name}' has the type {kind}. Ids are strings or integers, labels too or numbers."
        raise DataError(f"{source}: {text}{way_out}")
    return plain


def _plain(array: pa.Array, column: str) -> pa.Array | None:
    """See `plain_array`; None for a type that cannot be an id or a number."""
    kind = array.type
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and column not in OPTIONAL):
        try:
            return array.cast(pa.int64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # beyond int64, or with decimal places
            if pa.types.is_integer(kind):
                return array.cast(pa.large_string())
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else float(value) for value in array.to_pylist()], pa.float64())
    if pa.types.is_float16(kind):
        values = array.to_numpy(zero_copy_only=False).astype(np.float64)
        return pa.array(values, mask=array.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_floating(kind):
        return array.cast(pa.float64())
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and column in LISTS:  # as text, to be split or rejected
        return pa.array([None if value is None else str(value) for value in array.to_pylist()], pa.large_string())
    if column == "seconds" and pa.types.is_duration(kind):
        return pc.divide(array.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.float64()), 1e6)
    if kind in (pa.null(), pa.string(), pa.large_string(), pa.bool_()):
        return array.cast(pa.large_string())
    if column == "timestamp" and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        # finer units are truncated to microseconds, times out of their range are rejected
        finer = pa.types.is_timestamp(kind) and kind.unit == "ns"
        # the time zone only affects how bad rows are shown, and may be unknown to Python
        return array.cast(pa.timestamp("us", "UTC" if getattr(kind, "tz", None) else None), safe=not finer)
    return None


def json_originals(columns: dict[str, pa.Array]) -> Callable[[Sequence[int]], list[str]]:
    """Rows of typed columns as JSON objects, for `Batch.originals`."""

    def originals(rows: Sequence[int]) -> list[str]:
        wanted = pa.array(rows, type=pa.int64())
        values = {name: column.take(wanted).to_pylist() for name, column in columns.items()}
        entries = (dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True))
        return [json.dumps(entry, default=str) for entry in entries]

    return originals


def code_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Column -> names behind its codes, for features of type `ClassLabel` of the library `datasets`."""
    names_by_code: dict[str, list[str]] = {}
    try:
        features = parse_json((schema.metadata or {})[_KEY])["info"]["features"].items()
    except (JsonError, KeyError, TypeError, AttributeError):  # not from this library, or from another version
        return names_by_code
    for column, feature in features:
        while (isinstance(feature, list) and feature) or (isinstance(feature, dict) and "feature" in feature):
            feature = feature[0] if isinstance(feature, list) else feature["feature"]  # lists in the old or new format
        names = feature.get("names") if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" else None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            names_by_code[column] = list(dict.fromkeys(names))
    return names_by_code


def answer_rows(
    columns: dict[str, pa.Array], found: Mapping[str, str], names: Mapping[str, list[str]], source: str, first: int = 0
) -> tuple[dict[str, pa.Array], np.ndarray | None]:
    """One row per answer, with names: lists in cells become separate rows, and codes become names.

    Answers with code -1, the missing label of the library `datasets`, are left out.

    Args:
        columns: our name -> array [n]; lists of annotators and of their labels have equal lengths in each row.
        found: our name -> the source's.
        names: the source's name -> names behind its codes.
        source: name of the source in error messages.
        first: number of the first row.

    Returns:
        The columns [A], and the row of each answer, int64 [A]; None if rows are unchanged.

    Raises:
        DataError: lists of different lengths in a row.
    """
    arrays = {ours: one_array(each) if isinstance(each, pa.ChunkedArray) else each for ours, each in columns.items()}
    rows = None
    lists = {ours for ours, each in arrays.items() if _is_list(each)}
    if "ranking" in arrays:
        arrays["ranking"] = order_texts(arrays["ranking"])
    if lists.issuperset(LISTS):
        annotators, labels = (pc.fill_null(pc.list_value_length(arrays[ours]), 0).to_numpy() for ours in LISTS)
        for row in np.flatnonzero(annotators != labels)[:1]:
            who, what = (found[ours] for ours in LISTS)
            counts = f"'{who}' holds {annotators[row]} values and '{what}' {labels[row]}"
            raise DataError(f"{source}, row {first + row}: {counts}. Write a label for each annotator.")
        rows = np.repeat(np.arange(len(labels)), labels)
        for ours, array in arrays.items():
            arrays[ours] = pc.list_flatten(array) if ours in LISTS else array.take(pa.array(rows))
    if found.get("label") in names and pa.types.is_integer(arrays["label"].type):
        answered = np.flatnonzero(pc.not_equal(arrays["label"], -1).fill_null(True).to_numpy(zero_copy_only=False))
        if len(answered) < len(arrays["label"]):
            rows = answered if rows is None else rows[answered]
            arrays = {ours: array.take(pa.array(answered)) for ours, array in arrays.items()}
    for ours, array in arrays.items():
        arrays[ours] = named(array, names.get(found[ours]))
    return arrays, None if rows is None else first + rows


def order_texts(array: pa.Array) -> pa.Array:
    """Convert rankings in lists to text for `parse_order`; other arrays are unchanged."""
    if not _is_list(array):
        return array
    return pa.array(["" if cell is None else str(cell) for cell in array.to_pylist()], pa.large_string())


def _is_list(array: pa.Array) -> bool:
    return bool(pa.types.is_list(array.type) or pa.types.is_large_list(array.type))


def named(array: pa.Array, names: Sequence[str] | None) -> pa.Array:
    """Convert codes to names, null if missing; other arrays are unchanged."""
    if names is None or not pa.types.is_integer(array.type):
        return array
    has_name = pc.and_(pc.greater_equal(array, 0), pc.less(array, len(names)))
    return pa.array(names, pa.large_string()).take(pc.if_else(has_name, array, pa.scalar(None, array.type)))
