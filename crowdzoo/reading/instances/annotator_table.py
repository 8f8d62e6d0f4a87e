"""Facts about annotators besides their labels: whether they are models or people, and the price of an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crowdzoo.errors import DataError, short_repr
from crowdzoo.reading.instances.table import check_has, read_table, shown_names
from crowdzoo.reading.tables.layout import Layout

SOURCES = ("model", "person")


@dataclass(frozen=True)
class AnnotatorTable:
    """Facts from a file about R annotators.

    Attributes:
        sources: "model" or "person" [R]; None without this column.
        costs: price per answer, float64 [R], above 0, in any unit; None without this column.
    """

    sources: NDArray[np.object_] | None
    costs: NDArray[np.float64] | None


def read_annotator_table(path: str | Path, annotators: np.ndarray, layout: Layout | None = None) -> AnnotatorTable:
    """Read a table of annotators.

    Args:
        path: .parquet, .csv or .csv.gz with the column `annotator`, and `source` ("model" or "person"), `cost` (a
            number above 0), or both. Other columns and annotators are ignored.
        annotators: names of the annotators, [R].
        layout: layout of the file.

    Returns:
        The facts about these annotators.

    Raises:
        DataError: no such file or columns, a missing or duplicate annotator, an unknown source, or a cost that is not a
            number above 0; names file, row, column and value.
    """

    def check(name: str, header: Sequence[str]) -> None:
        check_has(name, header, ("annotator",))
        if not {"source", "cost"} & {*header}:
            raise DataError(f"{name}: has neither a column 'source' nor 'cost'; its columns are {shown_names(header)}.")

    table = read_table(path, ("annotator", "source", "cost"), check, layout, ("annotator",), what="annotators")
    place: dict[str, int] = {}
    repeated = [place.setdefault(name, row) != row for row, name in enumerate(table.names("annotator").tolist())]
    table.refuse("annotator", repeated, "appears here a second time. Keep one row for each annotator.")
    if missing := [str(name) for name in annotators.tolist() if str(name) not in place]:
        which = f"{len(missing):,} of {len(annotators):,} annotators, such as {short_repr(missing[0])}"
        raise DataError(f"{table.name}: has no row for {which}. Add a row for each.")
    rows = [place[str(name)] for name in annotators.tolist()]
    sources = costs = None
    if "source" in table.columns:
        words = [source.strip().lower() for source in table.names("source").tolist()]
        table.refuse("source", [source not in SOURCES for source in words], "is not one of model, person.")
        sources = np.array(words, object)[rows]
    if "cost" in table.columns:
        numbers = table.numbers("cost")
        reason = "is not a number above 0. Write what an answer costs, such as 0.5."
        table.refuse("cost", ~(np.isfinite(numbers) & (numbers > 0)), reason)
        costs = numbers[rows]
    return AnnotatorTable(sources, costs)
