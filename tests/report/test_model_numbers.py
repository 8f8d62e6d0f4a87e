"""A model's predictions and gold on the page of `crowdzoo report`, and in the numbers next to it."""

import json
from contextvars import copy_context
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import Aggregation, MajorityVote
from crowdzoo.errors import ConditionError, DataError, DataWarning
from crowdzoo.files.writing import SPREADSHEET
from crowdzoo.instances import Predictions, read_predictions
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.page_parts import percent
from crowdzoo.metrics import expected_calibration_error
from crowdzoo.report.page import report_page

CLASSES = ("ape", "bat", "cat")


def known(said: list[list[int]], posteriors: list[list[float]]) -> tuple[Annotations, Aggregation]:
    """A crowd of two annotators, and an aggregation with these posteriors."""
    votes = np.array(said)
    tasks, who = np.nonzero(votes >= 0)
    annotations = Annotations.from_arrays(
        np.array([f"t{task}" for task in tasks], object), who, np.array(CLASSES, object)[votes[tasks, who]],
        classes=CLASSES, tasks=[f"t{task}" for task in range(len(votes))],
    )  # fmt: skip
    result = MajorityVote().fit(annotations)
    table = np.array(posteriors)
    return annotations, replace(result, posteriors=table, labels=table.argmax(axis=1))


def eight() -> tuple[Annotations, Aggregation, Predictions, np.ndarray]:
    """Eight tasks: t6 has no prediction, t7 no annotations."""
    sure, half = [0.98, 0.01, 0.01], [0.6, 0.3, 0.1]
    rows = [sure, sure, [0.01, 0.97, 0.02], half, half, [0.1, 0.1, 0.8], sure, [1 / 3] * 3]
    annotations, result = known([[0, 0], [0, 0], [1, 1], [0, 1], [0, 1], [2, 2], [0, 0], [-1, -1]], rows)
    predictions = Predictions(np.array([0, 1, 0, 0, 1, 2, -1, 0]), np.array([0.99, 0.96, 0.998, 0.5, 0.97, 0.7, np.nan,
        0.9]), 3)  # fmt: skip
    return annotations, result, predictions, np.array([0, 0, 0, 0, 1, -1, 1, 2])


def test_agreement_counts_tasks_that_have_both():
    annotations, result, predictions, _ = eight()
    page = report_page(annotations, result, bootstrap=0, predictions=predictions)
    model = json.loads(page.to_json())["model"]
    assert (model["tasks"], model["without"], model["others"]) == (6, 1, 3)
    # t0, t3 and t5 of six; Wilson's interval of 3 in 6 by its formula: 0.1876 to 0.8124
    assert (model["agreement"], model["agreement_low"], model["agreement_high"]) == (0.5, 0.1876, 0.8124)
    # sure both: t0, t1, t2; t4 is not sure by the crowd
    assert (model["both_sure"], model["sure_and_differ"]) == (3, 2)
    assert page.values["model_agreement"] == 0.5
    page.check(["model_agreement<0.5"])
    with pytest.raises(ConditionError, match=r"model_agreement<0.8 holds: model_agreement is 0\.5"):
        page.check(["model_agreement<0.8"])


def test_pairs_and_sure_tasks_are_listed():
    annotations, result, predictions, gold = eight()
    page = report_page(annotations, result, bootstrap=0, predictions=predictions, gold=gold)
    pairs = page.numbers.tables["model_pairs"].values
    assert list(zip(pairs["aggregated"], pairs["model"], pairs["tasks"], strict=True)) == [
        ("ape", "bat", 2), ("bat", "ape", 1),
    ]  # fmt: skip
    assert pairs["disagreement"] == [0.6667, 0.3333]
    assert pairs["agreement"] == [0.5, 0.0]  # ape: t0, t3 of t0, t1, t3, t4; bat: none of t2
    tasks = page.numbers.tables["model_tasks"].values
    assert tasks["task"] == ["t2", "t1"]  # the less sure side: 0.97, 0.96
    assert tasks["label"] == ["bat", "ape"]
    assert tasks["predicted"] == ["ape", "bat"]
    assert tasks["model_probability"] == [0.998, 0.96]
    assert tasks["gold"] == ["ape", "ape"]


def test_calibration_is_measured_on_the_same_tasks_for_both():
    annotations, result, predictions, gold = eight()
    page = report_page(annotations, result, bootstrap=0, predictions=predictions, gold=gold)
    found = json.loads(page.to_json())["calibration"]
    assert found["tasks"] == 5  # t0 to t4: t5 has no gold, t6 no prediction, t7 no annotations
    aggregated, model = found["aggregated"], found["model"]
    # by hand: 0.98 right, 0.98 right, 0.97 wrong in the last of 15 bins; 0.6 right, 0.6 wrong in (8/15, 9/15]
    assert [each[:5] for each in aggregated["bins"]] == [[0.5333, 0.6, 2, 0.6, 0.5], [0.9333, 1.0, 3, 0.9767, 0.6667]]
    assert aggregated["accuracy"] == 0.6
    assert aggregated["ece"] == pytest.approx((2 * 0.1 + 3 * (0.976667 - 2 / 3)) / 5, abs=1e-4)
    ours = result.posteriors[:5]
    assert aggregated["ece"] == pytest.approx(expected_calibration_error(gold[:5], ours), abs=1e-4)
    # model: 0.99 right, 0.96 wrong, 0.998 right, 0.97 right; 0.5 right
    assert [each[2:5] for each in model["bins"]] == [[1, 0.5, 1.0], [4, 0.9795, 0.75]]
    assert model["ece"] == pytest.approx((0.5 + 4 * (0.9795 - 0.75)) / 5, abs=1e-4)
    assert page.values["aggregate_ece"] == pytest.approx(aggregated["ece"], abs=1e-4)
    assert page.values["model_accuracy"] == 0.8


