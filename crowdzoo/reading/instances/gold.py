"""Gold of tasks, from a separate file or a column of the instances."""

import functools
import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.numbers import numbers_of
from crowdzoo.data.vocabulary import as_named
from crowdzoo.errors import BadRow, DataError, DataWarning, did_you_mean, short_repr
from crowdzoo.reading.instances.table import Reason, Table, read_table, shown_names, task_names
from crowdzoo.reading.tables.layout import Layout

# Codes of a preference's answer: that of "equal", and the codes after swapping left and right
EQUAL = 2
TURNED = (1, 0, EQUAL)


def read_gold(path: str | Path, tasks: np.ndarray, classes: np.ndarray, layout: Layout | None = None) -> np.ndarray:
    """Read true classes, from a file of gold or of instances with gold.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task` and `gold` (name of the true class or, in all rows, its
            code; empty where unknown).
        tasks: names of the tasks, [N]; other tasks in the file are ignored.
        classes: names of the classes, [K].
        layout: names of the columns; by default, usual names are also recognized.

    Returns:
        Class codes, int64 [N], -1 where the file has none.

    Raises:
        DataError: no such file or columns, an empty task, contradictory gold, none of the tasks, or a class not in
            `classes`; names file, row, column and value.
    """
    parse = functools.partial(parse_classes, classes=classes)
    return _gold_of(path, tasks, parse, -1, layout)


def read_gold_labels(
    path: str | Path,
    tasks: np.ndarray,
    labels: Sequence[Any],
    none: str = "(none)",
    separator: str = "|",
    layout: Layout | None = None,
) -> dict[Any, np.ndarray]:
    """Read true labels of tasks that may have several.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task` and `gold` (all true labels; empty where unknown).
        tasks: names of the tasks, [N]; other tasks in the file are ignored.
        labels: names of the labels, J.
        none: value of `gold` for tasks without labels.
        separator: separator of labels.
        layout: as for `read_gold`.

    Returns:
        label -> 1 if it applies, 0 if not, -1 if unknown, int64 [N]; as for `MultiLabel`.

    Raises:
        DataError: no such file or columns, an empty task, contradictory gold, none of the tasks, a label not in
            `labels`, or a label together with `none`; names file, row, column and value.
    """
    names = [str(name) for name in labels]

    def parse(table: Table, gold: np.ndarray) -> np.ndarray:
        sets = np.empty(len(gold), object)
        sets[:] = [frozenset(part.strip() for part in text.split(separator)) - {""} for text in gold.tolist()]
        strange = [bool(holding - {*names, none}) for holding in sets]
        listed = f"names a label that is not one of {shown_names(names)}, or {none!r} for no label"
        table.refuse("gold", strange, f"{listed}.")
        both = [none in holding and len(holding) > 1 for holding in sets]
        table.refuse("gold", both, f"has {none!r}, for no label, and a label.")
        return sets

    sets = _gold_of(path, tasks, parse, frozenset(), layout)
    return {
        label: np.array([int(name in holding) if holding else -1 for holding in sets], np.int64)
        for label, name in zip(labels, names, strict=True)
    }


def gold_by_task(path: str | Path, layout: Layout | None = None) -> dict[str, str]:
    """Read gold by task as text, empty where unknown; arguments and errors as for `read_gold`."""
    needed = ("task", "gold")
    table = read_table(path, needed, layout=layout, usual=needed)
    return _by_task(table, table.names("gold").tolist(), "")


def read_gold_ratings(path: str | Path, tasks: np.ndarray, layout: Layout | None = None) -> np.ndarray:
    """Read true ratings, from a file of gold or of instances with gold.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task` and `gold` (the true rating, empty where unknown).
        tasks: names of the tasks, [N]; other tasks in the file are ignored.
        layout: as for `read_gold`.

    Returns:
        float64 [N], NaN where the file has none.

    Raises:
        DataError: no such file or columns, an empty task, contradictory gold, none of the tasks, or gold that is not a
            finite number; names file, row, column and value.
    """
    return _gold_of(path, tasks, parse_ratings, np.nan, layout)


