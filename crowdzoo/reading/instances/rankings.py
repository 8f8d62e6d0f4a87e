"""read_rankings: reads rankings of tasks from a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crowdzoo.data.orders import parse_order
from crowdzoo.data.rankings import Rankings, find_problems
from crowdzoo.errors import DataError, Setting
from crowdzoo.reading.instances.table import Table, check_has, read_table
from crowdzoo.reading.tables.layout import Layout
from crowdzoo.reading.tables.plain_array import order_texts

COLUMNS = ("list", "annotator", "task", "rank", "ranking")


def read_rankings(path: str | Path, layout: Layout | None = None) -> Rankings:
    """Read rankings of tasks by annotators.

    Args:
        path: .parquet, .csv or .csv.gz with one row per task of a ranking: `annotator`, `task` and `rank` (a number,
            lowest is best; empty for shown tasks that are worse than those with a rank), and `list` if annotators have
            several rankings. Or one row per ranking: `annotator` and `ranking`, see `parse_order`. Other columns are
            ignored.
        layout: layout of the file.

    Raises:
        DataError: no such file or columns, an empty name, a rank that is not numeric, or a ranking by two annotators,
            of one task, without ranks, with a repeated task or with equal ranks; names file, row, column and value.
    """

    def check(name: str, header: Sequence[str]) -> None:
        if {"left", "right"} <= {*header} and "rank" not in header:
            unused = Setting("rankings")
            raise DataError(f"{name}: holds pairs (left, right), not lists in order (task, rank): leave out {unused}.")
        check_has(name, header, ("annotator", "ranking") if "ranking" in header else ("annotator", "task", "rank"))

    table = read_table(path, COLUMNS, check, layout, ("annotator", "task"))
    if "ranking" in table.columns:
        table.columns["ranking"] = order_texts(table.columns["ranking"])
        return _of_cells(table)
    key = "list" if "list" in table.columns else "annotator"
    names = ("task", "annotator", key)
    columns = {name: table.names(name) for name in names}
    for name, values in columns.items():
        table.refuse(name, values == "", "is empty. Write a name.")
    ranks = table.numbers("rank")
    task_ids, annotator_ids, list_ids = (np.unique(columns[name], return_inverse=True)[1] for name in names)
    for row, column, reason in find_problems(task_ids, annotator_ids, list_ids, ranks):
        table.refuse(key if column == "list" else column, [row], reason)
    return Rankings.from_arrays(columns["task"], columns["annotator"], ranks, columns[key])


def _of_cells(table: Table) -> Rankings:
    """Rankings from a table with one row per ranking."""
    rows = list[tuple[str, str, int, int]]()
    for number, (annotator, text) in enumerate(zip(table.names("annotator"), table.names("ranking"), strict=True)):
        try:
            order = parse_order(text)
        except DataError as error:
            table.refuse("ranking", [number], str(error))
            raise
        if max(map(len, order)) > 1:
            table.refuse("ranking", [number], f"has ties, which only pairs can have. Leave out {Setting('rankings')}.")
        rows += [(task, annotator, rank, number) for rank, (task,) in enumerate(order)]
    table.refuse("annotator", table.names("annotator") == "", "is empty. Write a name.")
    return Rankings.from_arrays(*(np.array(column) for column in zip(*rows, strict=True)))
