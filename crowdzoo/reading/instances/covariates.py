"""read_covariates: covariates of both sides of comparisons, such as lengths, from the file of the preferences."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import DataError
from crowdzoo.reading.instances.table import check_has, read_table
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.naming import find_columns
from crowdzoo.reading.tables.suffixes import column_names

RIGHT = 1  # the label of the right side


def read_covariates(
    path: str | Path, names: Sequence[str], annotations: Annotations, layout: Layout
) -> dict[str, NDArray[np.float64]]:
    """Read covariates of comparisons.

    Args:
        path: the file of the annotations, .parquet, .xlsx, .csv or .tsv. A covariate "length" needs the columns
            left_length and right_length or, in a file with the columns winner and loser, winner_length and
            loser_length.
        names: names of the covariates.
        annotations: preferences, which are all rows of the file in order.
        layout: layout of the file.

    Returns:
        Name -> values of the left and the right side, [A, 2].

    Raises:
        DataError: a missing column, a cell that is empty or not a number, or rows that are not in the annotations.
    """
    has_sides = bool(find_columns(str(path), column_names(path, layout), ("left", "right"), layout)[0])
    sides = ("left", "right") if has_sides else ("winner", "loser")
    columns = [f"{side}_{name}" for name in names for side in sides]
    table = read_table(path, columns, partial(check_has, needed=columns), layout, usual=())
    values = {}
    for column in columns:
        table.refuse(column, table.names(column) == "", "is empty. Write a number.")
        values[column] = table.numbers(column)
    if len(values[columns[0]]) != len(annotations):
        raise DataError(
            f"{path}: has {len(values[columns[0]]):,} rows, of which {len(annotations):,} are annotations. Covariates "
            "need all of them: remove the others from the file."
        )
    both = {name: np.stack([values[f"{side}_{name}"] for side in sides], axis=1) for name in names}
    if has_sides:
        return both
    swapped = (annotations.labels == RIGHT)[:, None]  # the winner's side was chosen at random
    return {name: np.where(swapped, numbers[:, ::-1], numbers) for name, numbers in both.items()}