def read_gold_texts(path: str | Path, tasks: np.ndarray, layout: Layout | None = None) -> np.ndarray:
    """Read true texts, objects [N], empty where the file has none; see `read_gold_ratings`."""
    return _gold_of(path, tasks, lambda _, texts: texts.astype(object), "", layout)


def read_gold_pairs(path: str | Path, tasks: np.ndarray, classes: np.ndarray) -> Annotations:
    """Read true answers to pairs of tasks.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `left`, `right` (names of tasks) and `gold` (one of `classes`;
            empty where unknown). Usual names of gold are also recognized.
        tasks: names of the tasks, [N].
        classes: names of left, right and equal.

    Returns:
        Annotations of kind "preference" by one annotator, "gold", with one row per known pair; for repeated pairs, in
        either order, the first row.

    Raises:
        DataError: no such file or columns, an unknown task, a task paired with itself, gold not in `classes`, or
            contradictory answers for a pair; names file, row, column and value.
    """
    table = read_table(path, ("left", "right", "gold"), usual=("gold",))
    code = {str(name): number for number, name in enumerate(tasks.tolist())}
    sides = {side: table.names(side) for side in ("left", "right")}
    for side, names in sides.items():
        reason = f"is not one of the {len(tasks):,} tasks, which look like {str(tasks[0])!r}. Remove the row."
        table.refuse(side, [name not in code for name in names.tolist()], reason)
    left, right = (np.array([code[name] for name in names.tolist()], np.int64) for names in sides.values())
    table.refuse("right", left == right, "is in column 'left', too.")
    better = parse_classes(table, table.names("gold"), classes)
    known = better >= 0
    # the answer after swapping left and right
    answer = np.where(left < right, better, np.array(TURNED)[better])
    first: dict[tuple[int, int], int] = {}
    places = zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True)
    firsts = [first.setdefault(pair, row) if known[row] else row for row, pair in enumerate(places)]
    reason = "is another answer than an earlier row's for these two tasks."
    table.refuse("gold", answer[firsts] != answer, reason)
    known &= np.array(firsts, np.int64) == np.arange(len(known))
    return gold_pairs(left[known], right[known], better[known], tasks, classes)


def gold_pairs(
    left: np.ndarray, right: np.ndarray, better: np.ndarray, tasks: np.ndarray, classes: np.ndarray
) -> Annotations:
    """Create annotations by one annotator, "gold", from codes of tasks and true answers."""
    nobody, names = np.zeros(len(left), np.int64), np.array(["gold"], object)
    return Annotations("preference", left, nobody, better, tasks, names, classes, right_ids=right)


def _gold_of(
    path: str | Path, tasks: np.ndarray, parse: Callable[..., np.ndarray], missing: Any, layout: Layout | None
) -> np.ndarray:
    """Read gold of the tasks, [N]; `parse` converts the file's gold [n]."""
    needed = ("task", "gold")
    table = read_table(path, needed, layout=layout, usual=needed, what="true labels")
    texts = table.names("gold")
    if len(texts) and not any(texts.tolist()):
        raise DataError(f"{path}: the column {table.theirs.get('gold', 'gold')!r} is empty: fill in what is true.")
    codes = parse(table, texts)
    known = _by_task(table, codes.tolist(), missing)
    check_shared(path, known, tasks)
    return np.array([known.get(str(task), missing) for task in tasks.tolist()], codes.dtype)


