"""Matrices of annotations, one row per task and one column per annotator."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.data.label_kinds import LabelKind
from crowdzoo.errors import SHOWN, BadRow, DataError


def read_matrix(
    matrix: ArrayLike, kind: LabelKind, names: Mapping[str, np.ndarray | None], missing: float | None = None
) -> dict[str, Any]:
    """Reads the annotations from a matrix; see `Annotations.from_dense`.

    Args:
        matrix: [N, R], or [N, T, R] for sequences.
        kind: kind of the labels.
        names: names of "task", "annotator" and "label"; None means 0, 1, ...
        missing: value of a cell without annotation; None means the default of the kind.

    Returns:
        The arguments of `Annotations`.

    Raises:
        DataError: wrong number of axes, a code outside the classes, a number that is not finite, or ragged sequences.
    """
    if {"right_ids", "values"} & {*kind.arrays}:
        raise DataError(f"a dense matrix cannot represent annotations of kind '{kind.name}'; use from_arrays.")
    matrix = np.asarray(matrix)
    axes = kind.axes + 1
    if matrix.ndim != axes or matrix.dtype.kind not in "iuf":
        raise DataError(
            f"a dense matrix of kind '{kind.name}' must have {axes} axes and contain "
            f"{'class codes' if kind.has_classes else 'numbers'}, got shape {matrix.shape} of {matrix.dtype}. "
            "For names of classes use Annotations.from_arrays(tasks, annotators, labels)."
        )
    if axes == 3:
        matrix = np.moveaxis(matrix, 2, 1)
    if missing is None:
        missing = kind.missing
    present = ~np.isnan(matrix) if np.isnan(missing) else matrix != missing
    where = np.nonzero(present)
    values = matrix[where]
    whole = np.isfinite(values)
    classes = None
    if not kind.has_classes:
        labels, good = values.astype(np.float64), whole
        reason = "is not a finite number."
    else:
        whole &= np.floor(values) == values
        labels = np.where(whole, values, -1).astype(np.int64)
        classes = _names(names["label"], int(labels.max(initial=-1)) + 1)
        good = (labels >= 0) & (labels < len(classes))
        reason = f"is not a class code, 0 to {len(classes) - 1}, and not the missing value {missing:g}."
    if not good.all():
        bad = np.flatnonzero(~good)
        rows = [BadRow("matrix", int(where[0][i]), str(where[1][i]), values[i].item(), reason) for i in bad[:SHOWN]]
        raise DataError("The matrix contains invalid labels.", rows, len(bad))
    if axes == 3:
        _check_sequences(present)
    return {
        "kind": kind.name,
        "task_ids": where[0],
        "annotator_ids": where[1],
        "labels": labels,
        "tasks": _names(names["task"], matrix.shape[0]),
        "annotators": _names(names["annotator"], matrix.shape[1]),
        "classes": classes,
        "positions": where[2] if axes == 3 else None,
    }


def _names(names: np.ndarray | None, count: int) -> np.ndarray:
    """The names, or 0 ... count-1 if None."""
    return np.arange(count, dtype=np.int64) if names is None else names


def _check_sequences(present: np.ndarray) -> None:
    """Raises an error for gaps, and if annotators of a task end at different tokens; present is bool [N, R, T]."""
    tokens = present.sum(axis=2)
    gaps = (present != (np.arange(present.shape[2]) < tokens[:, :, None])).any(axis=2)
    longest = tokens.max(axis=1, initial=0)[:, None]
    bad = np.argwhere(gaps | ((tokens > 0) & (tokens < longest)))
    if len(bad):
        reason = "tokens are labelled; each annotator of a task must label its tokens from the first to the last."
        rows = [BadRow("matrix", int(task), str(who), int(tokens[task, who]), reason) for task, who in bad[:SHOWN]]
        raise DataError("The matrix contains ragged sequences.", rows, len(bad))
