"""Conversion of arrays, lists and frames of any library to Arrow columns."""

import contextlib
from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.data.label_kinds import label_kind
from crowdzoo.data.regions import MarkedImage
from crowdzoo.errors import BadRow, ConfigError, DataError, Setting
from crowdzoo.files.text import is_utf8
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.plain_array import answer_rows, code_names, json_originals, plain_array
from crowdzoo.reading.tables.sources import BATCH_ROWS, Batch, Source

SIDES = ("left", "right")
NAMES = ("task", *SIDES, "annotator", "label")


_NEEDED = {
    "position": "a sequence needs 'position', each token's place from 0.",
    "right": "a preference needs 'right', the task that the first one is compared with.",
}


class TableSource(Source):
    """Arrow columns of equal length. Rows count from 0."""

    def __init__(
        self,
        columns: dict[str, pa.Array],
        kind: str,
        name: str,
        objects: dict[str, np.ndarray] | None = None,
        layout: Layout | None = None,
    ):
        super().__init__(kind, layout)
        self.columns = columns
        self.name = name
        self.objects = objects or {}
        self.rows: np.ndarray | None = None  # int64 [A], if rows contain several answers

    def read_header(self) -> list[str]:
        """Names of the columns."""
        return list(self.found.values())

    def batches(self) -> Iterator[Batch]:
        """Iterate over the table."""
        total = len(next(iter(self.columns.values())))
        for start in range(0, total, 8 * BATCH_ROWS):
            part = {name: column.slice(start, 8 * BATCH_ROWS) for name, column in self.columns.items()}
            rows = start if self.rows is None else self.rows[start : start + 8 * BATCH_ROWS]
            yield Batch(part, rows, json_originals(part))


