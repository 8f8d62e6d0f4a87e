"""Instances: the labelled items, read from a file, with optional gold and split."""

import dataclasses
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.instance_kinds import IMAGES, TEXTS, InstanceKind
from crowdzoo.data.vocabulary import is_among, name_texts
from crowdzoo.errors import SHOWN, DataError, DataWarning, Setting
from crowdzoo.reading.instances.gold import parse_classes, parse_ratings
from crowdzoo.reading.instances.readers import reader_of, recognised
from crowdzoo.reading.instances.table import Table, read_table, shown_names, task_names
from crowdzoo.reading.instances.texts import read_texts
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.naming import may_be_gold

SPLITS = ("train", "eval")
_USUAL_SPLITS = {"training": "train"} | dict.fromkeys(("validation", "valid", "val", "dev", "test"), "eval")


@dataclasses.dataclass(frozen=True)
class Instances:
    """Instances of tasks, all of one kind.

    Attributes:
        tasks: names of the tasks, [N], int64 if all names are integers, else objects (strings).
        kind: kind of instances.
        values: model inputs, one row per task. Feature vectors are float32 [N, D], texts objects (strings) [N], images
            objects (`Path`) [N], which are opened when needed. A table is a dictionary by column: numbers float64 [N]
            (NaN is missing), categories and texts objects (strings) [N] ("" is missing), vectors float32 [N, D], images
            as above. For instances in a folder (see `read_instances`), arrays of numbers are `numpy.memmap`, and
            strings are read row by row or in slices.
        names: names of the D columns of feature vectors; None for a list column, and for other kinds.
        gold: names of the true classes (or true ratings) as in the file, objects (strings) [N], "" where unknown; None
            without the column.
        split: "train" or "eval", objects (strings) [N]; None without the column.
        rows: row number of each instance in the file (in CSV the line, from 1), int64 [N]; None: they count from 0.
        decimal: decimal mark of numeric gold.
    """

    tasks: np.ndarray
    kind: InstanceKind
    values: Any
    names: tuple[str, ...] | None = None
    gold: np.ndarray | None = None
    split: np.ndarray | None = None
    rows: np.ndarray | None = None
    decimal: str = "."

    def __repr__(self) -> str:
        columns = "".join(f", with {name}" for name in ("gold", "split") if getattr(self, name) is not None)
        return f"<Instances: {len(self.tasks):,} tasks, {self.kind.name}{columns}>"

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def training(self) -> np.ndarray:
        """Which instances are used for training, bool [N]: all except those of the split "eval"."""
        return np.ones(len(self), bool) if self.split is None else self.split != "eval"

    def named_like(self, tasks: Iterable[Any]) -> "Instances":
        """Rename the instances to match task names elsewhere.

        Args:
            tasks: names of tasks in the annotations. If some are names of image files with suffix, all images get names
                with suffix. If none is in a folder but all images are, images are named after their files, if these
                names are unique. Otherwise, nothing changes.
        """
        if self.kind != IMAGES:
            return self
        written, names = {*map(str, tasks)}, [str(task) for task in self.tasks]
        plain = [name.rpartition("/")[2] for name in names]
        if written.isdisjoint(names) and not written.isdisjoint(plain) and len({*plain}) == len(plain):
            return dataclasses.replace(self, tasks=np.array(plain, object))
        files = [f"{task}{path.suffix}" for task, path in zip(self.tasks, self.values, strict=True)]
        after_files = all(path.as_posix().endswith(name) for name, path in zip(files, self.values, strict=True))
        if not after_files or written.isdisjoint(files):
            return self
        return dataclasses.replace(self, tasks=np.array(files, object))

    def gold_codes(self, classes: np.ndarray, file: str | Path = "gold") -> np.ndarray:
        """Convert gold to class codes. The column contains names or, in all rows, codes.

        Args:
            classes: class names, [K], compared as strings.
            file: name of the file, for messages.

        Returns:
            int64 [N], -1 where gold is unknown.

        Raises:
            DataError: gold contains an unknown class; names file, row, column and value.
        """
        if self.gold is None:
            return np.full(len(self), -1, dtype=np.int64)
        return parse_classes(self._table(file), self.gold, np.asarray(classes))

    def gold_ratings(self, file: str | Path = "gold", what: str = "true ratings") -> np.ndarray:
        """Convert gold to numbers.

        Args:
            file: name of the file, for messages.
            what: description of the column gold, for messages.

        Returns:
            float64 [N], NaN where gold is unknown (empty or nan).

        Raises:
            DataError: gold that is not a finite number; names file, row, column and value.
        """
        if self.gold is None:
            return np.full(len(self), np.nan)
        return parse_ratings(self._table(file), self.gold, what)

    def in_order(self, names: Sequence[str] | None, file: str | Path) -> Any:
        """Return the values in the column order of a trained model.

        Args:
            names: names of the model's training columns, in its order; None if unknown.
            file: name of the file, for messages.

        Returns:
            `values`, with feature vectors in the order of `names`; unchanged if either has no names.

        Raises:
            DataError: missing or additional columns; names them.
        """
        if names is None or self.names is None or tuple(names) == self.names:
            return self.values
        differing = (("lacks", {*names} - {*self.names}), ("has", {*self.names} - {*names}))
        if parts := [f"{verb} {shown_names(sorted(tasks))}" for verb, tasks in differing if tasks]:
            trained = f"The model was trained on the columns {shown_names(names)}; give these columns, in any order."
            raise DataError(f"{file}: {' and '.join(parts)}. {trained}")
        return self.values[:, [self.names.index(name) for name in names]]

    def _table(self, file: str | Path) -> Table:
        rows = np.arange(len(self)) if self.rows is None else self.rows
        return Table(os.fspath(file), {}, rows, decimal=self.decimal)