def test_without_a_model_gold_measures_the_aggregated_labels_alone():
    annotations, result, predictions, gold = eight()
    page = report_page(annotations, result, bootstrap=0, gold=gold)
    found = json.loads(page.to_json())
    assert found["model"] is None
    assert found["calibration"]["model"] is None
    assert found["calibration"]["tasks"] == 6  # t6, too
    assert page.values["model_ece"] is None
    right = page.values["aggregate_accuracy"]
    assert page.numbers.verdict[0].startswith(f"Not usable yet: {percent(right)} of the labels are correct (")
    assert page.numbers.verdict[0].endswith(", as measured on 6 tasks with gold.")
    bare = report_page(annotations, result, bootstrap=0)
    assert {"model_pairs", "model_tasks"}.isdisjoint(bare.numbers.tables)
    assert bare.values["model_agreement"] is None
    none = report_page(annotations, result, bootstrap=0, predictions=predictions, gold=np.full(8, -1))
    assert json.loads(none.to_json())["calibration"]["tasks"] == 0
    assert none.values["aggregate_ece"] is None
    none.to_html()


def test_tasks_that_are_listed_are_shown_among_a_thousand_others():
    rng = np.random.default_rng(0)
    number = 1500
    labels = rng.integers(0, 2, (number, 3))
    labels[:20] = 0  # undivided: the last ones to be shown
    annotations = Annotations.from_arrays(
        np.repeat(np.arange(number), 3), np.tile(np.arange(3), number), labels.ravel()
    )
    result = MajorityVote().fit(annotations)
    said = np.where(np.arange(number) < 20, 1, result.labels)
    page = report_page(annotations, result, bootstrap=0, predictions=Predictions(said, np.full(number, 0.99)))
    listed = page.numbers.tables["model_tasks"].values["task"]
    assert sorted(listed) == list(range(20))
    shown = page.numbers.tables["tasks"].rows
    assert len(shown) == len(set(shown)) <= 1000
    assert set(range(20)) <= set(shown)


@pytest.mark.parametrize("form", [None, (";", ",", "utf-8-sig")])
def test_predictions_are_written_and_read_by_task(tmp_path, form):
    path, instances = tmp_path / "p.csv", SimpleNamespace(tasks=[3, 1, 9])
    outputs = {"class": np.array([b"b,c", b"a", b"a"]), "probabilities": np.array([[0.25, 0.75], [1, 0], [0.5, 0.5]])}
    within = copy_context()
    within.run(SPREADSHEET.set, form)
    within.run(kind_of("classification").prediction.write, path, instances, outputs)
    assert path.read_bytes().startswith(b"\xef\xbb\xbftask;class;probability\n3;b,c;0,75" if form else b"task,class")
    found = read_predictions(path, np.array([1, 2, 3]), ["a", "b,c"])
    np.testing.assert_array_equal(found.labels, [0, -1, 1])
    np.testing.assert_array_equal(found.probabilities, [1.0, np.nan, 0.75])
    assert found.others == 1
    assert repr(found) == "<Predictions: of 2 of 3 tasks>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("task,class\n1,a\n", r"has no column 'probability'.* have the columns task, class and probability"),
        ("task,class,probability\n", "has no rows, only a header"),
        ("task,class,probability\n1,a,0.5\n1,a,0.5\n", r"row 3, column 'task'.*second time"),
        ("task,class,probability\n1,c,0.5\n", r"row 2, column 'class'.*'c' is not one of the classes \['a', 'b'\]"),
        ("task,class,probability\n1,,0.5\n", r"row 2, column 'class'.*is not a class"),
        ("task,class,probability\n1,a,1.5\n", r"row 2, column 'probability'.*'1.5' is not a probability"),
        ("task,class,probability\n1,a,nan\n", r"row 2, column 'probability'.*'nan'"),
        ("task,class,probability\n1,a,\n", r"row 2, column 'probability'.*is not a probability"),
        ("task,class,probability\n1,a,much\n", r"row 2, column 'probability'.*'much'"),
        ("task,class,probability\nx,a,0.5\n", r"none of its 1 tasks is among the 2 that were annotated"),
    ],
)
def test_wrong_predictions_are_refused_with_their_row(write, content, message):
    path = write("p.csv", content)
    with pytest.raises(DataError, match="(?s)" + message):
        read_predictions(path, np.array([1, 2]), ["a", "b"])


def test_a_probability_that_the_most_probable_class_cannot_have_is_named(write):
    """Of three classes one has a third or more; .34 is possible, and .1 is that of another class."""
    path = write("p.csv", "task,class,probability\n1,a,0.1\n2,b,0.34\n")
    with pytest.warns(DataWarning, match=r"1 probabilities are below 0\.3333, .* of 3 classes"):
        read_predictions(path, np.array([1, 2]), ["a", "b", "c"])


@pytest.mark.parametrize(("kind", "column"), [("regression", "value"), ("free-text", "text")])
def test_the_column_of_predictions_is_named_where_it_is_missing(write, kind, column):
    path = write("p.csv", "task,prediction\n1,2\n")
    crowd = Annotations.from_arrays([1, 1], ["ann", "bob"], ["1", "2"] if kind == "free-text" else [1, 2], kind=kind)
    with pytest.raises(DataError, match=rf"p\.csv: has no column '{column}'; its columns are \['task'"):
        kind_of(kind).reading.predictions_of(crowd, path, kind_of(kind).prediction.header[1])
