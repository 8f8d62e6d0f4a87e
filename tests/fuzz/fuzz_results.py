"""Fuzzing of result folders: what `to_parquet` wrote, with parts replaced or damaged."""

import contextlib
import functools
import json
import tempfile
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_annotations import TYPES, VALUES, changed, columns_of, damaged, encoded, file_of
from hypothesis import strategies as st
from target import Target

from crowdzoo import Annotations
from crowdzoo.aggregation import (
    Aggregation,
    DawidSkene,
    MajorityVote,
    NoisyBradleyTerry,
    PreferenceAggregation,
    RatingAggregation,
    RatingMean,
    SequenceAggregation,
    create,
)
from crowdzoo.errors import CrowdzooError
from crowdzoo.report.page import report_page
from crowdzoo.report.page_changes import changes_since, read_numbers
from crowdzoo.report.training_history import read_history, shown_history

CROWD = Annotations.from_arrays([1, 1, 2, 3], ["a", "b", "a", "b"], ["x", "y", "y", "x"])
RATINGS = Annotations.from_arrays([1, 1, 2], ["a", "b", "a"], [1.0, 2.0, 3.0], kind="regression")
TAGS = Annotations.from_arrays(
    [0, 0, 0, 0], ["a", "a", "b", "b"], ["O", "B-X", "O", "O"], kind="sequence", position=[0, 1, 0, 1],
    classes=["O", "B-X", "I-X"],
)  # fmt: skip
PREFERENCES = Annotations.from_arrays(
    [1, 1, 2], ["a", "b", "a"], ["left", "right", "equal"], right=[2, 3, 3], kind="preference"
)
KINDS = {
    "classes": Aggregation,
    "preferences": PreferenceAggregation,
    "ratings": RatingAggregation,
    "tags": SequenceAggregation,
}


def results():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "classes": DawidSkene().fit(CROWD),
            "preferences": NoisyBradleyTerry().fit(PREFERENCES),
            "ratings": RatingMean().fit(RATINGS),
            "tags": create("bsc-seq", kind="sequence").fit(TAGS),
        }


@functools.cache
def folders():
    """Each kind's files, written once."""
    contents = {}
    for kind, result in results().items():
        with tempfile.TemporaryDirectory() as folder:
            path = result.to_parquet(Path(folder) / "r")
            contents[kind] = {each.name: each.read_bytes() for each in path.iterdir()}
    return contents


@st.composite
def broken(draw):
    """The files of a result, one of them changed."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    files = dict(folders()[kind])
    name = draw(st.sampled_from(sorted(files)))
    if draw(st.booleans()):
        files[name] = draw(damaged(st.just(files[name])))
    elif name == "summary.json":
        files[name] = encoded(json.dumps(draw(changed(json.loads(files[name])))))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(files[name])
            table = pq.read_table(path)
            place = draw(st.integers(0, table.num_columns - 1))
            if draw(st.booleans()):
                table = table.remove_column(place)
            else:
                values = [draw(st.sampled_from([None, 0, 1, 7, -1, 0.5, float("nan"), "a"]))] * table.num_rows
                column = columns_of(draw(TYPES), values)
                table = table.set_column(place, table.column_names[place], column)
            try:
                pq.write_table(table, path)
                files[name] = path.read_bytes()
            except (pa.ArrowException, OSError):  # no such type in Parquet
                pass
    return files


def reads(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        for reader in KINDS.values():
            with contextlib.suppress(CrowdzooError):
                found = reader.from_parquet(folder)
                assert len(found.tasks) + 1 == len(getattr(found, "starts", [*found.tasks, 0]))


# === Earlier reports ===


@functools.cache
def page(hidden=0):
    """A report, without one annotator."""
    crowd = CROWD.select_rows(CROWD.annotator_ids >= hidden)
    return report_page(crowd, MajorityVote().fit(crowd), bootstrap=0)


@st.composite
def earlier_reports(draw):
    """The numbers of a report, a part of them replaced, or the file damaged."""
    if draw(st.booleans()):
        return draw(damaged(st.just(page(1).to_json().encode())))
    return encoded(json.dumps(draw(changed(json.loads(page(1).to_json())))))


def compares(content):
    with file_of(content, "earlier.json") as path:
        json.dumps(changes_since(read_numbers(path), page().numbers, page().values, hashed=False))


@st.composite
def histories(draw):
    """A history of a training with strange names and values, or a damaged one."""
    if draw(st.booleans()):
        return draw(damaged(st.just(b'{"loss": [0.5, NaN, 0.25], "val_loss": [1, 2, null]}')))
    values = st.lists(VALUES | st.floats(), max_size=4)
    return encoded(json.dumps(draw(st.dictionaries(st.text(max_size=5), values, max_size=3))))


def draws(content):
    with file_of(content, "history.json") as path:
        found = read_history(path)
        json.dumps(shown_history(found), allow_nan=False)
        report_page(CROWD, MajorityVote().fit(CROWD), bootstrap=0, curve=0, history=found).to_html()


TARGETS = {
    "histories": Target(histories(), draws, 60),
    "earlier-reports": Target(earlier_reports(), compares, 60),
    "results": Target(broken(), reads, 60),
}
