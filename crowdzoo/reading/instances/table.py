"""A table of any kind of instances from a file: columns by name, with row numbers for messages."""

import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.data.instance_kinds import InstanceKind
from crowdzoo.data.numbers import no_number, numbers_of, parse_numbers
from crowdzoo.data.vocabulary import text_as_integers
from crowdzoo.errors import SHOWN, BadRow, DataError, Setting, did_you_mean
from crowdzoo.files import arrow
from crowdzoo.files.regular import check_regular, plain_name
from crowdzoo.files.workbooks import WORKBOOK
from crowdzoo.reading.tables.cells import JOINT
from crowdzoo.reading.tables.csv import LONGEST_VALUE, CsvSource
from crowdzoo.reading.tables.layout import Layout, own_encoding
from crowdzoo.reading.tables.naming import find_columns, warn_of_guess
from crowdzoo.reading.tables.plain_array import code_names, named, plain_array
from crowdzoo.reading.tables.sources import PART_OF
from crowdzoo.reading.tables.suffixes import column_names

BESIDE = ("task", "gold", "split")  # columns besides model inputs
NAMED = (*BESIDE, "text")  # columns of text; all others are features
# Chooses columns of a header: our names of columns -> the file's; and those that were guessed
Choose = Callable[[Sequence[str]], tuple[dict[str, str], dict[str, str]]]
Check = Callable[[str, Sequence[str]], None]  # rejects a header, given the file's name and our names of the columns
Reason = str | Callable[[Any], str]  # reason for rejecting a value, or a function from the value to the reason
_PART_BYTES = 32 * 2**20  # of a table that is read in parts
# usual names of columns in a table with one row per task
_USUAL = {"task": ("id",), "gold": ("label", "class", "correct", "correctanswer", "expert")}


