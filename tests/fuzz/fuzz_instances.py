"""Fuzzing of the readers of instances and gold."""

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from fuzz_annotations import TEXTS, damaged, encoded, inside, parquet
from hypothesis import strategies as st
from target import Target

from crowdzoo import Annotations, instances
from crowdzoo.errors import CrowdzooError
from crowdzoo.instances import (
    read_annotator_table,
    read_gold,
    read_gold_pairs,
    read_gold_ratings,
    read_instances,
    read_predictions,
    read_rankings,
    read_texts,
    recognised,
)
from crowdzoo.reading.instances.covariates import read_covariates
from crowdzoo.reading.instances.table import check_has, read_table
from crowdzoo.reading.instances.tables import table_columns, typed_columns
from crowdzoo.reading.tables import csv as csv_files
from crowdzoo.reading.tables.layout import Layout

COLUMNS = (
    "task",
    "features",
    "gold",
    "split",
    "text",
    "f0",
    "f1",
    "left",
    "right",
    "annotator",
    "source",
    "cost",
    "class",
    "probability",
)
NUMBERS = st.sampled_from(
    ["0", "1", "-1.5", "1e3", "1e39", "1e999", "nan", "inf", "true", "FALSE", "", " 2 ", "1_0", "٣"]
)
SOURCES = st.sampled_from(["model", "person", "MODEL", " person", "human", ""])
SPLITS = st.sampled_from(["train", "eval", " eval", "test", ""])


@st.composite
def tables(draw):
    """CSV of instances: mostly sound."""
    names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=7))
    names = ["task", *names] if draw(st.booleans()) else names
    names = ["left", "right", "gold", *names] if draw(st.booleans()) else names
    names = ["annotator", "cost", *names] if draw(st.booleans()) else names
    names = ["class", "probability", *names] if draw(st.booleans()) else names
    names = ["left_f0", "right_f0", *names] if draw(st.booleans()) else names
    cells = dict.fromkeys(("task", "gold", "text", "left", "right", "annotator", "class"), TEXTS)
    cells |= {"split": SPLITS, "source": SOURCES}
    rows = [
        [draw(cells.get(name, NUMBERS)) if draw(st.integers(0, 9)) else draw(TEXTS) for name in names]
        for _ in range(draw(st.integers(0, 5)))
    ]

    def cell(text):
        return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in '",\n\r') else text

    return encoded("".join(",".join(map(cell, row)) + "\n" for row in [names, *rows]))


def columns_of(path, read=table_columns, types=None):
    """The columns of a table: numbers finite or missing, all else text."""
    found = read(read_table(path, None, lambda *names: check_has(*names, ("task",)), as_text=True), types)
    for values in found.values():
        assert all(isinstance(value, str) for value in values) if values.dtype == object else not np.isinf(values).any()
    return {name: values.tolist() for name, values in found.items()}


def annotator_table(path):
    """What is known of an annotator: a finite cost above 0."""
    found = read_annotator_table(path, np.array(["a"], object))
    assert found.costs is None or (np.isfinite(found.costs) & (found.costs > 0)).all()
    return found.sources, found.costs


def rankings_of(path):
    """Lists in order: each list has a place with a rank, and its places follow each other."""
    found = read_rankings(path)
    assert (np.diff(found.list_ids) >= 0).all()
    assert (np.bincount(found.list_ids, found.ranked) >= 1).all()
    return found.list_ids.tolist(), found.task_ids.tolist(), found.ranked.tolist(), found.annotator_ids.tolist()


def predictions_of(path):
    """What a model says of two tasks: a class and its probability, or neither."""
    found = read_predictions(path, np.array(["a", "1"], object), ["a", "b"])
    said = found.labels >= 0
    assert ((found.probabilities[said] >= 0) & (found.probabilities[said] <= 1)).all()
    assert np.isnan(found.probabilities[~said]).all()
    return found.labels.tolist(), found.probabilities.tolist(), found.others


def covariates_of(path):
    """Numbers of both sides of two comparisons."""
    judgments = Annotations.from_arrays(["a", "b"], ["j", "k"], ["left", "right"], right=["b", "c"], kind="preference")
    sides = read_covariates(path, ["f0"], judgments, Layout.of({}))["f0"]
    assert sides.shape == (2, 2)
    assert np.isfinite(sides).all()
    return sides.tolist()


def everything(name, content):
    """What each reader makes of a file: the values, or the message."""
    readers = (
        read_instances,
        lambda path: read_instances(path, instances.TEXTS),
        lambda path: read_instances(path, instances.VECTORS),
        lambda path: recognised(path).name,
        read_texts,
        columns_of,
        lambda path: columns_of(path, types={"f0": "category", "text": "category"}),
        lambda path: columns_of(path, typed_columns, {"f0": "number", "text": "text", "f1": "category"}),
        annotator_table,
        rankings_of,
        covariates_of,
        lambda path: read_gold(path, np.array(["a", "1"], object), np.array(["a", "b"], object)).tolist(),
        predictions_of,
        lambda path: read_gold_ratings(path, np.array(["a", "1"], object)).tolist(),
        lambda path: read_gold_pairs(path, np.array(["a", "1"], object), np.array(["a", "b", "1"], object)).to_frame(),
    )
    found = []
    with tempfile.TemporaryDirectory() as folder, inside(folder):
        Path(name).write_bytes(content)
        for reader in readers:
            try:
                value = reader(name)
            except CrowdzooError as error:
                found.append(str(error))
            else:
                if isinstance(value, instances.Instances):
                    if value.kind is instances.VECTORS:
                        assert np.isfinite(value.values).all()
                        assert value.values.shape[1] > 0
                    columns = value.values if isinstance(value.values, dict) else {"instances": value.values}
                    for column in columns.values():
                        assert len(value.tasks) == len(set(value.tasks.tolist())) == len(column)
                    value = [value.tasks, *columns.values(), value.names, value.gold, value.split, value.rows]
                    value = [each.tolist() if isinstance(each, np.ndarray) else each for each in value]
                found.append(repr(value))
    return found


def both_parsers_agree(content):
    """Arrow's and Python's parsers give the same instances, or the same message."""
    fast = everything("i.csv", content)
    with mock.patch.object(csv_files.CsvSource, "_fast", return_value=None):
        slow = everything("i.csv", content)
    assert fast == slow, (fast, slow)


TARGETS = {
    "instances-csv": Target(damaged(tables()), both_parsers_agree, 30),
    "instances-parquet": Target(parquet(COLUMNS), lambda content: everything("i.parquet", content), 40),
}