def read_instances(
    path: str | Path, kind: InstanceKind | None = None, layout: Layout | None = None, folder: str | Path | None = None
) -> Instances:
    """Read instances from Parquet or CSV, or images from a folder.

    Columns: `task`; model inputs; optional `gold` (name of the true class, or the true rating; empty where unknown) and
    `split` ("train" or "eval"). Model inputs are one of

    - feature vectors: one list column `features`, or any number of numeric columns, taken in the file's order;
    - texts: the column `text`;
    - images: the column `image` of paths, or a folder; see `crowdzoo.reading.instances.images.read_image_table`;
    - a table: columns of several types, or numbers with gaps; see `crowdzoo.reading.instances.tables`.

    In CSV, white space around values is ignored, except in texts; true and false are the features 1 and 0.

    Args:
        path: file ending in .parquet, .csv or .csv.gz; or a folder of images.
        kind: kind of instances; for `TEXTS` and `IMAGES`, other columns are ignored. None infers the kind from the
            columns: texts if the only input column is `text`, images if there is a column `image`, else feature
            vectors.
        layout: names of the columns task, gold, split, text, image, features in the file. By default, usual names of
            the task are also recognized.
        folder: an empty folder on a disk, for values that do not fit into memory: they are written there in parts and
            read when needed, so the folder must not be removed. Names, gold, split and paths of images stay in memory.
            None keeps everything in memory.

    Returns:
        The instances in the file's order.

    Raises:
        DataError: no such file, wrong columns, a repeated or empty task, a feature that is not a finite number, feature
            lists of different lengths or without numbers, an empty text, or an unknown split; names file, row, column
            and value.
    """
    kind = recognised(path, layout=layout) if kind is None else kind
    reader = reader_of(kind)
    if reader.table is not None:
        table = reader.table(Path(path), layout)
    else:
        own = None if folder is None else Path(folder)
        table = read_table(path, reader.wanted, reader.check_header, layout, as_text=reader.as_text, folder=own)
    tasks = task_names(table)
    gold = table.names("gold") if "gold" in table.columns else None
    split = table.names("split") if "split" in table.columns else None
    if split is not None:
        if other := sorted({*split.tolist()} & _USUAL_SPLITS.keys()):
            text = ", ".join(f"'{name}' is taken for '{_USUAL_SPLITS[name]}'" for name in other)
            warnings.warn(f"{path}: of the splits {text}.", DataWarning, stacklevel=2)
            split = np.array([_USUAL_SPLITS.get(name, name) for name in split.tolist()], object)
        table.refuse("split", ~np.isin(split, SPLITS), "is neither 'train' nor 'eval'.", split)
    values, names = reader.values(table)
    learned = [name for name in (values if isinstance(values, dict) else names or ()) if may_be_gold(name)]
    if gold is None and learned:
        option = Setting("instance_columns", {"gold": learned[0]})
        text = f"column '{learned[0]}' is taken for what a model learns from. If it is the truth, give {option}."
        warnings.warn(f"{path}: {text}", DataWarning, stacklevel=2)
    return Instances(tasks, kind, values, names, gold=gold, split=split, rows=table.rows, decimal=table.decimal)


def read_inputs(path: str | Path, kind: InstanceKind | None = None, layout: Layout | None = None) -> Instances:
    """Read instances for prediction.

    Args:
        path: as for `read_instances`; for texts also .txt with one text per line. Texts may be empty.
        kind: kind of instances; None infers it from the file.
        layout: names of the columns.

    Returns:
        The instances; texts are without gold and split.

    Raises:
        DataError: see `read_instances` and `read_texts`.
    """
    kind = recognised(path, layout=layout) if kind is None else kind
    if kind != TEXTS:
        return read_instances(path, kind, layout)
    tasks, texts = read_texts(path, layout)
    return Instances(np.array(tasks, object), kind, np.array(texts, object))


def take_rows(values: Any, rows: np.ndarray | slice) -> Any:
    """Select rows of `Instances.values`, an array `[N, ...]` or a dictionary of them."""
    return {name: column[rows] for name, column in values.items()} if isinstance(values, dict) else values[rows]


def check_annotated(instances: Instances, crowd: Annotations, path: str | Path, annotations: str | Path) -> None:
    """Check that all annotated tasks are among the instances.

    Args:
        instances: instances of the tasks.
        crowd: labels of the tasks.
        path: file of the instances, for messages.
        annotations: file of the annotations, for messages.

    Raises:
        DataError: tasks without an instance; names them.
    """
    names, tasks = name_texts(instances.tasks), name_texts(crowd.tasks[crowd.redundancy > 0])
    unknown = tasks[~is_among(tasks, names)]
    if len(unknown):
        listed = ", ".join(map(repr, unknown[:SHOWN].tolist())) + (", ..." if len(unknown) > SHOWN else "")
        text = f"{len(unknown):,} of the {len(tasks):,} tasks have no row in {path}: {listed}."
        raise DataError(f"{annotations}: {text} Tasks there look like {str(names[0])!r}.")
