"""Instances: what was labelled, as a table of feature vectors or texts with optional gold and split."""

import dataclasses
import difflib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdzoo.errors import SHOWN, BadRow, DataError
from crowdzoo.files.arrow import one_array, read_parquet
from crowdzoo.files.regular import check_regular
from crowdzoo.tables.numbers import numbers_of, parse_numbers
from crowdzoo.tables.sources import plain_array
from crowdzoo.tables.text_files import LONGEST_VALUE, CsvSource, column_names
from crowdzoo.tables.vocabulary import text_as_integers

__all__ = ["Instances", "holds_texts", "read_gold", "read_gold_ratings", "read_instances", "read_text_columns"]

SPLITS = ("train", "eval")
NAMED = ("task", "gold", "split", "text")  # columns of text; all others are features


@dataclasses.dataclass(frozen=True)
class Instances:
    """Feature vectors or texts of tasks.

    Attributes:
        tasks: names of the tasks, [N], int64 where every name is an integer, else objects (strings).
        features: float32 [N, D]; of texts D is 0.
        gold: names of the true classes (true ratings) as they stand in the file, objects (strings) [N], "" where
            unknown; None without the column.
        split: "train" or "eval", objects (strings) [N]; None without the column.
        rows: the number that each instance has for a reader of the file (in CSV its line, from 1), int64 [N]; None:
            they count from 0.
        texts: N strings; None where instances are features.
    """

    tasks: np.ndarray
    features: np.ndarray
    gold: np.ndarray | None = None
    split: np.ndarray | None = None
    rows: np.ndarray | None = None
    texts: list[str] | None = None

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def training(self) -> np.ndarray:
        """Which instances are trained on, bool [N]: all but those of the split "eval"."""
        return np.ones(len(self), bool) if self.split is None else self.split != "eval"

    def gold_codes(self, classes: np.ndarray, file: str = "gold") -> np.ndarray:
        """Gold as codes of the classes.

        Args:
            classes: class names, [K]; compared as strings.
            file: the name used in an error.

        Returns:
            int64 [N], -1 where gold is unknown.

        Raises:
            DataError: gold names a class that is not among the classes.
        """
        if self.gold is None:
            return np.full(len(self), -1, dtype=np.int64)
        names = [str(name) for name in classes]
        code = {name: number for number, name in enumerate(names)} | {"": -1}
        unknown = [row for row, name in enumerate(self.gold.tolist()) if name not in code]
        if unknown:
            rows = []
            for row in unknown[:SHOWN]:
                close = difflib.get_close_matches(self.gold[row], names, n=1) if len(self.gold[row]) < 1000 else []
                hint = f" Did you mean {close[0]!r}?" if close else ""
                reason = f"(task {self.tasks[row]}) is not one of the classes {_shorten(names)}.{hint}"
                rows.append(BadRow(file, None, "gold", self.gold[row], reason))
            raise DataError("Gold names classes that are not among the annotations' classes.", rows, len(unknown))
        return np.fromiter((code[name] for name in self.gold.tolist()), np.int64, len(self))

    def gold_ratings(self, file: str | Path = "gold") -> np.ndarray:
        """Gold as numbers.

        Args:
            file: the name used in an error.

        Returns:
            float64 [N], NaN where gold is unknown (empty, or nan).

        Raises:
            DataError: gold that is no number, or infinite; names file, row, column and value.
        """
        if self.gold is None:
            return np.full(len(self), np.nan)
        rows = np.arange(len(self)) if self.rows is None else self.rows
        return _ratings(_Table(os.fspath(file), {}, rows), self.gold)


def read_instances(path: str | Path, *, texts: bool = False) -> Instances:
    """Read instances from Parquet or CSV.

    Columns: `task`; either one list column `features` or any number of numeric feature columns, taken in the file's
    order, or for texts `text`; optional `gold` (name of the true class, or the true rating; empty where unknown) and
    `split` ("train" or "eval"). In CSV white space around a value does not count, but for texts; true and false are
    the features 1 and 0.

    Args:
        path: file ending in .parquet, .csv or .csv.gz.
        texts: whether instances are the column `text`; other columns are passed over then.

    Returns:
        The instances in the file's order.

    Raises:
        DataError: no such file, wrong columns, a repeated or empty task, a feature that is no finite number, feature
            lists of different lengths or without numbers, an empty text, an unknown split; names file, row, column
            and value.
    """
    table = _read(path, NAMED if texts else None, _check_text_columns if texts else _check_columns)
    tasks = _tasks(table)
    gold = table.names("gold") if "gold" in table.columns else None
    split = table.names("split") if "split" in table.columns else None
    if split is not None:
        table.complain(np.flatnonzero(~np.isin(split, SPLITS)), "split", split, "is neither 'train' nor 'eval'.")
    if not texts:
        return Instances(tasks, _features(table), gold, split, table.rows)
    text = table.names("text", trim=False)
    empty = np.flatnonzero([not each.strip() for each in text])
    table.complain(empty, "text", text, "is empty. Give a text, or leave the task out.")
    return Instances(tasks, np.zeros((len(tasks), 0), "float32"), gold, split, table.rows, text.tolist())