@dataclasses.dataclass
class Table:
    """Columns of a file.

    Attributes:
        name: name of the file.
        columns: name -> Arrow array [N] of the file's own type; for CSV large_string or float64.
        rows: row numbers in the file, int64 [N]; None if it has none, such as a folder.
        trim: whether white space around values is ignored.
        decimal: decimal mark of numbers in text.
        theirs: our name of a column -> the file's name, if different.
        folder: for a table too large for memory, folder of its columns except those of BESIDE; these are then chunked
            arrays, mapped from a file.
        outside_images: whether paths of images may lead out of the table's folder.
        what: name of its rows, in the plural, for messages.
    """

    name: str
    columns: dict[str, pa.Array]
    rows: np.ndarray | None
    trim: bool = False
    decimal: str = "."
    theirs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    folder: Path | None = None
    outside_images: bool = False
    what: str = "rows"

    def parts(self) -> "Iterator[Table]":
        """Yield the table; if it is in a folder, yield parts of its rows, without the columns of BESIDE."""
        if self.folder is None:
            yield self
            return
        columns = {name: column for name, column in self.columns.items() if name not in BESIDE}
        start = 0
        for place, chunk in enumerate(next(iter(columns.values())).chunks):
            here = {name: column.chunk(place) for name, column in columns.items()}
            assert self.rows is not None
            yield dataclasses.replace(self, columns=here, rows=self.rows[start : start + len(chunk)], folder=None)
            start += len(chunk)

    def each(self, act: Callable[["Table"], Any]) -> Iterator[Any]:
        """Yield the result of `act` for each part.

        Raises:
            DataError: errors of `act`; bad rows of all parts are counted in one error.
        """
        errors: list[DataError] = []
        for part in self.parts():
            try:
                result = act(part)
            except DataError as error:
                if self.folder is None or not error.rows:
                    raise
                errors.append(error)
            else:
                if not errors:
                    yield result
        if errors:
            rows = [row for error in errors for row in error.rows]
            raise DataError(str(errors[0]).splitlines()[0], rows[:SHOWN], sum(error.total for error in errors))

    def values(self, read: Callable[["Table"], Any]) -> Any:
        """Return the result of `read` for the table: an array, or a dictionary of arrays.

        For a table in a folder, the arrays are also stored there, and `read` is called with its parts.

        Raises:
            DataError: errors of `read`; bad rows of all parts are counted in one error.
        """
        if self.folder is None:
            return read(self)
        files: dict[str | None, arrow.ValueFile] = {}
        for values in self.each(read):
            for name, column in values.items() if isinstance(values, dict) else [(None, values)]:
                if name not in files:
                    files[name] = arrow.ValueFile(self.folder / f"values-{len(files)}")
                files[name].add(column)
        stored = {name: file.read() for name, file in files.items()}
        return stored.get(None, stored)

    def in_memory(self, *names: str) -> "Table":
        """Load columns of the table into memory."""
        columns = {name: self.columns[name] for name in names}
        if self.folder is not None:
            columns = {name: arrow.one_array(column) for name, column in columns.items()}
        return dataclasses.replace(self, columns=columns, folder=None)

    def names(self, column: str, trim: bool = True) -> np.ndarray:
        """A column as strings, objects [N]; "" where empty."""
        array = plain_array(self.columns[column], column, column, self.name)
        if pa.types.is_floating(array.type):
            return np.array([_number_name(value) for value in array.to_pylist()], object)
        if self.trim and trim and pa.types.is_large_string(array.type):
            array = pc.utf8_trim_whitespace(array)
        return array.cast(pa.large_string()).fill_null("").to_numpy(zero_copy_only=False)

    def numbers(self, column: str) -> np.ndarray:
        """A column as numbers, float64 [N], NaN where empty.

        Raises:
            DataError: values that are not finite numbers; see `refuse`.
        """
        texts = pa.array(self.names(column).tolist(), pa.large_string())
        numbers, problems = numbers_of(column, texts, self.decimal)
        for places, reason in problems:
            self.refuse(column, places, reason)
        return numbers

    def refuse(self, column: str, wrong: Any, reason: Reason, values: Any = None) -> None:
        """Raise an error if values of a column are invalid.

        Args:
            column: our name of the column.
            wrong: bool [N], or the indices of invalid values.
            reason: reason, as the end of a sentence.
            values: values of the column, [N]; None: its `names`.

        Raises:
            DataError: invalid values; names file, row, column and value of the first ones, and counts the rest.
        """
        places = np.asarray(wrong)
        places = np.flatnonzero(places) if places.dtype == bool else places
        if not len(places):
            return
        values = self.names(column) if values is None else values
        column = self.theirs.get(column, column)
        rows = []
        for place in places[:SHOWN]:
            value = values[place].item() if isinstance(values[place], np.generic) else values[place]
            why = reason if isinstance(reason, str) else reason(value)
            row = None if self.rows is None else int(self.rows[place])
            rows.append(BadRow(self.name, row, None if row is None else column, value, why))
        raise DataError(f"Some {self.what} cannot be used.", rows, len(places))


class _InstanceCsv(CsvSource):
    """CSV source of instances: all chosen columns, with numbers except in text columns."""

    longest_quoted = LONGEST_VALUE

    def __init__(self, path: Path, choose: Choose, layout: Layout, usual: Sequence[str], of_numbers: bool):
        super().__init__(path, "classification", layout=layout)
        self.required = tuple(usual)
        self.choose = choose
        self.of_numbers = of_numbers

    def match(self, header: Sequence[str]) -> dict[str, str]:
        """All chosen columns."""
        names, self.guessed = self.choose(header)
        return names

    def numeric_columns(self) -> set[str]:
        """Features that Arrow reads as numbers."""
        return self.features if self.layout.decimal == "." else set()

    @property
    def features(self) -> set[str]:
        """Numeric columns."""
        return set(self.found) - set(NAMED) if self.of_numbers else set()


