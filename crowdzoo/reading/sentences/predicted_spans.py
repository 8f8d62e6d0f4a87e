"""read_predicted_spans: reads a tagger's spans from a table as written by `crowdzoo predict`."""

from pathlib import Path

import numpy as np

from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.drawn_spans import outermost, side_by_side
from crowdzoo.data.tags import type_problem
from crowdzoo.reading.instances.gold import check_shared
from crowdzoo.reading.instances.table import read_table, task_names
from crowdzoo.reading.tables.layout import Layout

_NEEDED = ("task", "start", "end", "type")


def read_predicted_spans(
    path: str | Path, crowd: CrowdSequences, layout: Layout | None = None
) -> dict[str, list[tuple[str, int, int]]]:
    """Read a tagger's spans.

    Args:
        path: .parquet, .csv or .csv.gz with the columns `task`, `start`, `end` and `type`, one row per span.
        crowd: sentences. Their `edges` define the unit of start and end: characters of the text, or tokens. A span gets
            all tokens that it touches; of overlapping spans, the longest is kept.
        layout: encoding of the file.

    Returns:
        Name of a sentence -> type, first token and end (exclusive) of each span. Sentences that are not in `crowd` are
        left out.

    Raises:
        DataError: no such file or columns, none of the sentences, a start or end that is not a number, a type that is
            invalid in tags, or a span outside its sentence; names file, row, column and value.
    """
    table = read_table(path, _NEEDED, layout=layout, what="predictions")
    tasks = list(map(str, task_names(table, repeats=True).tolist()))
    check_shared(path, {*tasks}, crowd.annotations.tasks)
    types = table.names("type")
    table.refuse("type", [bool(type_problem(name)) for name in types.tolist()], type_problem)
    ends = np.array([table.numbers("start"), table.numbers("end")])
    codes = {str(name): code for code, name in enumerate(crowd.annotations.tasks.tolist())}
    spans, outside = dict[str, list[tuple[str, int, int]]](), list[int]()
    for row, (task, (start, end)) in enumerate(zip(tasks, ends.T.tolist(), strict=True)):
        if task in codes:
            edges = np.array(crowd.edges(codes[task]))
            touched = np.flatnonzero((edges[:, 0] < end) & (edges[:, 1] > start))
            if len(touched):
                spans.setdefault(task, []).append((str(types[row]), int(touched[0]), int(touched[-1]) + 1))
            else:
                outside.append(row)
    table.refuse("start", outside, "begins a span without a token of the sentence.")
    return {
        task: [(span.label, span.start, span.end) for span in outermost(side_by_side(of_task))]
        for task, of_task in spans.items()
    }
