import dataclasses
import json
import re

import numpy as np
import pyarrow.parquet
import pytest

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.aggregation import (
    METHODS,
    Aggregation,
    DawidSkene,
    MajorityVote,
    PreferenceAggregation,
    RatingAggregation,
    SequenceAggregation,
    create,
)
from crowdzoo.sequences import CrowdSequences


def crowd():
    return Annotations.from_arrays(
        ["b", "b", "a", "a"], ["ann", "bo", "ann", "bo"], ["dog", "dog", "cat", "dog"], tasks=["b", "a", "c"]
    )


def test_posteriors_of_other_tasks_are_bayes_rule():
    annotations = Annotations.from_arrays([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1], tasks=range(4))
    result = DawidSkene(prior=0.5, max_iter=3, tol=10.0).fit(annotations)
    others = Annotations.from_arrays([0, 1, 1], [1, 0, 1], [1, 0, 1], tasks=range(3))
    expected = np.stack(
        [
            result.class_prior * result.confusions[1, :, 1],
            result.class_prior * result.confusions[0, :, 0] * result.confusions[1, :, 1],
            result.class_prior,
        ]
    )
    np.testing.assert_allclose(result.posteriors_of(others), expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(result.posteriors_of(annotations), result.posteriors, rtol=1e-9)
    assert result.posteriors_of(others.select_tasks([])).shape == (0, 2)


@pytest.mark.parametrize(
    "method", [DawidSkene(confidence=True, prior=0.5, max_iter=3, tol=10.0), MajorityVote(confidence=True)]
)
def test_posteriors_of_other_tasks_count_annotations_by_their_confidence_if_the_fit_did(method, tmp_path):
    columns = [0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1]
    annotations = Annotations.from_arrays(*columns, confidence=[0.9, 0.6, 0.7, 0.8, np.nan])
    fitted = method.fit(annotations)
    result = Aggregation.from_parquet(fitted.to_parquet(tmp_path / "result"))
    others = Annotations.from_arrays([0, 1, 1], [1, 0, 1], [1, 0, 1], confidence=[0.6, np.nan, 0.9], tasks=range(3))
    sure = Annotations.from_arrays([0, 1, 1], [1, 0, 1], [1, 0, 1], tasks=range(3))
    first, second = result.confusions
    expected = np.stack(
        [
            result.class_prior * (0.4 * second[:, 0] + 0.6 * second[:, 1]),
            result.class_prior * first[:, 0] * (0.1 * second[:, 0] + 0.9 * second[:, 1]),
            result.class_prior,
        ]
    )
    np.testing.assert_allclose(result.posteriors_of(others), expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(fitted.posteriors_of(others), result.posteriors_of(others), rtol=1e-9, atol=1e-12)
    whole = dataclasses.replace(
        result, confidence=False
    )  # annotations without a confidence count as if nobody had asked for it
    np.testing.assert_allclose(result.posteriors_of(sure), whole.posteriors_of(sure), rtol=1e-9, atol=1e-12)
    assert result.posteriors_of(others.select_tasks([])).shape == (0, 2)


def test_posteriors_of_other_tasks_need_the_same_annotators_and_a_model():
    annotations = Annotations.from_arrays([0, 0], [0, 1], [0, 1])
    with pytest.raises(DataError, match="wawa has no confusion matrices"):
        create("wawa").fit(annotations).posteriors_of(annotations)
    more = Annotations.from_arrays([0, 0], [0, 1], [0, 1], annotators=range(3))
    with pytest.raises(DataError, match="other annotators"):
        DawidSkene().fit(annotations).posteriors_of(more)
    ratings = Annotations.from_arrays([0, 0], [0, 1], [0.5, 1.0], kind="regression")
    with pytest.raises(DataError, match="classification"):
        DawidSkene().fit(annotations).posteriors_of(ratings)


def test_files_hold_names(tmp_path):
    folder = DawidSkene().fit(crowd()).to_parquet(tmp_path / "result")
    tasks = pyarrow.parquet.read_table(folder / "tasks.parquet").to_pydict()
    assert tasks["task"] == ["b", "a", "c"]
    assert tasks["label"][0] == "dog"
    assert tasks["annotations"] == [2, 2, 0]
    assert tasks["probability"] == [max(row) for row in tasks["posteriors"]]
    annotators = pyarrow.parquet.read_table(folder / "annotators.parquet").to_pydict()
    assert annotators["annotator"] == ["ann", "bo"]
    assert np.shape(annotators["confusion"]) == (2, 2, 2)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["method"] == "dawid-skene"
    assert summary["classes"] == ["cat", "dog"]
    assert summary["num_tasks_without_annotations"] == 1


def test_frames_hold_a_row_per_task_and_per_annotator():
    result = MajorityVote(ties="lowest").fit(crowd())
    frame = result.to_frame()
    assert frame["task"].tolist() == ["b", "a", "c"]
    assert frame["label"].tolist() == ["dog", "cat", "dog"]
    assert frame["annotations"].tolist() == [2, 2, 0]
    np.testing.assert_allclose(frame["probability"][:2], [1, 0.5])
    annotators = result.annotator_frame()
    assert annotators["annotator"].tolist() == ["ann", "bo"]
    assert annotators["annotations"].tolist() == [2, 2]
    np.testing.assert_allclose(annotators["accuracy"], result.annotator_accuracy())


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ([np.nan, 0.2], "2 hold NaN or inf. First row 1, task 'a': [nan, 0.2], with the sum nan"),
        ([1, 1], "0 hold NaN or inf. First row 1, task 'a': [1.0, 1.0], with the sum 2"),
        ([1.2, -0.2], "0 hold NaN or inf. First row 1, task 'a': [1.2, -0.2]"),
    ],
)
def test_posteriors_that_are_no_probabilities_are_refused_with_the_first_task(row, fault):
    message = f"mine: posteriors are not probabilities that sum to 1 in 2 of 3 rows, of which {fault}"
    with pytest.raises(DataError, match=re.escape(message)):
        Aggregation.of("mine", crowd(), [[0.5, 0.5], row, row])


