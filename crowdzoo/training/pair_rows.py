"""Matches rows of instances with tasks by the tasks' ids."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, Union

import keras
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import label_kind
from crowdzoo.data.vocabulary import names_array
from crowdzoo.errors import ConfigError, DataError, short_repr
from crowdzoo.reading.instances.instances import Instances
from crowdzoo.reading.instances.table import BESIDE
from crowdzoo.reading.tables.frames import TableSource
from crowdzoo.reading.tables.layout import Layout

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

# Instances for training: arrays with one row per task, or an object that also has the ids of its rows
Examples: TypeAlias = Union[ArrayLike, Mapping[str, Any], Instances, "pd.DataFrame", "pl.DataFrame"]
# Annotations, a frame with one row per annotation, or an array with one row per task
Labels: TypeAlias = Union[Annotations, ArrayLike, "pd.DataFrame", "pl.DataFrame"]
# The call that a message suggests; {} is the value of `tasks`
FIT = "fit(x, annotations, tasks={})"
SHOWN = 3


def pair_rows(
    x: Examples, annotations: Annotations, tasks: ArrayLike | None = None, *, line: str = FIT
) -> tuple[Any, Annotations]:
    """Pairs instances with annotations such that row i is task code i.

    The instances are unchanged; the annotations are renumbered if the rows have another order, or more tasks.

    Args:
        x: instances: an array `[N', ...]`, a structure of them, or instances with the ids of their rows:
            `{"instances": x, "tasks": ids}`, `crowdzoo.instances.Instances`, or a pandas or polars frame with a column
            `task` (without one, the index of a pandas frame is used, unless it is 0..N'-1).
        annotations: labels of N tasks.
        tasks: ids of the rows of x, `[N']`, distinct, in any order, including tasks without labels; matched as text.
            None uses the ids in x; without any, x must have N rows, and the tasks must be named 0..N-1.
        line: call that messages suggest; `{}` is replaced by the value of `tasks`.

    Returns:
        The instances without ids, and annotations of N' tasks, named by the ids.

    Raises:
        DataError: an annotator has several labels of one task; rows cannot be matched with tasks; ids are empty,
            repeated or not as many as rows; or labelled tasks have no row.
    """
    annotations.check_no_repeats("Training")
    carried = _carried_tasks(x)
    if carried is not None and tasks is not None:
        raise DataError("x carries the ids of its rows (`tasks`): leave out either these or the argument tasks=.")
    tasks = carried if tasks is None else tasks
    index: Any = getattr(x, "index", None) if hasattr(x, "iloc") else None
    if tasks is None and index is not None and not _are_row_numbers(index.to_numpy()):
        tasks = index  # index of a pandas frame or series whose rows were selected or shuffled
    x = instances_of(x)
    rows = num_rows(x)
    if tasks is None:
        if rows != annotations.num_tasks or not _are_row_numbers(annotations.tasks):
            raise DataError(_unknown_rows(rows, annotations, line))
        return x, annotations
    if tasks is annotations.tasks and rows == annotations.num_tasks:
        return x, annotations
    ids = _ids(tasks)
    if len(ids) != rows:
        raise DataError(
            f"tasks must name the task of each row of x: x has {rows:,} rows, tasks has {len(ids):,} ids. "
            f"Write {line.format('ids')} with one id per row."
        )
    row_of = _places(annotations.tasks, ids)
    right = annotations.right_ids
    labelled = np.unique(annotations.task_ids if right is None else np.concatenate([annotations.task_ids, right]))
    missing = labelled[row_of[labelled] < 0]
    if len(missing):
        raise DataError(
            f"{len(missing):,} of the {len(labelled):,} labelled tasks have no row in x, such as "
            f"{list_names(annotations.tasks[missing])}; the ids of the rows are such as {list_names(ids)}. Give their "
            "instances, or leave them out: annotations.select_tasks(np.isin(annotations.tasks, ids))."
        )
    sides = {} if right is None else {"right_ids": row_of[right]}
    return x, replace(annotations, tasks=ids, task_ids=row_of[annotations.task_ids], **sides)


def annotations_from_frame(y: Labels, kind: str, task: str | None = None, *, line: str = FIT, **names: Any) -> Any:
    """Converts a pandas or polars frame with one row per annotation to annotations; returns anything else unchanged.

    Args:
        y: a frame with the columns task, annotator (or worker) and label, or their usual names; or anything else, such
            as a frame with one column per annotator.
        kind: kind of the labels.
        task: name of the column with the task ids; None finds it.
        line: call that messages suggest.
        **names: `annotators` and `classes` of `Annotations.from_frame`.

    Raises:
        DataError: `task` is given and y is not a frame; or as in `Annotations.from_frame`.
    """
    if not _is_frame(y):
        if task is not None:
            raise DataError(f"task= names a column of a frame of labels, and y is {type(y).__name__}: leave it out.")
        return y
    layout = Layout.of({"columns": None if task is None else {"task": task}})
    header = [str(name) for name in y.columns]
    if task is None and "task" not in header:
        try:
            TableSource({}, kind, "frame", layout=layout).match(header)
        except DataError:  # one column per annotator
            return y
    try:
        return Annotations.from_frame(y, kind=kind, columns=layout.columns, **names)
    except (ConfigError, DataError) as error:
        table = f"Annotations.from_frame(frame{label_kind(kind).argument}, columns={{...}})"
        better = line.format("ids").replace("annotations", table)
        raise type(error)(f"{error}\nOptions of reading go to from_frame: {better}.") from error


def pair_sides(annotations: Annotations, in_rows: Annotations) -> tuple[dict[str, np.ndarray], Annotations]:
    """Converts comparisons to classes of pairs, with the rows of the instances of each pair.

    Args:
        annotations: annotations of pairs.
        in_rows: the same annotations, with tasks that are rows of the instances, as from `pair_rows`.

    Returns:
        Rows of the tasks on the "left" and on the "right" of each pair, int64 `[P]`, and the annotations as kind
        "classification"; both in the order of `annotations.pairs()`.
    """
    _, table = annotations.pairs()
    first = np.unique(table.task_ids, return_index=True)[1]
    assert in_rows.right_ids is not None
    return {"left": in_rows.task_ids[first], "right": in_rows.right_ids[first]}, table


def instances_of(x: Examples) -> Any:
    """The instances without their ids; see `pair_rows`."""
    if isinstance(x, Mapping) and "instances" in x and {*x} <= {"instances", "annotators", "labels", "tasks"}:
        return x["instances"]
    if isinstance(x, Instances):
        return x.values
    if _is_frame(x) and "task" in x.columns:
        names = [name for name in x.columns if name not in BESIDE]
        if names == ["text"]:
            return x["text"].to_numpy().astype(object)
        if names == ["features"]:
            return np.stack([np.asarray(row, "float32") for row in x["features"]])
        return np.stack([np.asarray(x[name], dtype="float32") for name in names], axis=1)
    return x.to_numpy() if _is_polars(x) else x


def num_rows(x: Examples) -> int:
    """Number of rows of an array, or of every array of a structure.

    Raises:
        DataError: arrays of different lengths, or without rows.
    """
    parts = keras.tree.flatten(x)
    counts = {len(part) if np.ndim(part) else 0 for part in parts}
    if len(counts) != 1 or 0 in counts:
        shapes = ", ".join(str(np.shape(part)) for part in parts[:SHOWN])
        fix = ". For a list of rows write np.array(x)" if isinstance(x, list) and counts == {0} else ""
        raise DataError(f"x must hold arrays of the same length, with one row per task, got shapes {shapes}{fix}")
    return counts.pop()


def list_names(names: np.ndarray) -> str:
    """The first few names, for a message."""
    return ", ".join(map(short_repr, names[:SHOWN].tolist())) + (", …" if len(names) > SHOWN else "")


def _is_frame(x: object) -> TypeGuard["pd.DataFrame"]:
    return hasattr(x, "columns") and (hasattr(x, "iloc") or _is_polars(x))


def _is_polars(x: object) -> TypeGuard["pl.DataFrame"]:
    return type(x).__module__.partition(".")[0] == "polars"


def with_task_column(x: Examples, task: str | None) -> Examples:
    """Renames a frame's column `task` of ids to "task"; returns other instances unchanged."""
    if task in (None, "task") or not _is_frame(x) or task not in x.columns:
        return x
    return x.rename({task: "task"}) if _is_polars(x) else x.rename(columns={task: "task"})


def _carried_tasks(x: Any) -> Any:
    """Ids in the instances, or None."""
    if isinstance(x, Mapping):
        return x["tasks"] if {*x} == {"instances", "tasks"} else None
    if isinstance(x, Instances):
        return x.tasks
    return x["task"] if _is_frame(x) and "task" in x.columns else None


def _ids(tasks: Any) -> np.ndarray:
    """Ids of rows as a vocabulary."""
    values = tasks if hasattr(tasks, "tolist") else list(tasks)
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.array_equal(array, np.floor(array)):  # integers of a column with gaps
        values = array.astype(np.int64)
    try:
        return names_array(values, "tasks")
    except ValueError as error:
        raise DataError(f"{error} Each row of x is one task and needs its own id.") from error


def _places(names: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Position of each name among the ids, int64, -1 if missing; compared as text."""
    if names.dtype.kind == ids.dtype.kind == "i":
        parts = [pa.array(values) for values in (names, ids)]
    else:
        parts = [pa.array([str(value) for value in values.tolist()], pa.large_string()) for values in (names, ids)]
    return pc.fill_null(pc.index_in(parts[0], value_set=parts[1]), -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _are_row_numbers(names: np.ndarray) -> bool:
    return names.dtype.kind in "iu" and np.array_equal(names, np.arange(len(names)))


def _unknown_rows(rows: int, annotations: Annotations, line: str) -> str:
    """The message if rows cannot be matched with tasks."""
    names = annotations.tasks
    ways = [f"{line.format('ids')}, with the ids of the rows of x"]
    if names.dtype.kind in "iu" and len(names) and 0 <= names.min() <= names.max() < rows:
        ways.append(f"if row i of x is task i, {line.format('np.arange(len(x))')}")
    elif rows == len(names):
        ways.append(f"if row i of x is annotations.tasks[i], {line.format('annotations.tasks')}")
    return (
        f"rows of x cannot be matched with tasks: x has {rows:,} rows, the annotations are of {len(names):,} tasks, "
        f"{list_names(names)}. Write {'; or, '.join(ways)}."
    )
