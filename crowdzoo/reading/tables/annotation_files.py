"""Annotations as a CSV file."""

from pathlib import Path

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.files.writing import write_rows


def write_annotations(annotations: Annotations, path: str | Path) -> Path:
    """Writes the columns task, annotator, label (names; ratings as numbers), seconds and timestamp, a row each.

    Comparisons of two tasks have left and right instead of task.

    Args:
        annotations: of any kind but sentences.
        path: path of the file, which appears when it is complete.

    Returns:
        The path.

    Raises:
        DataError: names that differ in white space at their ends alone, which a reader of CSV passes over.
    """
    labels = annotations.label_names
    for names in (annotations.tasks, annotations.annotators, labels):
        read: dict[str, str] = {}
        for name in () if names is None else map(str, names.tolist()):
            if read.setdefault(name.strip(), name) != name:
                raise DataError(f"{path}: {read[name.strip()]!r} and {name!r} would be read as one name. Rename one.")
    columns = {
        "task": annotations.tasks[annotations.task_ids],
        "annotator": annotations.annotators[annotations.annotator_ids],
        "label": annotations.labels if labels is None else labels[annotations.labels],
    }
    if annotations.right_ids is not None:
        columns = {"left": columns.pop("task"), "right": annotations.tasks[annotations.right_ids], **columns}
    for name, form, values in (("seconds", "g", annotations.seconds), ("timestamp", ".15g", annotations.timestamp)):
        if values is not None:
            columns[name] = np.array(["" if np.isnan(value) else format(value, form) for value in values], object)
    return write_rows(path, columns, zip(*(column.tolist() for column in columns.values()), strict=True))