def holds_texts(path: str | Path) -> bool:
    """Whether a file is of texts: .txt, or a table whose columns beside task, gold and split are `text` alone.

    Raises:
        DataError: no such file, or it is no table.
    """
    path = Path(path)
    if path.suffix == ".txt":
        check_regular(path)
        return True
    _check_ending(path)
    return set(column_names(path)) - {"task", "gold", "split"} == {"text"}


def read_text_columns(path: str | Path) -> tuple[list[str], list[str]]:
    """Reads texts.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task` and `text`.

    Returns:
        Names of the tasks, and their texts.

    Raises:
        DataError: no such file or columns, or a repeated or empty task.
    """
    table = _read(path, ("task", "text"), _check_text_columns)
    return [str(task) for task in _tasks(table)], table.names("text", trim=False).tolist()


def read_gold(path: str | Path, tasks: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Reads known classes; a file of instances with gold will do.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task` and `gold` (name of the true class, empty where
            unknown).
        tasks: names of the tasks that are wanted, [N]; other tasks in the file are passed over.
        classes: names of the classes, [K].

    Returns:
        Class codes, int64 [N], -1 where the file does not know.

    Raises:
        DataError: no such file or columns, a repeated or empty task, a class that is not among `classes`; names file,
            row, column and value.
    """
    table, given, gold = _gold_columns(path)
    code = {str(name): number for number, name in enumerate(classes.tolist())}
    unknown = np.flatnonzero([name != "" and name not in code for name in gold.tolist()])
    reason = f"is no class of the annotations, which have {_shorten(code)}."
    table.complain(unknown, "gold", gold, reason)
    known = {task: code[name] for task, name in zip(given, gold.tolist(), strict=True) if name}
    return np.array([known.get(str(task), -1) for task in tasks.tolist()], np.int64)


def read_gold_ratings(path: str | Path, tasks: np.ndarray) -> np.ndarray:
    """Reads known ratings; a file of instances with gold will do.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task` and `gold` (the true rating, empty where unknown).
        tasks: names of the tasks that are wanted, [N]; other tasks in the file are passed over.

    Returns:
        float64 [N], NaN where the file does not know.

    Raises:
        DataError: no such file or columns, a repeated or empty task, gold that is no number or infinite; names file,
            row, column and value.
    """
    table, given, gold = _gold_columns(path)
    known = dict(zip(given, _ratings(table, gold).tolist(), strict=True))
    return np.array([known.get(str(task), np.nan) for task in tasks.tolist()], np.float64)


# === Tables of any format ===


@dataclasses.dataclass
class _Table:
    """Columns of a file.

    Attributes:
        name: of the file.
        columns: name -> Arrow array [N], of the file's own type; of CSV large_string or float64.
        rows: the number of each row for a reader of the file, int64 [N].
        trim: white space around a value does not count.
    """

    name: str
    columns: dict[str, pa.Array]
    rows: np.ndarray
    trim: bool = False

    def names(self, column: str, trim: bool = True) -> np.ndarray:
        """A column as strings, objects [N]; "" where there is nothing."""
        array = plain_array(self.columns[column], column, column, self.name)
        if pa.types.is_floating(array.type):
            return np.array([_number_name(value) for value in array.to_pylist()], object)
        if self.trim and trim and pa.types.is_large_string(array.type):
            array = pc.utf8_trim_whitespace(array)
        return array.cast(pa.large_string()).fill_null("").to_numpy(zero_copy_only=False)

    def complain(
        self, places: Sequence[int] | np.ndarray, column: str, values: Any, reason: str | Callable[[Any], str]
    ) -> None:
        """Refuses the file where there are rows to complain about."""
        if not len(places):
            return
        rows = []
        for place in places[:SHOWN]:
            value = values[place].item() if isinstance(values[place], np.generic) else values[place]
            why = reason if isinstance(reason, str) else reason(value)
            rows.append(BadRow(self.name, int(self.rows[place]), column, value, why))
        raise DataError("Some instances cannot be used.", rows, len(places))


class _InstanceCsv(CsvSource):
    """CSV of instances: all columns that are wanted, numbers but for those of text."""

    longest_quoted = LONGEST_VALUE

    def __init__(self, path: Path, wanted: Sequence[str] | None, check: Callable[[str, Sequence[str]], None]):
        super().__init__(path, "classification")
        self.wanted = wanted
        self.check = check

    def match(self, header: Sequence[str]) -> dict[str, str]:
        """All columns that are wanted."""
        names = _wanted(self.name, header, self.wanted, self.check)
        return {name: name for name in names}

    def numeric_columns(self) -> set[str]:
        """Features."""
        return set(self.found) - set(NAMED)


def _read(path: str | Path, wanted: Sequence[str] | None, check: Callable[[str, Sequence[str]], None]) -> _Table:
    """Reads some columns of a file, or all of them for None; `check` refuses a header."""
    path = Path(path)
    _check_ending(path)
    name = os.fspath(path)
    if path.suffix == ".parquet":
        names = _wanted(name, column_names(path), wanted, check)
        table = read_parquet(path, names)
        columns = {each: one_array(table.column(each)) for each in names}
        found = _Table(name, columns, np.arange(table.num_rows))
    else:
        found = _read_csv(_InstanceCsv(path, wanted, check))
    if not len(found.rows):
        raise DataError(f"{name}: holds no instances, only column names.")
    return found


def _read_csv(source: _InstanceCsv) -> _Table:
    parts: dict[str, list[pa.Array]] = {}
    lines: list[np.ndarray] = []
    bad: list[BadRow] = []
    num_bad = 0
    for batch in source.batches(may_be_empty=True):
        here = batch.line_numbers()
        lines.append(here)
        num_bad += len(batch.bad)
        bad += [problem for problem, _ in batch.bad[: SHOWN - len(bad)]]
        for column, values in batch.columns.items():
            if column in source.numeric and not pa.types.is_floating(values.type):
                values, wrong = _feature_numbers(values)
                num_bad += len(wrong)
                for place, value, reason in wrong[: max(0, SHOWN - len(bad))]:
                    bad.append(BadRow(source.name, int(here[place]), column, value, reason))
            parts.setdefault(column, []).append(values)
    if num_bad:
        bad.sort(key=lambda row: row.row or 0)
        raise DataError("Some instances cannot be used.", bad, num_bad)
    columns = {column: pa.concat_arrays(arrays) for column, arrays in parts.items()}
    return _Table(source.name, columns, np.concatenate(lines) if lines else np.empty(0, np.int64), trim=True)


def _feature_numbers(values: pa.Array) -> tuple[pa.Array, list[tuple[int, str, str]]]:
    """Numbers written as text, float64, and place, value and reason of those that are none."""
    texts = pc.utf8_trim_whitespace(values)
    empty = pc.equal(texts, "").fill_null(True).to_numpy(zero_copy_only=False)
    lower = pc.utf8_lower(texts)
    for word, number in (("true", "1"), ("false", "0")):
        texts = pc.if_else(pc.equal(lower, word), pa.scalar(number, pa.large_string()), texts)
    numbers, unreadable = parse_numbers("feature", texts, empty)
    unreadable &= ~empty
    wrong = []
    for place in np.flatnonzero(unreadable | ~np.isfinite(numbers)).tolist():
        reason = "is not a finite number. Give a number, or leave the task out."
        if unreadable[place]:
            reason = "is not a number. Columns other than task, gold and split are features; drop or correct it."
        wrong.append((place, values[place].as_py(), reason))
    return pa.array(np.where(empty, 0.0, numbers), mask=empty), wrong


def _wanted(
    name: str, header: Sequence[str], wanted: Sequence[str] | None, check: Callable[[str, Sequence[str]], None]
) -> list[str]:
    """Names of the columns to be read."""
    check(name, header)
    names = [each for each in dict.fromkeys(header) if wanted is None or each in wanted]
    for each in names:
        if list(header).count(each) > 1:
            raise DataError(f"{name}: column {each!r} is there {list(header).count(each)} times. Keep one.")
    return names


def _check_ending(path: Path) -> None:
    check_regular(path)
    if not path.name.endswith((".csv", ".csv.gz", ".parquet")):
        raise DataError(f"{path}: instances are read from .parquet, .csv or .csv.gz files.")


def _check_columns(name: str, header: Sequence[str]) -> None:
    if "task" not in header:
        close = difflib.get_close_matches("task", header, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]!r}? Rename it to 'task'." if close else ""
        raise DataError(f"{name}: has no column 'task'; its columns are {_shorten(header)}.{hint}")
    if not set(header) - {"task", "gold", "split"}:
        raise DataError(
            f"{name}: has no features. Add a list column 'features' or numeric columns beside {_shorten(header)}."
        )


def _check_text_columns(name: str, header: Sequence[str]) -> None:
    _check_has(name, header, ("task", "text"))


def _check_gold_columns(name: str, header: Sequence[str]) -> None:
    _check_has(name, header, ("task", "gold"))


def _check_has(name: str, header: Sequence[str], needed: Sequence[str]) -> None:
    for each in needed:
        if each not in header:
            raise DataError(f"{name}: has no column {each!r}; its columns are {_shorten(header)}.")


# === Columns ===


def _gold_columns(path: str | Path) -> tuple[_Table, list[str], np.ndarray]:
    """The table, names of tasks [N], and gold [N] as it stands there."""
    table = _read(path, ("task", "gold"), _check_gold_columns)
    return table, [str(task) for task in _tasks(table).tolist()], table.names("gold")


def _ratings(table: _Table, gold: np.ndarray) -> np.ndarray:
    numbers, problems = numbers_of("gold", pa.array(gold.tolist(), pa.large_string()))
    for positions, reason in problems:
        way_out = "" if "Leave it empty" in str(reason) else " Gold of ratings is a number; leave it empty if unknown."
        table.complain(positions, "gold", gold, f"{reason}{way_out}")
    return numbers


def _tasks(table: _Table) -> np.ndarray:
    names = table.names("task")
    empty = np.flatnonzero([not name.strip() for name in names.tolist()])
    table.complain(empty, "task", names, "is empty. Give every instance a task id.")
    array = pa.array(names, pa.large_string())
    codes = array.dictionary_encode().indices.to_numpy()
    # codes count up where a name is new
    repeated = np.flatnonzero(codes <= np.maximum.accumulate(np.concatenate([[-1], codes[:-1]])))
    table.complain(repeated, "task", names, "stands here a second time. Keep one row for each task.")
    integers = text_as_integers(array)
    return names if integers is None else integers


def _features(table: _Table) -> np.ndarray:
    names = [name for name in table.columns if name not in ("task", "gold", "split")]
    listed = table.columns.get("features")
    if listed is not None and not (pa.types.is_integer(listed.type) or pa.types.is_floating(listed.type)):
        matrix, names = _matrix_of_lists(table, listed)
    else:
        columns = [_numeric(table, name) for name in names]
        matrix = np.stack(columns, axis=1)
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        rows = []
        for row, column in bad[:SHOWN].tolist():
            value = float(matrix[row, column])
            reason = "is not a finite number of 32 bits. Give a number, or leave the task out."
            rows.append(BadRow(table.name, int(table.rows[row]), names[column], value, reason))
        raise DataError("Some features cannot be used.", rows, len(bad))
    return np.ascontiguousarray(matrix)


def _matrix_of_lists(table: _Table, column: pa.Array) -> tuple[np.ndarray, list[str]]:
    """Lists of one length as float32 [N, D], and names of the D features."""
    kind = column.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not _is_number(kind.value_type):
        raise DataError(f"{table.name}: column 'features' holds {kind}; lists of numbers are wanted there.")
    missing = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
    table.complain(missing, "features", [None] * len(column), "is empty. Give a list of numbers.")
    if pa.types.is_fixed_size_list(kind):
        lengths = np.full(len(column), kind.list_size)
    else:
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    common = int(np.bincount(lengths).argmax())
    reason = f"numbers in this list, where most rows have {common}. Give every task the same number of features."
    table.complain(np.flatnonzero(lengths != common), "features", lengths, reason)
    if not common:
        raise DataError(f"{table.name}: column 'features' holds empty lists. Give every task its features.")
    return _floats(column.flatten()).reshape(len(column), common), [f"features[{index}]" for index in range(common)]


def _numeric(table: _Table, name: str) -> np.ndarray:
    """A feature column, float32 [N]; NaN where there is nothing."""
    column = table.columns[name]
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _is_number(column.type):
        return _floats(column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = table.names(name)
        _, unreadable = parse_numbers("feature", pa.array(texts, pa.large_string()), np.zeros(len(texts), bool))
        reason = "is not a number. Columns other than task, gold and split are features; drop or correct it."
        table.complain(np.flatnonzero(unreadable), name, texts, reason)
    raise DataError(f"{table.name}: column '{name}' holds {kind}; numbers are wanted there.")


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)


def _floats(column: pa.Array) -> np.ndarray:
    if pa.types.is_decimal(column.type):
        values = np.array([np.nan if value is None else float(value) for value in column.to_pylist()])
    elif pa.types.is_boolean(column.type):
        values = column.cast(pa.int8()).to_numpy(zero_copy_only=False)
    else:
        values = column.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32)


def _number_name(value: float | None) -> str:
    """The name that a number has among classes: 1.0 is the class 1, as in annotations."""
    if value is None or np.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _shorten(names) -> str:
    shown = [str(name) for name in names]
    return str(shown[:SHOWN])[:-1] + (f", ... {len(shown) - SHOWN} more]" if len(shown) > SHOWN else "]")
