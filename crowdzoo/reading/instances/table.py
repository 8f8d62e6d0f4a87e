"""A table of instances from a file, of any kind: columns by name, with the row of each value for messages."""

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

BESIDE = ("task", "gold", "split")  # columns next to what a model learns from
NAMED = (*BESIDE, "text")  # columns of text; all others are features
# What is read of a header: our names of columns -> the file's; and which of these were guessed
Choose = Callable[[Sequence[str]], tuple[dict[str, str], dict[str, str]]]
Check = Callable[[str, Sequence[str]], None]  # refuses a header, given the file's name and our names of the columns
Reason = str | Callable[[Any], str]  # why a value is refused, or what says so of the value
_PART_BYTES = 32 * 2**20  # of a table that is read part by part
# usual names of columns in a table of one row a task
_USUAL = {"task": ("id",), "gold": ("label", "class", "correct", "correctanswer", "expert")}


@dataclasses.dataclass
class Table:
    """Columns of a file.

    Attributes:
        name: name of the file.
        columns: name -> Arrow array [N], of the file's own type; of CSV large_string or float64.
        rows: the number of each row for a reader of the file, int64 [N]; None where it has none, as a folder.
        trim: white space around a value does not count.
        decimal: decimal mark of numbers in text.
        theirs: our name of a column -> the file's, where it differs.
        folder: of a table that is too large for memory: for its columns, all but those of BESIDE. These columns
            are chunked arrays then, mapped from a file.
        outside_images: whether paths of images may lead out of the table's own folder.
        what: its rows are, in the plural, for messages.
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
        """The table itself; for one in a folder its rows part by part, without the columns of BESIDE."""
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
        """What `act` gives of each part.

        Raises:
            DataError: as `act`; rows of all parts are counted in one error.
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
        """What `read` makes of the table: an array, or a dictionary of arrays.

        Of a table in a folder the arrays are there, too, and `read` gets its parts, one after the other.

        Raises:
            DataError: as `read`; rows of all parts are counted in one error.
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
        """Some columns of the table, in memory."""
        columns = {name: self.columns[name] for name in names}
        if self.folder is not None:
            columns = {name: arrow.one_array(column) for name, column in columns.items()}
        return dataclasses.replace(self, columns=columns, folder=None)

    def names(self, column: str, trim: bool = True) -> np.ndarray:
        """A column as strings, objects [N]; "" where there is nothing."""
        array = plain_array(self.columns[column], column, column, self.name)
        if pa.types.is_floating(array.type):
            return np.array([_number_name(value) for value in array.to_pylist()], object)
        if self.trim and trim and pa.types.is_large_string(array.type):
            array = pc.utf8_trim_whitespace(array)
        return array.cast(pa.large_string()).fill_null("").to_numpy(zero_copy_only=False)

    def numbers(self, column: str) -> np.ndarray:
        """A column as numbers, float64 [N], NaN where there is nothing.

        Raises:
            DataError: as `refuse`, of what is not a finite number.
        """
        texts = pa.array(self.names(column).tolist(), pa.large_string())
        numbers, problems = numbers_of(column, texts, self.decimal)
        for places, reason in problems:
            self.refuse(column, places, reason)
        return numbers

    def refuse(self, column: str, wrong: Any, reason: Reason, values: Any = None) -> None:
        """Refuses the file where values of a column are wrong.

        Args:
            column: our name of it.
            wrong: bool [N], or the places of wrong values.
            reason: why, as the end of a sentence.
            values: of the column, [N]; None: its `names`.

        Raises:
            DataError: some are wrong; names file, row, column and value of the first, and counts the rest.
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
    """CSV of instances: all columns that are wanted, numbers but for those of text."""

    longest_quoted = LONGEST_VALUE

    def __init__(self, path: Path, choose: Choose, layout: Layout, usual: Sequence[str], of_numbers: bool):
        super().__init__(path, "classification", layout=layout)
        self.required = tuple(usual)
        self.choose = choose
        self.of_numbers = of_numbers

    def match(self, header: Sequence[str]) -> dict[str, str]:
        """All columns that are wanted."""
        names, self.guessed = self.choose(header)
        return names

    def numeric_columns(self) -> set[str]:
        """Features that are read as numbers at once."""
        return self.features if self.layout.decimal == "." else set()

    @property
    def features(self) -> set[str]:
        """Columns of numbers."""
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
    """Reads some columns of a file, under our names.

    Args:
        path: path of the file.
        wanted: our names of the columns; None is all.
        check: refuses a header, given the file's name and our names of the columns; None: one that lacks any of
            `wanted`.
        layout: how the file lays out its table.
        usual: columns that are also found by usual names.
        as_text: whether features of a CSV file are read as they are written, and not as numbers.
        most_rows: rows to read from the beginning; None is all.
        folder: an empty one, for columns that shall not be in memory; see `Table.folder`.
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
        # numbers are there where all columns are wanted, unless they are read as they are written
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
    """See `read_table`: tasks are named after several columns, as those of annotations are."""
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


Part = tuple[dict[str, pa.Array], np.ndarray]  # columns, and the rows' numbers


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
    if num_bad and most_batches is None:  # whoever looks at the first rows alone is not the one to refuse them
        bad.sort(key=lambda row: row.row or 0)
        raise DataError("Some rows cannot be used.", bad, num_bad)


def _parquet_parts(path: Path, names: Mapping[str, str]) -> Iterator[Part]:
    start = 0
    for batch in arrow.parquet_batches(path, list(names.values()), arrow.parquet_rows(path, _PART_BYTES)):
        with arrow.parquet_errors(path, " inside"):
            batch.validate(full=True)
        # of a file of Arrow's own format all parts have one dictionary
        columns = {ours: decoded(batch.column(theirs)) for ours, theirs in names.items()}
        if "gold" in names:  # as the library `datasets` has it
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
    """As `_joined`; columns but those of BESIDE are in a file of the folder."""
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
    """Numbers written as text, float64, and place, value and reason of those that are not."""
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
    """Without a dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def parse_features(texts: pa.Array, decimal: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers written as text, true and false among them: float64 [N]; where a text is empty or not a number."""
    empty = pc.equal(texts, "").fill_null(True).to_numpy(zero_copy_only=False)
    lower = pc.utf8_lower(texts)
    for word, number in (("true", "1"), ("false", "0")):
        texts = pc.if_else(pc.equal(lower, word), pa.scalar(number, pa.large_string()), texts)
    numbers, unreadable = parse_numbers("feature", texts, empty, decimal)
    return numbers, unreadable & ~empty, empty


def _chosen(
    name: str, layout: Layout, usual: Sequence[str], wanted: Sequence[str] | None, check: Check, header: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Our name of each column to be read -> the file's; and those that were guessed, see `find_columns`."""
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
    """See `find_columns`, for the columns that `layout` names and those of `usual`."""
    return find_columns(name, header, list(dict.fromkeys((*usual, *layout.columns))), layout, _USUAL)


def check_ending(path: Path) -> None:
    """Refuses a file that is not regular, or whose name has another ending."""
    check_regular(path)
    if path.suffix not in (".parquet", WORKBOOK) and not plain_name(path).endswith((".csv", ".tsv")):
        raise DataError(f"{path}: is not a table: use .parquet, .xlsx, .csv or .tsv; text also in .gz or .zip.")


def check_has(name: str, header: Sequence[str], needed: Sequence[str], option: str = "", fix: str = "") -> None:
    """Refuses a file, given its name, whose header lacks a column; `option` names columns, if there is one."""
    for column in needed:
        if column not in header:
            own = f"Say which it is: {Setting(option, {column: 'NAME'})}" if option else "Rename the one that is meant"
            columns = f"its columns are {shown_names(header)}.{did_you_mean(column, header)}"
            raise DataError(f"{name}: has no column {column!r}; {columns} {fix or own}.")


def check_features(name: str, header: Sequence[str]) -> None:
    """Refuses a file, given its name, whose header has no task, or nothing that a model learns from."""
    check_has(name, header, ("task",))
    if not set(header) - set(BESIDE):
        fix = "Add a list column 'features' or a column for each feature next to"
        raise DataError(f"{name}: has no features. {fix} {shown_names(header)}.")


def task_names(table: Table, repeats: bool = False) -> np.ndarray:
    """Names of the tasks, [N]: int64 where every name is an integer; empty and repeated ones are refused.

    Args:
        table: the rows.
        repeats: whether a task may have several.
    """
    names = table.names("task")
    table.refuse("task", [not name.strip() for name in names.tolist()], "is empty. Write the name of a task.")
    array = pa.array(names, pa.large_string())
    if not repeats:
        codes = array.dictionary_encode().indices.to_numpy()
        # codes count up where a name is new
        repeated = codes <= np.maximum.accumulate(np.concatenate([[-1], codes[:-1]]))
        table.refuse("task", repeated, "appears here a second time. Keep one row per task. Are these annotations?")
    integers = text_as_integers(array)
    return names if integers is None else integers


def _number_name(value: float | None) -> str:
    """The name that a number has among classes: 1.0 is the class 1, as in annotations."""
    if value is None or np.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def shown_names(names: Iterable[Any]) -> str:
    """Names for a message; long lists are cut."""
    texts = [str(name) for name in names]
    return str(texts[:SHOWN])[:-1] + (f", ... {len(texts) - SHOWN} more]" if len(texts) > SHOWN else "]")


@dataclass(frozen=True, eq=False)
class InstanceReader(InstanceKind):
    """A kind of instance with what reads it.

    Attributes:
        values: from the table to `Instances.values` and `Instances.names`.
        looks_like: whether a file, given its path, our names of its columns and its layout, holds this kind; the names
            are empty if it is not a table, such as a text file. None: the kind is not known by its file, or is the one
            that is left over.
        wanted: columns of the table that are read; None is all.
        check_header: refuses column names, given the file's name.
        table: reads the table from a path, where it is not a file of columns as it is; `wanted` and `check_header`
            are not used then.
        as_text: whether features of a CSV file are read as they are written, and not as numbers.

    Other attributes: see `InstanceKind`.
    """

    values: Callable[[Table], tuple[Any, tuple[str, ...] | None]]
    looks_like: Callable[[Path, Sequence[str], Layout | None], bool] | None = None
    wanted: tuple[str, ...] | None = None
    check_header: Check = lambda name, header: None
    table: Callable[[Path, Layout | None], Table] | None = None
    as_text: bool = False
