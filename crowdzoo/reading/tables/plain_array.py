"""Typed columns as the few types that the readers of tables know, and the text of their rows."""

import json
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from crowdzoo.errors import DataError, Setting
from crowdzoo.files.arrow import one_array
from crowdzoo.reading.tables.answer_rows import LISTS
from crowdzoo.reading.tables.layout import OPTIONAL


def plain_array(array: pa.Array | pa.ChunkedArray, column: str, name: str, source: str) -> pa.Array:
    """A typed column as int64, float64, large_string or timestamp, without dictionaries.

    Args:
        array: the column.
        column: our name of it.
        name: the source's name of it.
        source: name of the source in error messages.

    Raises:
        DataError: for a type that cannot be an id or a number.
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
        raise DataError(
            f"{source}: column '{name}' has the type {kind}. Ids are strings or integers, labels too or numbers."
            f"{way_out}"
        )
    return plain


def _plain(array: pa.Array, column: str) -> pa.Array | None:
    """As `plain_array`; None for a type that cannot be an id or a number."""
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
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and column in LISTS:  # as text, to be split or refused
        return pa.array([None if value is None else str(value) for value in array.to_pylist()], pa.large_string())
    if kind in (pa.null(), pa.string(), pa.large_string(), pa.bool_()):
        return array.cast(pa.large_string())
    if column == "timestamp" and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        # a unit finer than microseconds is cut, a time beyond what microseconds can count is refused
        finer = pa.types.is_timestamp(kind) and kind.unit == "ns"
        # a zone counts for nothing but how a bad row is shown, and may be none that Python knows
        return array.cast(pa.timestamp("us", "UTC" if getattr(kind, "tz", None) else None), safe=not finer)
    return None


def json_originals(columns: dict[str, pa.Array]) -> Callable[[Sequence[int]], list[str]]:
    """The text of rows of typed columns, for `Batch.originals`: JSON objects."""

    def originals(rows: Sequence[int]) -> list[str]:
        wanted = pa.array(rows, type=pa.int64())
        values = {name: column.take(wanted).to_pylist() for name, column in columns.items()}
        return [
            json.dumps(dict(zip(values, row, strict=True)), default=str) for row in zip(*values.values(), strict=True)
        ]

    return originals