def test_methods_sign_their_results():
    assert {name: create(name).fit(crowd()).method for name in METHODS} == {name: name for name in METHODS}


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("david-skene", {}, "unknown aggregation method 'david-skene'.*Did you mean 'dawid-skene'"),
        ("dawid-skene", {"max_iters": 3}, "unknown setting of dawid-skene 'max_iters'.*Did you mean 'max_iter'"),
        ("majority-vote", {"tol": 1}, "unknown setting of majority-vote 'tol': choose one of voting, ties, seed"),
        ("dawid-skene", {"tol": -1}, "tol must be a number"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(method, settings, message):
    with pytest.raises(ConfigError, match=message):
        create(method, **settings)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("classes", "abcdefgh", "'classes' must be a list of names, got 'abcdefgh'"),
        ("classes", ["cat"], "'posteriors' does not have lists of 1 numbers|has a code outside 0 to 0"),
        ("classes", [["cat"], "dog"], "'classes' must be a list of names"),
        ("class_prior", [0.5, "x"], "'class_prior' does not have the expected numbers"),
        ("class_prior", [1.0], "'class_prior' does not have the expected numbers"),
        ("history", 7, "'history' does not have the expected numbers"),
        ("history", [10**400], "'history' does not have the expected numbers"),
        ("converged", "yes", "'converged' is 'yes'"),
        ("num_iterations", True, "'num_iterations' is True"),
        ("method", None, "'method' is None"),
        ("kind", [], "has the kind \\[\\], which is not one of classification"),
        ("kind", "votes", "has the kind 'votes', which is not one of classification"),
    ],
)
def test_a_summary_that_says_something_else_is_named(key, value, reason, tmp_path):
    folder = DawidSkene().fit(crowd()).to_parquet(tmp_path / "result")
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**summary, key: value}))
    with pytest.raises(DataError, match=reason):
        Aggregation.from_parquet(folder)


