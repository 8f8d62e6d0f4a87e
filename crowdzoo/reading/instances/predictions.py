"""Predictions of a classifier, from a file as written by `crowdzoo predict`."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdzoo.errors import DataWarning
from crowdzoo.reading.instances.gold import check_shared, parse_classes
from crowdzoo.reading.instances.table import check_has, read_table, task_names
from crowdzoo.reading.tables.layout import Layout

NEEDED = ("task", "class", "probability")
_FORM = (
    "Predictions have the columns task, class and probability (of that class, from 0 to 1), as `crowdzoo predict` "
    "writes them"
)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of a classifier for the N tasks of a crowd.

    Attributes:
        labels: code of the most probable class, int64 [N]; -1 for tasks without a prediction.
        probabilities: probability of that class, float64 [N]; NaN for tasks without a prediction.
        others: number of predictions for other tasks, which were ignored.
    """

    labels: np.ndarray
    probabilities: np.ndarray
    others: int = 0

    def __repr__(self) -> str:
        return f"<Predictions: of {int((self.labels >= 0).sum()):,} of {len(self.labels):,} tasks>"


def read_predictions(
    path: str | Path, tasks: np.ndarray, classes: Sequence[Any] | np.ndarray, layout: Layout | None = None
) -> Predictions:
    """Read the predictions of a classifier.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task`, `class` (name of the most probable class) and
            `probability` (of that class, 0 to 1, also with a decimal comma), as `crowdzoo predict` writes them.
        tasks: names of the tasks, [N]; other tasks in the file are counted and ignored.
        classes: names of the classes, [K].
        layout: encoding and decimal mark of the file.

    Returns:
        The predictions of the tasks, in their order.

    Raises:
        DataError: no such file or columns, no rows, a repeated or empty task, none of the tasks, a class not in
            `classes`, or an invalid probability; names file, row, column and value.

    Warns:
        DataWarning: probabilities below 1/K, which cannot be those of the most probable class.
    """
    table = read_table(path, NEEDED, partial(check_has, needed=NEEDED, fix=_FORM), layout, what="predictions")
    names = [str(name) for name in task_names(table).tolist()]
    labels = parse_classes(table, table.names("class"), np.asarray(classes), "class")
    table.refuse("class", labels < 0, "is not a class. Give every task one.")
    written = [text.replace(",", table.decimal) for text in table.names("probability").tolist()]
    table.columns["probability"] = pa.array(written, pa.large_string())
    probabilities = table.numbers("probability")
    reason = "is not a probability. Give that of the class, a number from 0 to 1."
    table.refuse("probability", ~((probabilities >= 0) & (probabilities <= 1)), reason)
    check_shared(path, names, tasks)
    least = 1 / len(classes)  # the most probable of K classes has at least 1/K
    if len(classes) > 1 and (unlikely := int((probabilities < least - 1e-6).sum())):
        text = f"{path}: {unlikely:,} probabilities are below {least:.4g}, the least that the most probable of"
        warnings.warn(f"{text} {len(classes)} classes can have. Give the probability of that class.", DataWarning, 2)
    row = {name: place for place, name in enumerate(names)}
    rows = np.array([row.get(str(task), -1) for task in tasks.tolist()], np.int64)
    is_known = rows >= 0
    known_labels, known_shares = np.where(is_known, labels[rows], -1), np.where(is_known, probabilities[rows], np.nan)
    return Predictions(known_labels, known_shares, len(names) - int(is_known.sum()))
