"""read_covariates: numbers of both sides of each comparison, such as lengths, from the file of the preferences."""

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
    """Reads covariates of comparisons.

    Args:
        path: .parquet, .xlsx, .csv or .tsv, the file of the annotations. For a covariate "length" it has the columns
            left_length and right_length; or, if it has the columns winner and loser, winner_length and loser_length.
        names: of the covariates.
        annotations: preferences, all rows of the file in their order.
        layout: how the file is laid out.

    Returns:
        Name -> numbers of the left and of the right side, [A, 2].

    Raises:
        DataError: a column is missing, a cell is empty or not a number, or rows of the file are not in the annotations.
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
    swapped = (annotations.labels == RIGHT)[:, None]  # the winner got its side by chance
    return {name: np.where(swapped, numbers[:, ::-1], numbers) for name, numbers in both.items()}
