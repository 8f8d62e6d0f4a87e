"""Hypothesis strategies: annotations of every kind, small enough to read when a test fails."""

from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import label_kind
from crowdzoo.data.regions import MarkedImage, Region
from crowdzoo.reading.tables.cells import SEPARATORS, made_of_others
from crowdzoo.reading.tables.suspicious import suspicious_classes

# letters beyond ASCII, and what files find hard: quotes, separators, line breaks
_LETTERS = "abzé漢😀 \"',;\t\n0"


def names(count: int) -> st.SearchStrategy[list[Any]]:
    """Distinct names: all integers, or all strings; never blank, never with white space at the ends.

    Args:
        count: how many.

    Returns:
        A strategy for lists of `count` names in any order.
    """
    integers = st.lists(st.integers(-(10**6), 10**6), min_size=count, max_size=count, unique=True)
    # readers of files refuse these, or warn of them
    strings = _texts(count).filter(
        lambda words: not (made_of_others(words) or suspicious_classes(words, np.zeros(count)))
    )
    return st.one_of(integers, strings)


def _texts(count: int) -> st.SearchStrategy[list[str]]:
    words = st.text(_LETTERS, min_size=1, max_size=6).map(str.strip).filter(bool)
    return st.lists(words, min_size=count, max_size=count, unique=True)


@st.composite
def annotations(
    draw: st.DrawFn,
    kind: str = "classification",
    *,
    max_tasks: int = 6,
    max_annotators: int = 5,
    max_classes: int = 4,
    named: bool = False,
    optional: bool = False,
) -> Annotations:
    """Annotations with at least one row, rows in any order.

    Tasks, annotators and classes without a row occur too; values are those of the rows, sorted by their text.

    Args:
        draw: Hypothesis passes it.
        kind: a key of `LABEL_KINDS`.
        max_tasks: the most tasks, N.
        max_annotators: the most annotators, R.
        max_classes: the most classes, K.
        named: draw names as in `names`; else they are 0, 1, 2, ...
        optional: draw confidence and timestamp columns at times.

    Returns:
        A strategy for `Annotations`.
    """
    shape = label_kind(kind)
    num_tasks = draw(st.integers(1 + shape.has_pairs, max_tasks))
    num_annotators = draw(st.integers(1, max_annotators))
    num_classes = draw(st.integers(1, max_classes))
    cells: Any = st.tuples(st.integers(0, num_tasks - 1), st.integers(0, num_annotators - 1))
    if shape.has_pairs:
        num_classes = len(shape.answers)
        steps = st.integers(1, num_tasks - 1)
        cells = st.tuples(cells, steps).map(lambda cell: (*cell[0], (cell[0][0] + cell[1]) % num_tasks))
    pairs = draw(st.lists(cells, min_size=1, max_size=num_tasks * num_annotators, unique=True))
    position = right = None
    if shape.has_positions:
        tokens = draw(st.lists(st.integers(1, 3), min_size=num_tasks, max_size=num_tasks))
        rows = draw(st.permutations([(*pair, place) for pair in pairs for place in range(tokens[pair[0]])]))
        task, annotator, position = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    elif shape.has_pairs:
        task, annotator, right = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    else:
        task, annotator = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    size = len(task)
    if shape.has_numbers:
        finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
        labels = np.array(draw(st.lists(finite, min_size=size, max_size=size)), dtype=np.float64)
    else:
        labels = np.array(draw(st.lists(st.integers(0, num_classes - 1), min_size=size, max_size=size)), dtype=np.int64)
    share = st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), min_size=size, max_size=size)
    extra = {
        name: np.array(draw(share)) if optional and draw(st.booleans()) else None
        for name in ("confidence", "timestamp")
    }
    counts = {"tasks": num_tasks, "annotators": num_annotators, "classes": num_classes}
    vocabulary = {what: _array(draw(names(count)) if named else list(range(count))) for what, count in counts.items()}
    # a reader takes such cells for several annotators with a label of each
    names_of = {what: "".join(map(str, vocabulary[what].tolist())) for what in ("annotators", "classes")}
    assume(not any(all(mark in text for text in names_of.values()) for mark in SEPARATORS))
    if shape.has_pairs:
        vocabulary["classes"] = np.array(shape.answers, object)
    values: list[Any] | None = None
    if shape.values:
        used, labels = np.unique(labels, return_inverse=True)
        values = draw(_texts(len(used)))
        if shape.has_regions:
            values = [MarkedImage(3, 3, (Region(text, (0.0, 0.0, 1.0, 1.0)),)) for text in values]
        values = sorted(values, key=str)
    return Annotations(
        kind,
        task,
        annotator,
        labels,
        vocabulary["tasks"],
        vocabulary["annotators"],
        vocabulary["classes"] if shape.has_classes else None,
        positions=position,
        confidence=extra["confidence"],
        timestamp=extra["timestamp"],
        right_ids=right,
        values=values,
    )


def _array(drawn: list[Any]) -> np.ndarray:
    return np.array(drawn, dtype=np.int64 if isinstance(drawn[0], int) else object)