def read_table(
    path: str | Path,
    wanted: Sequence[str] | None,
    check: Check | None = None,
    layout: Layout | None = None,
    usual: Sequence[str] = ("task",),
    as_text: bool = False,
    most_rows: int | None = None,
    folder: Path | None = None,
    what: str = "rows",
) -> Table:
    """Read columns of a file under our names.

    Args:
        path: path of the file.
        wanted: our names of the columns; None: all.
        check: rejects a header, given the file's name and our names of the columns; None rejects headers that lack any
            of `wanted`.
        layout: layout of the file.
        usual: columns whose usual names are also recognized.
        as_text: whether features of a CSV file are read as text, not as numbers.
        most_rows: number of rows to read from the start; None: all.
        folder: empty folder for columns to keep out of memory; see `Table.folder`.
        what: see `Table.what`.
    """
    path = Path(path)
    check_ending(path)
    name = os.fspath(path)
    layout = own_encoding(path, layout or Layout.of_second(None, {}))
    check = check or functools.partial(check_has, needed=wanted or (), option=layout.option)
    if layout.several("task") and layout.columns["task"] not in column_names(path, layout):
        return _joined_tasks(path, wanted, check, layout, usual, as_text, most_rows)
    choose = functools.partial(_chosen, name, layout, usual, wanted, check)
    if path.suffix == ".parquet":
        names, guessed = choose(column_names(path))
        parts: Iterator[Part] = itertools.islice(_parquet_parts(path, names), None if most_rows is None else 1)
        columns, rows = _joined(parts) if folder is None else _stored(parts, folder)
        result = Table(name, columns, rows, theirs=names, folder=folder)
    else:
        # features are numeric if all columns are read, unless they are read as text
        source = _InstanceCsv(path, choose, layout, usual, wanted is None and not as_text)
        parts = _csv_parts(source, None if most_rows is None else 1)
        columns, rows = _joined(parts) if folder is None else _stored(parts, folder)
        result = Table(name, columns, rows, True, source.layout.decimal, source.found, folder)
        guessed = source.guessed
    warn_of_guess(name, guessed, layout.option, stacklevel=3)
    result.outside_images, result.what = layout.outside_images, what
    if most_rows is None and not len(rows):
        raise DataError(f"{name}: has no rows, only a header.")
    if most_rows is not None:
        result.columns = {column: array.slice(0, most_rows) for column, array in columns.items()}
        result.rows = rows[:most_rows]
    return result


def _joined_tasks(
    path: Path, wanted: Sequence[str] | None, check: Check, layout: Layout, usual: Sequence[str], *how: Any
) -> Table:
    """See `read_table`; tasks are named after several columns, as in annotations."""
    parts = {f"{PART_OF}{name}": name.strip() for name in layout.columns["task"].split(",")}
    remaining = {name: theirs for name, theirs in layout.columns.items() if name != "task"}
    plain = dataclasses.replace(layout, columns={**remaining, **parts})
    wanted = None if wanted is None else [*parts, *wanted]
    usual = [name for name in usual if name != "task"]
    joined = read_table(path, wanted, lambda name, header: check(name, ["task", *header]), plain, usual, *how)
    texts = zip(*(joined.names(name) for name in parts), strict=True)
    tasks = pa.array([JOINT.join(ids) if all(ids) else "" for ids in texts], pa.large_string())
    rest = {name: values for name, values in joined.columns.items() if name not in parts}
    theirs = {**joined.theirs, "task": ", ".join(parts.values())}
    return dataclasses.replace(joined, columns={"task": tasks, **rest}, theirs=theirs)


Part = tuple[dict[str, pa.Array], np.ndarray]  # columns, and row numbers


def _csv_parts(source: _InstanceCsv, most_batches: int | None) -> Iterator[Part]:
    bad: list[BadRow] = []
    num_bad = 0
    for batch in itertools.islice(source.batches(may_be_empty=True), most_batches):
        here = batch.line_numbers()
        num_bad += len(batch.bad)
        bad += [problem for problem, _ in batch.bad[: SHOWN - len(bad)]]
        columns = {}
        for column, values in batch.columns.items():
            columns[column] = values
            if column in source.features and not pa.types.is_floating(values.type):
                columns[column], wrong = _feature_numbers(values, source.layout.decimal)
                num_bad += len(wrong)
                for place, value, reason in wrong[: max(0, SHOWN - len(bad))]:
                    bad.append(BadRow(source.name, int(here[place]), column, value, reason))
        yield columns, here
    if num_bad and most_batches is None:  # callers that read only the first rows should not reject them
        bad.sort(key=lambda row: row.row or 0)
        raise DataError("Some rows cannot be used.", bad, num_bad)


