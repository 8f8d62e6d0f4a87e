"""Annotations as a CSV file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from crowdzoo.files.writing import atomic_file
from crowdzoo.tables.annotations import Annotations

__all__ = ["write_annotations"]


def write_annotations(annotations: Annotations, path: str | Path) -> Path:
    """Writes the columns task, annotator, label (names; ratings as numbers), one row an annotation.

    Args:
        annotations: of kind "classification" or "regression".
        path: path of the file, which appears when it is complete.

    Returns:
        The path.
    """
    classes = annotations.classes
    columns = (
        annotations.tasks[annotations.task_ids],
        annotations.annotators[annotations.annotator_ids],
        annotations.labels if classes is None else classes[annotations.labels],
    )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("task", "annotator", "label"))
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
    with atomic_file(path) as file:
        file.write(text.getvalue().encode())
    return Path(path)
