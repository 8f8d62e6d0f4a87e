"""Annotations from arrays, frames and matrices, and what can be asked of them."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import about, bad_row
from strategies import annotations, names

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import LABEL_KINDS
from crowdzoo.errors import DataError

ONE_TASK = [name for name, kind in LABEL_KINDS.items() if not kind.has_pairs]  # a row; see also test_preferences.py
ANY_KIND = st.sampled_from(ONE_TASK).flatmap(lambda kind: annotations(kind))

few = settings(max_examples=30)


@pytest.fixture
def answers():
    """Four annotations: a by x and y, b by x, c by z."""
    return Annotations.from_arrays(["a", "b", "a", "c"], ["x", "x", "y", "z"], ["cat", "dog", "dog", "cat"])


def rows_of(ann):
    """Every row by name, as a sorted list: what must not depend on codes or order."""
    columns = [ann.tasks[ann.task_ids], ann.annotators[ann.annotator_ids]]
    columns.append(ann.labels if ann.label_names is None else ann.label_names[ann.labels])
    if ann.positions is not None:
        columns.append(ann.positions)
    return sorted(zip(*(column.tolist() for column in columns), strict=True), key=repr)


# === From arrays ===


def test_names_are_sorted_and_rows_keep_their_order(answers):
    assert answers.tasks.tolist() == ["a", "b", "c"]
    assert answers.annotators.tolist() == ["x", "y", "z"]
    assert answers.classes.tolist() == ["cat", "dog"]
    assert answers.task_ids.tolist() == [0, 1, 0, 2]
    assert answers.annotator_ids.tolist() == [0, 0, 1, 2]
    assert answers.labels.tolist() == [0, 1, 1, 0]
    assert (len(answers), answers.num_tasks, answers.num_annotators, answers.num_classes) == (4, 3, 3, 2)
    assert answers.redundancy.tolist() == [2, 1, 1]
    assert {array.dtype for array in (answers.task_ids, answers.annotator_ids, answers.labels)} == {np.dtype(np.int64)}


def test_strings_that_are_integers_are_sorted_by_value_and_stay_strings():
    assert Annotations.from_arrays(["10", "9"], [0, 0], [0, 0]).tasks.tolist() == ["9", "10"]


@pytest.mark.parametrize("far", [2**40, 2**62, -(2**62)])
def test_integers_far_apart_are_told_apart(far):
    ann = Annotations.from_arrays([far, 1, far, 0], [0, 0, 1, 0], [0, 0, 0, 0])
    assert ann.tasks[ann.task_ids].tolist() == [far, 1, far, 0]
    assert ann.tasks.tolist() == sorted({far, 1, 0})


def test_numpy_integers_stay_integers_next_to_nan_and_in_either_byte_order():
    cells = np.fromiter([np.int32(10), 9, np.float32("nan")], object)
    with pytest.warns(UserWarning, match="1 row was left out"):
        with_nan = Annotations.from_arrays(cells, ["ann"] * 3, ["x", "y", "x"], on_bad_rows="reject")
    big_endian = Annotations.from_arrays(np.array([10, 9], ">i4"), ["ann"] * 2, ["x", "y"])
    for read in (with_nan, big_endian):
        assert read.tasks.dtype == np.int64
        assert read.tasks.tolist() == [9, 10]


def test_dates_next_to_nan_are_names_and_a_bad_row():
    cells = np.fromiter([date(2026, 3, 1), np.float32("nan")], object)
    with pytest.raises(DataError, match="is empty"):
        Annotations.from_arrays(cells, ["ann"] * 2, ["x", "y"])


def test_any_hashable_ids_are_names():
    ann = Annotations.from_arrays([(1, 2), (0, 1), (1, 2)], [True, False, False], [0.5, 1.5, 0.5])
    assert ann.tasks.tolist() == [(0, 1), (1, 2)]
    assert ann.annotators.tolist() == [False, True]
    assert ann.classes[ann.labels].tolist() == [0.5, 1.5, 0.5]


def test_a_given_vocabulary_keeps_its_order_and_its_unused_names():
    ann = Annotations.from_arrays(["b"], ["y"], [1], tasks=["c", "b", "a"], annotators=["z", "y"], classes=[2, 1, 0])
    assert (ann.task_ids[0], ann.annotator_ids[0], ann.labels[0]) == (1, 1, 1)
    assert (ann.num_tasks, ann.num_annotators, ann.num_classes) == (3, 2, 3)
    assert ann.redundancy.tolist() == [0, 1, 0]


def test_no_rows_are_legal_where_the_vocabularies_are_given():
    ann = Annotations.from_arrays([], [], [], tasks=["a", "b"], annotators=["x"], classes=[0, 1])
    assert (len(ann), ann.num_tasks) == (0, 2)
    assert ann.to_dense().tolist() == [[-1], [-1]]
    assert [array.shape for array in ann.padded()] == [(2, 0), (2, 0)]
    assert list(ann.blocks()) == []
    with pytest.raises(DataError, match="arrays has no rows"):
        Annotations.from_arrays([], [], [])


def test_arrays_are_read_only_and_the_callers_own_are_left_alone():
    labels = np.array([1.0, 2.0])
    ann = Annotations.from_arrays([0, 1], [0, 0], labels, kind="regression")
    with pytest.raises(ValueError, match="read-only"):
        ann.labels[0] = 5
    labels[0] = 7
    assert ann.labels.tolist() == [1.0, 2.0]


@few
@given(ANY_KIND, st.data())
def test_row_order_changes_nothing_but_the_row_order(ann, data):
    order = np.array(data.draw(st.permutations(range(len(ann)))))
    position = None if ann.positions is None else ann.positions[order]
    label = ann.labels if ann.label_names is None else ann.label_names[ann.labels]
    columns = ann.tasks[ann.task_ids], ann.annotators[ann.annotator_ids], label
    shuffled = Annotations.from_arrays(*(column[order] for column in columns), kind=ann.kind, position=position)
    straight = Annotations.from_arrays(*columns, kind=ann.kind, position=ann.positions)
    np.testing.assert_array_equal(shuffled.task_ids, straight.task_ids[order])
    np.testing.assert_array_equal(shuffled.labels, straight.labels[order])
    np.testing.assert_array_equal(shuffled.to_dense(), straight.to_dense())


@few
@given(st.data())
def test_renaming_permutes_the_codes_and_no_more(data):
    ann = data.draw(annotations())
    new = np.array(data.draw(names(ann.num_tasks)), dtype=object)
    renamed = Annotations.from_arrays(new[ann.task_ids].tolist(), ann.annotator_ids, ann.labels)
    assert renamed.tasks[renamed.task_ids].tolist() == new[ann.task_ids].tolist()
    assert renamed.tasks.tolist() == sorted(set(new[ann.task_ids]))


# === Bad rows in arrays ===


def test_ten_bad_rows_are_shown_and_the_rest_counted():
    with pytest.raises(DataError) as error:
        Annotations.from_arrays(range(1001), [*[""] * 1000, "ann"], [0] * 1001)
    first, *rows, last = str(error.value).splitlines()
    assert first.startswith("arrays: 1,000 bad rows. Fix the file, or skip bad rows")
    assert rows[0].startswith("  arrays, row 0, column 'annotator': '' is empty.")
    assert (len(rows), last) == (10, "  ... and 990 more")


@pytest.mark.parametrize("empty", [None, float("nan"), "", "  ", pd.NA])
def test_an_empty_id_is_bad(empty):
    with pytest.raises(DataError, match=r"row 1, column 'task': .* is empty"):
        Annotations.from_arrays(["a", empty], ["x", "y"], ["cat", "cat"])


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_is_bad(number):
    with pytest.raises(DataError, match=r"row 1, column 'label': .*(finite|empty)"):
        Annotations.from_arrays([0, 1], [0, 0], [1.0, number], kind="regression")


REPEATED = (["a", "b", "a", "a"], ["x", "x", "x", "y"], ["cat", "cat", "dog", "cat"])


def test_a_repeated_pair_is_bad_and_both_rows_are_named():
    with pytest.raises(DataError, check=bad_row(2, "annotator", "x")):
        Annotations.from_arrays(*REPEATED)


def test_a_repeated_position_is_bad_but_a_repeated_pair_is_not():
    ok = Annotations.from_arrays([0, 0], [0, 0], ["B", "I"], kind="sequence", position=[0, 1])
    assert ok.redundancy.tolist() == [1]
    with pytest.raises(DataError, check=bad_row(2, "annotator", 0)):
        Annotations.from_arrays([0, 0, 0], [0, 0, 0], ["B", "I", "I"], kind="sequence", position=[0, 1, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": [1, 2]}, "same length. Received: {'task': 2, 'annotator': 1, 'label': 1}"),
        ({"task": np.zeros((1, 1))}, r"'task' must have one axis. Received shape: \(1, 1\)"),
        ({"task": [[1]]}, "'task' holds ids that cannot be hashed"),
        ({"kind": "sequence"}, "a sequence needs 'position'"),
    ],
)
def test_columns_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(DataError, match=message.replace("{", r"\{").replace("}", r"\}")):
        Annotations.from_arrays(**{"task": [1], "annotator": [1], "label": [1], **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "ranking"}, "unknown kind 'ranking': choose one of classification, sequence, regression"),
        ({"on_duplicate": "mean"}, "unknown on_duplicate 'mean': choose one of error, first, last"),
        ({"classes": ["a", "a"]}, "classes holds 'a' twice"),
        ({"classes": ["1", 1]}, "classes holds 1 twice; names are matched by their text"),
        ({"classes": "ab"}, "classes must be a list of names, got 'ab'"),
        ({"tasks": [" "]}, "tasks holds an empty name"),
        ({"kind": "regression", "classes": [1]}, "classes do not belong to kind 'regression'"),
    ],
)
def test_wrong_arguments_are_told_with_what_came(arguments, message):
    with pytest.raises(ValueError, match=message):
        Annotations.from_arrays(**{"task": [1], "annotator": [1], "label": [1], **arguments})


# === Dense ===


@few
@given(ANY_KIND.filter(lambda ann: ann.values is None))
def test_to_dense_and_back_loses_nothing(ann):
    again = Annotations.from_dense(
        ann.to_dense(), kind=ann.kind, tasks=ann.tasks, annotators=ann.annotators, classes=ann.classes
    )
    assert rows_of(again) == rows_of(ann)
    assert (again.num_tasks, again.num_annotators, again.num_classes) == (
        ann.num_tasks,
        ann.num_annotators,
        ann.num_classes,
    )


@pytest.mark.parametrize("bad", [2, -2, 0.5, np.nan, np.inf])
def test_a_cell_that_is_no_class_code_is_named(bad):
    with pytest.raises(DataError, match=rf"matrix, row 1, column '0': {bad} is not a class code, 0 to 1"):
        Annotations.from_dense([[0, -1], [bad, 1]], classes=["no", "yes"])


def test_a_matrix_of_the_wrong_shape_or_type_is_refused():
    with pytest.raises(DataError, match=r"must have 2 axes and contain class codes, got shape \(3,\) of int64"):
        Annotations.from_dense([0, 1, 2])
    with pytest.raises(DataError, match=r"got shape .* of <U1\. For names .* Annotations\.from_arrays\("):
        Annotations.from_dense([["a", "b"]])


# === Padded and blocks ===


@few
@given(ANY_KIND)
def test_padded_agrees_with_the_dense_matrix(ann):
    dense = ann.to_dense()
    annotators, labels = ann.padded()
    again = np.full_like(dense, np.nan if ann.kind == "regression" else -1)
    for task, column in np.argwhere(annotators >= 0):
        again[task, ..., annotators[task, column]] = labels[task, ..., column]
    np.testing.assert_array_equal(again, dense)
    assert (annotators >= 0).sum(axis=1).tolist() == ann.redundancy.tolist()
    padding = labels[np.broadcast_to((annotators < 0)[:, None] if labels.ndim == 3 else annotators < 0, labels.shape)]
    assert np.isnan(padding).all() if ann.kind == "regression" else (padding == -1).all()


@few
@given(ANY_KIND, st.integers(1, 10))
def test_blocks_hold_every_row_once_and_never_cut_a_task(ann, size):
    blocks = list(ann.blocks(size))
    columns = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    assert sorted(zip(*columns, strict=True)) == sorted(
        zip(
            *(column for column in (ann.task_ids, ann.annotator_ids, ann.labels, ann.positions) if column is not None),
            strict=True,
        )
    )
    assert (np.diff(columns[0]) >= 0).all()
    tasks = [set(block[0].tolist()) for block in blocks]
    assert sum(map(len, tasks)) == len(set().union(*tasks))
    assert all(len(block[0]) <= size or len(held) == 1 for block, held in zip(blocks, tasks, strict=True))


def test_blocks_are_as_large_as_they_may_be():
    ann = Annotations.from_arrays([0, 0, 1, 2, 2, 2, 3], [0, 1, 0, 0, 1, 2, 0], [0] * 7)
    assert [block[0].tolist() for block in ann.blocks(3)] == [[0, 0, 1], [2, 2, 2], [3]]
    assert [len(block[0]) for block in ann.blocks(2)] == [2, 1, 3, 1]
    with pytest.raises(ValueError, check=about("max_annotations", 0)):
        next(ann.blocks(0))


# === Selection ===


def test_selected_tasks_are_renumbered_and_the_rest_of_the_vocabulary_stays(answers):
    picked = answers.select_tasks([2, 0])
    assert picked.tasks.tolist() == ["c", "a"]
    assert picked.task_ids.tolist() == [1, 1, 0]
    assert picked.annotators.tolist() == ["x", "y", "z"]
    assert picked.classes.tolist() == ["cat", "dog"]
    assert answers.select_tasks(["c", "a"]) == picked
    assert answers.select_tasks(np.array([True, False, True])).tasks.tolist() == ["a", "c"]
    assert len(answers.select_tasks([])) == 0


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([3], "task code 3 is not one of 0 to 2"),
        ([-1], "task code -1 is not"),
        (["a", "d"], "1 of 2 tasks are missing, e.g. 'd'"),
        ([0, 0], "task 'a' is selected more than once"),
        ([True, False], r"mask of tasks has shape \[3\]"),
    ],
)
def test_tasks_that_cannot_be_selected_are_named(answers, tasks, message):
    with pytest.raises(DataError, match=message):
        answers.select_tasks(tasks)


@few
@given(ANY_KIND, st.integers(0, 3), st.integers(0, 5))
def test_restricting_keeps_as_many_as_there_are_up_to_the_limit(ann, redundancy, seed):
    fewer = ann.restrict(redundancy=redundancy, seed=seed)
    assert fewer.redundancy.tolist() == np.minimum(ann.redundancy, redundancy).tolist()
    assert set(rows_of(fewer)) <= set(rows_of(ann))
    assert fewer.num_tasks == ann.num_tasks
    assert fewer == ann.restrict(redundancy=redundancy, seed=seed)


@few
@given(ANY_KIND, st.integers(0, 5))
def test_selected_rows_stand_in_the_order_given(ann, seed):
    order = np.random.default_rng(seed).permutation(len(ann))
    shuffled, first = ann.select_rows(order), ann.select_rows(order < 3)
    assert rows_of(shuffled) == rows_of(ann)
    assert shuffled.task_ids.tolist() == ann.task_ids[order].tolist()
    assert len(first) == min(3, len(ann))
    assert set(rows_of(first)) <= set(rows_of(ann))
    assert first.num_tasks == ann.num_tasks


# === Frames ===


@few
@given(st.sampled_from(list(LABEL_KINDS)).flatmap(lambda kind: annotations(kind, named=True, optional=True)))
def test_to_frame_and_back_loses_nothing(ann):
    vocabulary = {"tasks": ann.tasks, "annotators": ann.annotators, "classes": ann.classes}
    assert Annotations.from_frame(ann.to_frame(), kind=ann.kind, **vocabulary) == ann


@pytest.mark.parametrize("wrap", [dict, pa.table, pd.DataFrame])
def test_frames_of_every_library_read_alike(wrap):
    columns = {
        "task": ["a", "b"],
        "worker": [1, 2],
        "label": ["no", "yes"],
        "confidence": [0.5, None],
        "other": [[], []],
    }
    ann = Annotations.from_frame(wrap(columns))
    assert rows_of(ann) == [("a", 1, "no"), ("b", 2, "yes")]
    np.testing.assert_array_equal(ann.confidence, [0.5, np.nan])


# === As a value ===


def test_equal_means_equal_in_everything(answers):
    assert answers == answers.select_tasks([0, 1, 2])
    assert answers != answers.select_tasks([1, 0, 2])
    assert answers != Annotations.from_dense(answers.to_dense())
    assert answers != 3


@pytest.mark.parametrize(
    "arguments",
    [
        {"positions": [0]},
        {"classes": None},
        {"labels": [0, 1]},
        {"tasks": [["a"]]},
    ],
)
def test_the_parts_have_to_fit(arguments):
    parts = {"kind": "classification", "task_ids": [0], "annotator_ids": [0], "labels": [0]}
    vocabulary = {"tasks": ["a"], "annotators": ["x"], "classes": [0]}
    with pytest.raises(ValueError, match=r"must have|belong"):
        Annotations(**{**parts, **vocabulary, **arguments})


def test_a_notebook_shows_sizes_and_the_first_rows():
    crowd = Annotations.from_arrays(np.arange(25), ["<b>"] * 25, ["x" * 200, *["y"] * 24])
    page = crowd._repr_html_()
    assert "25 annotations, 25 tasks" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "<th>task</th><th>annotator</th><th>label</th>" in page
    assert page.count("<tr>") == 11
    assert "… and 15 more rows" in page
    assert "x" * 100 not in page


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_seconds_that_are_durations_are_seconds(library):
    """They were read as nanoseconds."""
    module = pytest.importorskip(library)
    seconds = [timedelta(seconds=1.5), None, timedelta(minutes=2)]
    frame = module.DataFrame({"task": [1, 1, 2], "annotator": [*"aba"], "label": [*"xyx"], "seconds": seconds})
    np.testing.assert_array_equal(Annotations.from_frame(frame).seconds, [1.5, np.nan, 120])


@pytest.mark.usefixtures("chunks")
def test_a_frame_of_several_pieces_is_read_in_its_order():
    labels = np.where(np.arange(50) % 3, "cat", "dog")
    frame = {"task": np.arange(50), "annotator": ["ann;bob"] * 50, "label": [f"{label};cat" for label in labels]}
    ann = Annotations.from_frame(frame, annotator_separator=";")
    expected = [(task, who, label) for task in range(50) for who, label in (("ann", labels[task]), ("bob", "cat"))]
    rows = zip(ann.tasks[ann.task_ids], ann.annotators[ann.annotator_ids], ann.classes[ann.labels], strict=True)
    assert [(int(task), who, label) for task, who, label in rows] == expected
    frame["annotator"][45] = "ann;ann"
    with pytest.raises(DataError, check=bad_row(45, "annotator", "ann")):
        Annotations.from_frame(frame, annotator_separator=";")
