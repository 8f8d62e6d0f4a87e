"""Instances: what was labelled, as a table of feature vectors or texts with optional gold and split."""

import dataclasses
import difflib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from crowdzoo._numbers import numbers_of
from crowdzoo.errors import SHOWN, BadRow, DataError
from crowdzoo.files.arrow import read_parquet

__all__ = ["Instances", "holds_texts", "read_gold", "read_gold_ratings", "read_instances", "read_text_columns"]

SPLITS = ("train", "eval")


@dataclasses.dataclass(frozen=True)
class Instances:
    """Feature vectors or texts of tasks.

    Attributes:
        tasks: names of the tasks, [N], int64 where every name is an integer, else str.
        features: float32 [N, D]; of texts D is 0.
        gold: names of the true classes (true ratings) as they stand in the file, str [N], "" where unknown; None
            without the column.
        split: "train" or "eval", str [N]; None without the column.
        first_row: the number that the first instance has for a reader of the file, for messages.
        texts: N strings; None where instances are features.
    """

    tasks: np.ndarray
    features: np.ndarray
    gold: np.ndarray | None = None
    split: np.ndarray | None = None
    first_row: int = 0
    texts: list[str] | None = None

    def __len__(self) -> int:
        return len(self.tasks)

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
        codes = np.full(len(self), -1, dtype=np.int64)
        if self.gold is None:
            return codes
        names = [str(name) for name in classes]
        index = {name: code for code, name in enumerate(names)}
        values, inverse = np.unique(self.gold.astype(str), return_inverse=True)
        lookup = np.array([index.get(value, -1) for value in values], dtype=np.int64)
        codes = lookup[inverse]
        unknown = np.flatnonzero((codes == -1) & (self.gold != ""))
        if len(unknown):
            rows = []
            for row in unknown[:SHOWN]:
                close = difflib.get_close_matches(str(self.gold[row]), names, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                reason = f"(task {self.tasks[row]}) is not one of the classes {_shorten(names)}.{hint}"
                rows.append(BadRow(file, None, "gold", str(self.gold[row]), reason))
            raise DataError("Gold names classes that are not among the annotations' classes.", rows, len(unknown))
        return codes

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
        return _ratings(Path(file), self.gold, self.first_row)


def read_instances(path: str | Path, *, texts: bool = False) -> Instances:
    """Read instances from Parquet or CSV.

    Columns: `task`; either one list column `features` or any number of numeric feature columns, taken in the file's
    order, or for texts `text`; optional `gold` (name of the true class, or the true rating; empty where unknown) and
    `split` ("train" or "eval").

    Args:
        path: file ending in .parquet, .csv or .csv.gz.
        texts: whether instances are the column `text`; other columns are passed over then.

    Returns:
        The instances in the file's order.

    Raises:
        DataError: no such file, wrong columns, a repeated or empty task, a feature that is no finite number, feature
            lists of different lengths, an empty text, an unknown split; names file, row, column and value.
    """
    path, table, first_row = _read_table(path)
    if texts:
        _check_text_columns(path, table)
    else:
        _check_columns(path, table)
    if len(table) == 0:
        raise DataError(f"{path}: holds no instances, only column names.")
    tasks = _tasks(path, table["task"], first_row)
    gold = _strings(table["gold"]) if "gold" in table.column_names else None
    split = _strings(table["split"]) if "split" in table.column_names else None
    if split is not None:
        wrong = np.flatnonzero(~np.isin(split, SPLITS))
        _complain(path, wrong, first_row, "split", split, "is neither 'train' nor 'eval'.")
    if not texts:
        return Instances(tasks, _features(path, table, first_row), gold, split, first_row)
    text = _strings(table["text"])
    empty = np.flatnonzero(np.char.strip(text) == "")
    _complain(path, empty, first_row, "text", text, "is empty. Give a text, or leave the task out.")
    return Instances(tasks, np.zeros((len(tasks), 0), "float32"), gold, split, first_row, text.tolist())


def holds_texts(path: str | Path) -> bool:
    """Whether a file is of texts: .txt, or a table whose columns beside task, gold and split are `text` alone.

    Raises:
        DataError: no such file, or it is no table.
    """
    path = Path(path)
    if path.suffix == ".txt":
        return True
    _, table, _ = _read_table(path)
    return set(table.column_names) - {"task", "gold", "split"} == {"text"}


def read_text_columns(path: str | Path) -> tuple[list[str], list[str]]:
    """Reads texts.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task` and `text`.

    Returns:
        Names of the tasks, and their texts.

    Raises:
        DataError: no such file or columns, or a repeated or empty task.
    """
    path, table, first_row = _read_table(path)
    _check_text_columns(path, table)
    return [str(task) for task in _tasks(path, table["task"], first_row)], _strings(table["text"]).tolist()


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
    path, given, gold, first_row = _gold_columns(path)
    code = {str(name): number for number, name in enumerate(classes.tolist())}
    unknown = np.flatnonzero([name != "" and name not in code for name in gold.tolist()])
    reason = f"is no class of the annotations, which have {_shorten(code)}."
    _complain(path, unknown, first_row, "gold", gold, reason)
    known = {task: code[name] for task, name in zip(given.tolist(), gold.tolist(), strict=True) if name}
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
    path, given, gold, first_row = _gold_columns(path)
    known = dict(zip(given.tolist(), _ratings(path, gold, first_row).tolist(), strict=True))
    return np.array([known.get(str(task), np.nan) for task in tasks.tolist()], np.float64)


def _gold_columns(path: str | Path) -> tuple[Path, np.ndarray, np.ndarray, int]:
    """The path, names of tasks [N], gold [N] as it stands there, and the number of the first row."""
    path, table, first_row = _read_table(path)
    for name in ("task", "gold"):
        if name not in table.column_names:
            raise DataError(f"{path}: has no column {name!r}; its columns are {_shorten(table.column_names)}.")
    return path, _tasks(path, table["task"], first_row).astype(str), _strings(table["gold"]), first_row


def _ratings(path: Path, gold: np.ndarray, first_row: int) -> np.ndarray:
    numbers, problems = numbers_of("gold", pa.array(gold.tolist(), pa.large_string()))
    for positions, reason in problems:
        way_out = "" if "Leave it empty" in str(reason) else " Gold of ratings is a number; leave it empty if unknown."
        _complain(path, positions, first_row, "gold", gold, f"{reason}{way_out}")
    return numbers


def _read_table(path: str | Path) -> tuple[Path, pa.Table, int]:
    """The path, the table, and the number that its first row has for a reader of the file."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file. Give the path of a .parquet or .csv file of instances.")
    name = path.name
    is_csv = name.endswith((".csv", ".csv.gz"))
    if not is_csv and not name.endswith(".parquet"):
        raise DataError(f"{path}: instances are read from .parquet, .csv or .csv.gz files.")
    try:
        table = _read_csv(path) if is_csv else read_parquet(path)
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read as {'CSV' if is_csv else 'Parquet'}: {error}") from error
    first_row = 2 if is_csv else 0  # a CSV's header is row 1
    return path, table, first_row


def _read_csv(path: Path) -> pa.Table:
    # Everything but the features stays text, so that a task called 007 keeps its zeros
    text = {column: pa.string() for column in ("task", "gold", "split", "text")}
    options = pyarrow.csv.ConvertOptions(column_types=text, strings_can_be_null=False)
    return pyarrow.csv.read_csv(path, convert_options=options)


def _check_columns(path: Path, table: pa.Table) -> None:
    names = table.column_names
    if "task" not in names:
        close = difflib.get_close_matches("task", names, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]!r}? Rename it to 'task'." if close else ""
        raise DataError(f"{path}: has no column 'task'; its columns are {_shorten(names)}.{hint}")
    if not set(names) - {"task", "gold", "split"}:
        raise DataError(
            f"{path}: has no features. Add a list column 'features' or numeric columns beside {_shorten(names)}."
        )


def _check_text_columns(path: Path, table: pa.Table) -> None:
    for name in ("task", "text"):
        if name not in table.column_names:
            raise DataError(f"{path}: has no column {name!r}; its columns are {_shorten(table.column_names)}.")


def _tasks(path: Path, column: pa.ChunkedArray, first_row: int) -> np.ndarray:
    text = _strings(column)
    _complain(path, np.flatnonzero(text == ""), first_row, "task", text, "is empty. Give every instance a task id.")
    order = np.argsort(text, kind="stable")
    repeated = np.sort(order[1:][text[order[1:]] == text[order[:-1]]])
    _complain(path, repeated, first_row, "task", text, "stands here a second time. Keep one row for each task.")
    try:
        numbers = text.astype(np.int64)
    except (ValueError, OverflowError):
        return text
    return numbers if np.array_equal(numbers.astype(text.dtype), text) else text


def _features(path: Path, table: pa.Table, first_row: int) -> np.ndarray:
    if "features" in table.column_names and pa.types.is_string(table["features"].type) is False:
        column = table["features"].combine_chunks()
        if not _is_list(column.type):
            raise DataError(f"{path}: column 'features' holds {column.type}; lists of numbers are wanted there.")
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        common = int(np.bincount(lengths).argmax())
        reason = f"numbers in this list, where most rows have {common}. Give every task the same number of features."
        _complain(path, np.flatnonzero(lengths != common), first_row, "features", lengths, reason)
        values = pc.list_flatten(column).to_numpy(zero_copy_only=False).astype(np.float32)
        matrix = values.reshape(len(column), common)
        names = [f"features[{index}]" for index in range(common)]
    else:
        names = [name for name in table.column_names if name not in ("task", "gold", "split")]
        for name in names:
            kind = table[name].type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
                _complain_text(path, table[name], name, first_row)
        columns = [table[name].to_numpy().astype(np.float32) for name in names]
        matrix = np.stack(columns, axis=1)
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        rows = [
            BadRow(str(path), int(row) + first_row, names[column], float(matrix[row, column]),
                   "is not a finite number. Give a number, or leave the task out.")
            for row, column in bad[:SHOWN]
        ]  # fmt: skip
        raise DataError("Some features cannot be used.", rows, len(bad))
    return np.ascontiguousarray(matrix)


def _complain_text(path: Path, column: pa.ChunkedArray, name: str, first_row: int) -> None:
    """A feature column with text in it: point to the first cells that are no numbers."""
    text = _strings(column)
    numbers = np.array([_is_number(value) for value in text])
    reason = f"is not a number. Columns other than task, gold and split are features; drop '{name}' or mend it."
    _complain(path, np.flatnonzero(~numbers), first_row, name, text, reason)
    raise DataError(f"{path}: column '{name}' holds {column.type}; numbers are wanted there.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _complain(path, positions, first_row, column, values, reason) -> None:
    if len(positions):
        rows = [
            BadRow(str(path), int(row) + first_row, column, values[row].item(), reason) for row in positions[:SHOWN]
        ]
        raise DataError("Some instances cannot be used.", rows, len(positions))


def _strings(column: pa.ChunkedArray) -> np.ndarray:
    text = pc.fill_null(pc.cast(column, pa.string()), "")
    return np.asarray(text.to_pylist(), dtype=np.str_)


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _shorten(names) -> str:
    shown = [str(name) for name in names]
    return str(shown[:SHOWN])[:-1] + (f", ... {len(shown) - SHOWN} more]" if len(shown) > SHOWN else "]")