def _parquet_parts(path: Path, names: Mapping[str, str]) -> Iterator[Part]:
    start = 0
    for batch in arrow.parquet_batches(path, list(names.values()), arrow.parquet_rows(path, _PART_BYTES)):
        with arrow.parquet_errors(path, " inside"):
            batch.validate(full=True)
        # in Arrow's own format, all parts share one dictionary
        columns = {ours: decoded(batch.column(theirs)) for ours, theirs in names.items()}
        if "gold" in names:  # codes of the library `datasets`
            columns["gold"] = named(columns["gold"], code_names(batch.schema).get(names["gold"]))
        yield columns, np.arange(start, start + batch.num_rows)
        start += batch.num_rows


def _joined(parts: Iterable[Part]) -> tuple[dict[str, pa.Array], np.ndarray]:
    columns: dict[str, list[pa.Array]] = {}
    rows: list[np.ndarray] = [np.empty(0, np.int64)]
    for here, numbers in parts:
        rows.append(numbers)
        for name, values in here.items():
            columns.setdefault(name, []).append(values)
    return {name: pa.concat_arrays(arrays) for name, arrays in columns.items()}, np.concatenate(rows)


def _stored(parts: Iterable[Part], folder: Path) -> tuple[dict[str, Any], np.ndarray]:
    """See `_joined`; columns except those of BESIDE are stored in a file of the folder."""
    path, order, file = folder / "columns.arrow", dict[str, Any](), None

    def beside() -> Iterator[Part]:
        nonlocal order, file
        for here, numbers in parts:
            if not len(numbers):
                continue
            order, file = here, file or arrow.ColumnFile(path)
            file.write({name: values for name, values in here.items() if name not in BESIDE})
            yield {name: values for name, values in here.items() if name in BESIDE}, numbers

    try:
        kept, rows = _joined(beside())
    finally:
        if file is not None:
            file.close()
    columns = {**kept, **arrow.mapped_columns(path)} if file is not None else {}
    return {name: columns[name] for name in order}, rows


def _feature_numbers(values: pa.Array, decimal: str) -> tuple[pa.Array, list[tuple[int, str, str]]]:
    """Parse numbers from text, float64; also index, value and reason of invalid ones."""
    numbers, unreadable, empty = parse_features(pc.utf8_trim_whitespace(values), decimal)
    wrong = []
    for place in np.flatnonzero(unreadable | ~np.isfinite(numbers)).tolist():
        reason = "is not a finite number. Give a number, or leave the task out."
        if unreadable[place]:
            reason = no_number("a number", values[place].as_py())
            reason += " Columns other than task, gold and split are features; drop or correct it."
        wrong.append((place, values[place].as_py(), reason))
    return pa.array(np.where(empty, 0.0, numbers), mask=empty), wrong


def decoded(column: pa.Array) -> pa.Array:
    """Decode a dictionary array."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def parse_features(texts: pa.Array, decimal: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parse numbers from text, including true and false: float64 [N]; and which texts are not numbers, and empty."""
    empty = pc.equal(texts, "").fill_null(True).to_numpy(zero_copy_only=False)
    lower = pc.utf8_lower(texts)
    for word, number in (("true", "1"), ("false", "0")):
        texts = pc.if_else(pc.equal(lower, word), pa.scalar(number, pa.large_string()), texts)
    numbers, unreadable = parse_numbers("feature", texts, empty, decimal)
    return numbers, unreadable & ~empty, empty