def _by_task(table: Table, values: list[Any], missing: Any) -> dict[str, Any]:
    """Gold by task; several rows of a task must agree or be empty.

    Raises:
        DataError: an empty task, or one with contradictory values; names both rows.
    """
    first: dict[str, int] = {}
    bad: list[BadRow] = []
    column, numbers, texts = table.theirs.get("gold", "gold"), np.asarray(table.rows), table.names("gold")
    unknown = [value == missing or value != value for value in values]
    for row, name in enumerate(map(str, task_names(table, repeats=True).tolist())):
        earlier = first.setdefault(name, row)
        if unknown[earlier]:
            first[name] = row
        elif not unknown[row] and values[row] != values[earlier]:
            reason = f"is another value of task {name!r} than {texts[earlier]!r} in row {numbers[earlier]}. Keep one."
            bad.append(BadRow(table.name, int(numbers[row]), column, texts[row], f"{reason} Are these annotations?"))
    if bad:
        raise DataError("Some true labels cannot be used.", bad)
    return {name: values[row] for name, row in first.items()}


def check_shared(path: str | Path, names: Collection[str], tasks: np.ndarray) -> None:
    """Reject a file none of whose tasks was annotated.

    Args:
        path: path of the file.
        names: names of its tasks.
        tasks: names of the annotated tasks, [N].

    Raises:
        DataError: no common task; shows a task of each.

    Warns:
        DataWarning: less than half of the tasks of the smaller set are in the other.
    """
    known = {*map(str, tasks.tolist())}
    if names and known and known.isdisjoint(names):
        raise DataError(
            f"{path}: none of its {len(names):,} tasks is among the {len(tasks):,} that were annotated. Its tasks look "
            f"like {short_repr(next(iter(names)))}, those of the annotations like {short_repr(tasks[0])}."
        )
    strange = [name for name in names if name not in known]
    if len(names) - len(strange) < min(len(names), len(known)) / 2:
        text = f"{path}: {len(strange):,} of its {len(names):,} tasks are not among the {len(known):,} annotated ones"
        warnings.warn(f"{text}, such as {short_repr(strange[0])}. Are they written alike?", DataWarning, stacklevel=4)


def parse_classes(table: Table, gold: np.ndarray, classes: np.ndarray, column: str = "gold") -> np.ndarray:
    """Convert gold, or another column of classes, to class codes, int64 [N], -1 where unknown.

    The column contains names, or codes if no name looks like one. Gold is unknown where the column is empty, or
    contains -1 or nan and that is not a name. `1.0` means the name or the code 1, unless a class has this name.
    """
    names = [str(name) for name in classes.tolist()]
    gold = as_named(pa.array(gold.tolist(), pa.large_string()), names).to_numpy(zero_copy_only=False)
    code = {name: number for number, name in enumerate(names)} | dict.fromkeys({"", "-1", "nan"} - {*names}, -1)
    codes = {str(number): number for number in range(len(names))}
    known = {*gold.tolist()} - {"", "-1", "nan"}
    if not known <= {*names} and known <= {*codes} and not {*names} & {*codes}:
        code |= codes
    unknown = [name not in code for name in gold.tolist()]
    listed = f"is not one of the classes {shown_names(names)}."
    table.refuse(column, unknown, lambda name: listed + did_you_mean(name, names), gold)
    return np.fromiter((code[name] for name in gold.tolist()), np.int64, len(gold))


def _no_rating(reason: Reason, what: str, decimal: str, value: Any) -> str:
    text = reason if isinstance(reason, str) else reason(value)
    hint = f"The column gold has {what} here, which are numbers; leave it empty if unknown."
    hint += " Gold has the decimal mark of the annotations: write decimal commas there, too." if decimal == "," else ""
    return text if "Leave it empty" in text else f"{text} {hint}"


def parse_ratings(table: Table, gold: np.ndarray, what: str = "true ratings") -> np.ndarray:
    """Convert gold of ratings (or true scores of preferences; see `what`) to numbers, float64 [N], NaN where empty."""
    numbers, problems = numbers_of("gold", pa.array(gold.tolist(), pa.large_string()), table.decimal)
    for positions, reason in problems:
        table.refuse("gold", positions, functools.partial(_no_rating, reason, what, table.decimal), gold)
    return numbers