def array_source(columns: Mapping[str, Any], kind: str, passed: Container[str], name: str = "arrays") -> TableSource:
    """Create a source from columns of equal length.

    Args:
        columns: our name -> lists, NumPy, pandas or Arrow arrays [A]; None if the column is missing.
        kind: "classification", "regression" or "sequence".
        passed: columns whose names are given. In these, names that are neither strings nor integers are compared as
            text, in others by value.
        name: name of the source in error messages.

    Raises:
        DataError: columns of different length, or unhashable ids.
    """
    arrays: dict[str, pa.Array] = {}
    objects: dict[str, np.ndarray] = {}
    images: dict[str, MarkedImage] = {}
    labels = label_kind(kind)
    if labels.has_pairs:
        columns, names = _with_shared_ids(columns, "left" in passed)
        objects |= {} if names is None else dict.fromkeys(SIDES, names)
    for column, values in columns.items():
        if values is None:
            continue
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            arrays[column] = plain_array(values, column, column, name)
        elif column in NAMES and column not in labels.number_columns:
            if column == "label" and labels.has_regions:
                images |= {label.text: label for label in values if isinstance(label, MarkedImage)}
                values = [label.text if isinstance(label, MarkedImage) else label for label in values]
            values, names = _ids(values, column, column in passed)
            arrays[column] = _checked_text(values, column, name)
            objects |= {} if names is None else {column: names}
        else:
            arrays[column] = _checked_text(_numbers(values, column), column, name)
    lengths = {column: len(values) for column, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{name}: all columns must have the same length. Received: {lengths}")
    source = TableSource(arrays, kind, name, objects)
    source.images = images
    for column in source.required:
        if column not in arrays:
            raise DataError(f"{name}: {_NEEDED.get(column, f'{column!r} is missing.')}")
    return source


def frame_source(
    frame: Any, kind: str, passed: Container[str], layout: Layout | None = None, name: str = "frame"
) -> TableSource:
    """Create a source from a frame's columns.

    Args:
        frame: a pandas or polars frame, an Arrow table, a dictionary of columns, or any object with `to_arrow`,
            `__arrow_c_stream__` or `__dataframe__`; a `Dataset` or `DatasetDict` of Hugging Face.
        kind: "classification", "regression" or "sequence".
        passed: as in `array_source`.
        layout: names of the columns.
        name: name of the source in error messages.

    Raises:
        DataError: a missing column, or an object that is not a frame.
    """
    table = None
    if isinstance(frame, Mapping) and not any(map(_is_table, frame.values())):
        header, column = list(frame), frame.__getitem__
    elif hasattr(frame, "iloc") and not {list, np.ndarray} & set(map(type, frame.head(99).to_numpy().flat)):
        # pandas, without importing it
        header, column = [str(name) for name in frame.columns], lambda name: frame[name].to_numpy()
    else:
        table = _of_pandas(frame) if hasattr(frame, "iloc") else _table(frame)
        header, column = table.column_names, table.column
    matched = TableSource({}, kind, name, layout=layout)
    if matched.layout.wide or matched.layout.joins_columns:
        raise ConfigError("a frame has one column each for task and label: make it long, in pandas with frame.melt().")
    chosen = matched.match(header)
    columns, rows = {ours: column(theirs) for ours, theirs in chosen.items()}, None
    if table is not None:
        matched.code_names = code_names(table.schema)
        matched.take_names(header)
        columns, rows = answer_rows(columns, chosen, matched.code_names, name)
    if matched.by_winner:  # replaced when sides are mixed
        columns["label"] = np.zeros(len(columns["left"]), np.int64)
    if matched.by_ranking:  # pairs are created when the lists are split
        orders = pa.array([str(order) for order in columns["ranking"]], pa.large_string())
        columns |= {"ranking": orders} | dict.fromkeys((*SIDES, "label"), np.zeros(len(orders), np.int64))
    source = array_source(columns, kind, passed, name)
    source.by_winner, source.by_ranking = matched.by_winner, matched.by_ranking
    source.names, source.rows = matched.names, rows
    source.layout, source.found, source.guessed = matched.layout, chosen, matched.guessed
    return source


def _with_shared_ids(columns: Mapping[str, Any], are_passed: bool) -> tuple[dict[str, Any], np.ndarray | None]:
    """Convert left and right like a single column of ids; also returns the second result of `_ids`.

    Numbers on one side and strings on the other are unchanged, and compared as text, as in files.
    """
    sides: list[Any] = [columns.get(side) for side in SIDES]
    if any(side is None or isinstance(side, (pa.Array, pa.ChunkedArray)) for side in sides):
        return dict(columns), None
    sides = [side.to_numpy() if hasattr(side, "to_numpy") else list(side) for side in sides]
    ids_of_sides = {name: _ids(side, name, are_passed) for name, side in zip(SIDES, sides, strict=True)}
    if all(names is None for _, names in ids_of_sides.values()):
        return {**columns, **{name: ids for name, (ids, _) in ids_of_sides.items()}}, None
    ids, joint = _ids([*sides[0], *sides[1]], "left", are_passed)
    return {**columns, "left": ids[: len(sides[0])], "right": ids[len(sides[0]) :]}, joint


def _is_table(part: Any) -> bool:
    """Whether a value of a dictionary is the table of a split, not a column."""
    return isinstance(part, pa.Table) or hasattr(part, "with_format")


def _of_pandas(frame: Any) -> pa.Table:
    """Convert a pandas frame with lists in cells; as text if Arrow has no type for them, as for ["a", ["b", "c"]]."""
    try:
        return pa.Table.from_pandas(frame)
    except pa.ArrowException:
        as_text = frame.apply(lambda column: column.map(lambda cell: str(cell) if isinstance(cell, list) else cell))
        return pa.Table.from_pandas(as_text)


def _table(frame: Any) -> pa.Table:
    if isinstance(frame, Mapping):  # tables of splits
        parts = {split: _table(part) for split, part in frame.items()}
        splits = {split: pa.array([split] * len(part), pa.string()) for split, part in parts.items()}
        return pa.concat_tables(part.append_column("split", splits[split]) for split, part in parts.items())
    if hasattr(frame, "with_format"):  # a Dataset, with its selected rows
        return frame.with_format("arrow")[:]
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if hasattr(frame, "__arrow_c_stream__") and int(pa.__version__.split(".")[0]) >= 14:
        return pa.table(frame)
    raise DataError(f"{type(frame).__name__} is not a frame. Pass pandas, polars, Arrow or a dictionary of columns.")


def _checked_text(values: pa.Array | np.ndarray, column: str, name: str) -> pa.Array:
    """Convert strings to an Arrow array; Arrow arrays are unchanged.

    Raises:
        DataError: a string with a lone surrogate.
    """
    if isinstance(values, pa.Array):
        return values
    try:
        return pa.array(values, type=pa.large_string())
    except UnicodeEncodeError:
        reason = "holds half a character, which UTF-8 cannot write."
        rows = [(row, value) for row, value in enumerate(values.tolist()) if value is not None and not is_utf8(value)]
        bad = [BadRow(name, row, column, value, reason) for row, value in rows]
        raise DataError(f"{name}: {len(bad):,} bad row{'s' * (len(bad) > 1)}.", bad) from None


def _numbers(values: Any, column: str) -> pa.Array | np.ndarray:
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"'{column}' must have one axis. Received shape: {array.shape}")
    if array.dtype.kind == "M":
        return pa.array(array.astype("datetime64[us]"))
    if array.dtype.kind == "m":
        return pa.array(array / np.timedelta64(1, "s"))
    if array.dtype.kind in "iufb":
        return pa.array(array.astype(np.float64))
    return np.array([None if _is_missing(value) else str(value) for value in array.tolist()], dtype=object)