def _chosen(
    name: str, layout: Layout, usual: Sequence[str], wanted: Sequence[str] | None, check: Check, header: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Our name of each column to read -> the file's name; and those that were guessed, see `find_columns`."""
    chosen, guessed = find_instance_columns(name, header, layout, usual)
    ours = {theirs: column for column, theirs in chosen.items()}
    renamed = [ours.get(column_name, column_name) for column_name in header]
    check(name, renamed)
    names = {}
    for column_name, theirs in zip(renamed, header, strict=True):
        if wanted is not None and column_name not in wanted:
            continue
        if renamed.count(column_name) > 1:
            raise DataError(f"{name}: column {column_name!r} is there {renamed.count(column_name)} times. Keep one.")
        names[column_name] = theirs
    return names, guessed


def find_instance_columns(
    name: str, header: Sequence[str], layout: Layout, usual: Sequence[str] = ("task",)
) -> tuple[dict[str, str], dict[str, str]]:
    """See `find_columns`; for the columns in `layout` and in `usual`."""
    return find_columns(name, header, list(dict.fromkeys((*usual, *layout.columns))), layout, _USUAL)


def check_ending(path: Path) -> None:
    """Reject a file that is not regular, or has another suffix."""
    check_regular(path)
    if path.suffix not in (".parquet", WORKBOOK) and not plain_name(path).endswith((".csv", ".tsv")):
        raise DataError(f"{path}: is not a table: use .parquet, .xlsx, .csv or .tsv; text also in .gz or .zip.")


def check_has(name: str, header: Sequence[str], needed: Sequence[str], option: str = "", fix: str = "") -> None:
    """Reject a file whose header lacks a column; `option` is the option that names columns, if any."""
    for column in needed:
        if column not in header:
            own = f"Say which it is: {Setting(option, {column: 'NAME'})}" if option else "Rename the one that is meant"
            columns = f"its columns are {shown_names(header)}.{did_you_mean(column, header)}"
            raise DataError(f"{name}: has no column {column!r}; {columns} {fix or own}.")


def check_features(name: str, header: Sequence[str]) -> None:
    """Reject a file whose header has no task or no features."""
    check_has(name, header, ("task",))
    if not set(header) - set(BESIDE):
        fix = "Add a list column 'features' or a column for each feature next to"
        raise DataError(f"{name}: has no features. {fix} {shown_names(header)}.")


def task_names(table: Table, repeats: bool = False) -> np.ndarray:
    """Names of the tasks, [N]: int64 if all names are integers; rejects empty and repeated names.

    Args:
        table: table with a column task.
        repeats: whether a task may have several rows.
    """
    names = table.names("task")
    table.refuse("task", [not name.strip() for name in names.tolist()], "is empty. Write the name of a task.")
    array = pa.array(names, pa.large_string())
    if not repeats:
        codes = array.dictionary_encode().indices.to_numpy()
        # codes increase with each new name
        repeated = codes <= np.maximum.accumulate(np.concatenate([[-1], codes[:-1]]))
        table.refuse("task", repeated, "appears here a second time. Keep one row per task. Are these annotations?")
    integers = text_as_integers(array)
    return names if integers is None else integers


def _number_name(value: float | None) -> str:
    """Class name of a number: 1.0 is the class 1, as in annotations."""
    if value is None or np.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def shown_names(names: Iterable[Any]) -> str:
    """Format names for a message; long lists are cut."""
    texts = [str(name) for name in names]
    return str(texts[:SHOWN])[:-1] + (f", ... {len(texts) - SHOWN} more]" if len(texts) > SHOWN else "]")


@dataclass(frozen=True, eq=False)
class InstanceReader(InstanceKind):
    """A kind of instance with its reader.

    Attributes:
        values: function from the table to `Instances.values` and `Instances.names`.
        looks_like: tells whether a file, given its path, our names of its columns and its layout, contains this kind;
            the names are empty if it is not a table, such as a text file. None: the kind cannot be detected, or is the
            default.
        wanted: columns of the table to read; None: all.
        check_header: rejects column names, given the file's name.
        table: reads the table from a path if it is not simply a file of columns; `wanted` and `check_header` are then
            unused.
        as_text: whether features of a CSV file are read as text, not as numbers.

    Other attributes: see `InstanceKind`.
    """

    values: Callable[[Table], tuple[Any, tuple[str, ...] | None]]
    looks_like: Callable[[Path, Sequence[str], Layout | None], bool] | None = None
    wanted: tuple[str, ...] | None = None
    check_header: Check = lambda name, header: None
    table: Callable[[Path, Layout | None], Table] | None = None
    as_text: bool = False