@pytest.mark.parametrize("content", [b"", b"null", b"[]", b"{", b"[" * 10_000, b'{"a": 1, "a": 2}', b"\xff", b"{}"])
def test_a_summary_that_is_none_is_named(content, tmp_path):
    folder = DawidSkene().fit(crowd()).to_parquet(tmp_path / "result")
    (folder / "summary.json").write_bytes(content)
    with pytest.raises(DataError, match=r"summary\.json"):
        Aggregation.from_parquet(folder)


@pytest.mark.parametrize(
    ("name", "column", "values"),
    [
        ("tasks", "posteriors", [[1.0], [0.5, 0.5], [0.5, 0.25, 0.25]]),
        ("tasks", "posteriors", [None, [0.5, 0.5], [0.5, 0.5]]),
        ("tasks", "label_code", [0, 1, 2]),
        ("tasks", "label_code", [0.0, 1.0, 1.0]),
        ("tasks", "task", [["a"], ["b"], ["c"]]),
        ("tasks", "annotations", ["1", "2", "3"]),
        ("annotators", "confusion", [[[1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]]),
        ("annotators", "annotator", None),
    ],
)
def test_a_table_that_holds_something_else_is_named(name, column, values, tmp_path):
    folder = DawidSkene().fit(crowd()).to_parquet(tmp_path / "result")
    path = folder / f"{name}.parquet"
    table = pyarrow.parquet.read_table(path)
    place = table.column_names.index(column)
    table = table.remove_column(place) if values is None else table.set_column(place, column, pyarrow.array(values))
    pyarrow.parquet.write_table(table, path)
    with pytest.raises(DataError, match=rf"{name}\.parquet.*'{column}'"):
        Aggregation.from_parquet(folder)


def test_a_result_prints_a_line_and_a_notebook_shows_the_first_answers():
    labels = np.arange(900).reshape(300, 3) % 4
    found = MajorityVote().fit(Annotations.from_dense(labels, classes=["<a>", "b", "c", "d"]))
    assert repr(found).endswith(": majority-vote, 300 tasks, 3 annotators, 4 classes>")
    page = found._repr_html_()
    assert len(page) < 3000
    assert "&lt;Aggregation: majority-vote" in page
    assert "&lt;a&gt;" in page


RESULTS = {
    "classification": (Aggregation, "classes", "majority-vote", ["x", "y"], {}),
    "regression": (RatingAggregation, "ratings", "mean", [1.0, 2.0], {}),
    "sequence": (
        SequenceAggregation,
        "sentences",
        "span-majority-vote",
        ["B-LOC", "O"],
        {"position": [0, 0], "classes": ["B-LOC", "I-LOC", "O"]},
    ),
    "preference": (PreferenceAggregation, "preferences", "bradley-terry", ["left", "right"], {"right": ["c", "c"]}),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_folder_of_another_kind_of_labels_names_what_reads_it(kind, tmp_path):
    own, title, method, labels, more = RESULTS[kind]
    crowd = Annotations.from_arrays(["a", "b"], ["ann", "bo"], labels, kind=kind, **more)
    if kind == "sequence":
        crowd = CrowdSequences([["Rome"], ["Oslo"]], crowd)
    create(method, kind=kind).fit(crowd).to_parquet(tmp_path / "out")
    for reader, others, *_ in RESULTS.values():
        if reader is own:
            assert reader.from_parquet(tmp_path / "out").method == method
            continue
        with pytest.raises(
            DataError, match=rf"holds an aggregation of {title}, not of {others} \({own.__name__}\.from_par"
        ):
            reader.from_parquet(tmp_path / "out")
        with pytest.raises(DataError, match=f"is not the folder of an aggregation of {others}: it has no t"):
            reader.from_parquet(tmp_path)