def _ids(values: Any, column: str, are_passed: bool) -> tuple[pa.Array | np.ndarray, np.ndarray | None]:
    """Convert ids to int64, strings or integers, or to indices into an array of objects, which is returned second."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if not isinstance(values, np.ndarray):
        # np.asarray would turn [1, "1"] into two equal strings, and tuples into a matrix
        values = list(values)
        values = np.fromiter(values, dtype=object, count=len(values))
    if values.ndim != 1:
        raise DataError(f"'{column}' must have one axis. Received shape: {values.shape}")
    if values.dtype.kind == "f" and bool((np.isnan(values) | (np.floor(values) == values)).all()):
        return pa.array(values.astype(np.float64)), None
    if values.dtype.kind in "iu" and values.max(initial=0) < 2**63:  # Arrow does not read big-endian ones
        return pa.array(values.astype(np.int64)), None
    # mixed types, beyond 64 bits, or lone surrogates
    with contextlib.suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
        # Arrow reads Python strings faster than NumPy strings
        array = pa.array(values.astype(object) if values.dtype.kind == "U" else values, from_pandas=True)
        if pa.types.is_integer(array.type):
            return array.cast(pa.int64()), None
        if isinstance(array, pa.Array) and array.type in (pa.string(), pa.null()):  # up to 2 GiB
            return array.cast(pa.large_string()), None
    objects = np.fromiter((None if _is_missing(value) else value for value in values.astype(object)), object)
    types = {type(value) for value in objects if value is not None}
    if types and all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in types):
        with contextlib.suppress(pa.ArrowException, OverflowError):  # with np.float32(NaN), or of several widths
            return pa.array(objects, pa.int64()), None
    if are_passed or all(value is None or isinstance(value, str) for value in objects):
        return np.array([None if value is None else str(value) for value in objects], dtype=object), None
    for row, value in enumerate(objects):
        if isinstance(value, str) and not value.strip():  # empty, as in columns of strings
            objects[row] = None
    return _places(objects, column)


def _places(values: np.ndarray, column: str) -> tuple[pa.Array, np.ndarray]:
    try:
        distinct = list(dict.fromkeys(value for value in values if value is not None))
    except TypeError as error:
        raise DataError(f"'{column}' holds ids that cannot be hashed ({error}). Use strings or integers.") from None
    if any(isinstance(value, MarkedImage) for value in distinct):
        raise DataError(f"'{column}' holds marked images. Read them with {Setting('kind', 'region')}.")
    with contextlib.suppress(TypeError):  # ids that cannot be compared keep their order
        distinct.sort()
    place = {value: number for number, value in enumerate(distinct)}
    names = np.fromiter(distinct, dtype=object, count=len(distinct))
    return pa.array([None if value is None else place[value] for value in values], type=pa.int64()), names


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))
