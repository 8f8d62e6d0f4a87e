"""The page of `crowdzoo report` where several labels may hold for a task."""

import json

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, MultiLabel
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.quality import krippendorff_alpha
from crowdzoo.report.page import VALUES, report_page

LABELS = np.array(["cat", "dog", "out"], object)
PEOPLE = ("ann", "bob", "cem", "dan", "eve", "fay", "gil")


def crowd() -> Annotations:
    """100 tasks; dan says the opposite of what is right, eve always "cat", the others are right nine times in ten."""
    rng = np.random.default_rng(2)
    truth = rng.random((100, 3)) < [0.5, 0.3, 0.4]
    rows = []
    for who, name in enumerate(PEOPLE):
        right = rng.random((100, 3)) < (0.1 if name == "dan" else 0.9)
        said = np.where(right, truth, ~truth)
        if name == "eve":
            said = np.tile([True, False, False], (100, 1))
        for task in range(100):
            if (task + who) % 4:  # not everybody answers every task
                rows += [(task, name, label) for label in LABELS[said[task]]] or [(task, name, "(none)")]
    return Annotations.from_arrays(*zip(*rows, strict=True), on_duplicate="all")


@pytest.fixture(scope="module")
def page():
    annotations = crowd()
    return report_page(annotations, MultiLabel("dawid-skene").fit(annotations), bootstrap=40)


def test_alpha_of_a_label_is_that_of_its_yes_and_no(page):
    values = page.numbers.tables["classes"].values
    observed, expected = 0.0, 0.0
    for label, table in MultiLabel("dawid-skene").tables(crowd()).items():
        alpha = krippendorff_alpha(table)
        place = values["class"].index(label)
        assert values["alpha"][place] == pytest.approx(alpha.value, abs=1e-4)
        assert values["alpha_low"][place] < alpha.value < values["alpha_high"][place]
        observed, expected = observed + alpha.observed, expected + alpha.expected
    assert page.values["alpha"] == pytest.approx(1 - observed / expected)
    assert page.values["least_alpha"] == pytest.approx(min(values["alpha"]), abs=1e-4)
    assert page.values["alpha_low"] < page.values["alpha"] < page.values["alpha_high"]


def test_agreement_on_yes_and_prevalence_are_those_counted_by_hand():
    rows = [("1", "ann", "a"), ("1", "bob", "a"), ("1", "cem", "b"), ("2", "ann", "a"), ("2", "bob", "(none)")]
    annotations = Annotations.from_arrays(*zip(*rows, strict=True), on_duplicate="all")
    result = MultiLabel("majority-vote").fit(annotations)
    page = report_page(annotations, result, bootstrap=0)
    values = page.numbers.tables["classes"].values
    # a: on task 1 two of three, each meets another a in one of two; on task 2 one of two, which meets none
    assert values["agreement"] == [pytest.approx((0.5 + 0.5 + 0) / 3, abs=1e-4), 0.0]
    assert values["annotations"] == [3, 1]
    assert values["share"] == [0.6, 0.2]
    assert values["prevalence"] == pytest.approx([(2 / 3 + 1 / 2) / 2, (1 / 3) / 2], abs=1e-4)
    tasks = page.numbers.tables["tasks"].values
    # task 1: ann and bob differ in nothing, either differs from cem in a and b
    assert tasks["disagreement"] == pytest.approx([4 / 3, 1], abs=1e-4)
    assert tasks["label"] == ["a", "(none)"]
    # bob differs from the others by 1 on each task, and by chance by .25 + .25 and .75 + .25
    assert page.numbers.tables["annotators"].values["agreement"] == pytest.approx([0, 1 - 2 / 1.5, 0], abs=1e-4)
    detail = page.numbers.tables["tasks"].details[0]
    assert detail["sets"] == [["ann", [0]], ["bob", [0]], ["cem", [1]]]
    assert detail["labels"] == [[0, 2, pytest.approx(2 / 3, abs=1e-4)], [1, 1, pytest.approx(1 / 3, abs=1e-4)]]
    assert page.values["labels_per_answer"] == pytest.approx(4 / 5)


def test_notes_are_those_of_the_annotators(page):
    values = page.numbers.tables["annotators"].values
    notes = dict(zip(values["annotator"], values["notes"], strict=True))
    assert notes == {
        "ann": [],
        "bob": [],
        "cem": [],
        "dan": ["against"],
        "eve": ["random", "same"],
        "fay": [],
        "gil": [],
    }
    assert page.numbers.tables["classes"].values["to_check"][1:] == [2, 2]  # dan, and eve, who never gives these


def test_rare_labels_and_labels_by_chance_are_warned_of():
    rng = np.random.default_rng(0)
    rows = []
    for task in range(60):
        for who in range(4):
            labels = (["sure"] if task % 2 else []) + (["any"] if rng.random() < 0.4 else [])
            labels += ["once"] if (task, who) == (3, 1) else []
            rows += [(task, who, label) for label in labels or ["(none)"]]
    annotations = Annotations.from_arrays(*zip(*rows, strict=True), on_duplicate="all")
    page = report_page(annotations, MultiLabel("majority-vote").fit(annotations), bootstrap=40)
    found = {each.about: each.finding for each in page.numbers.warnings}
    assert "do not agree clearly more than by chance" in found["any"]
    assert found["once"].startswith("fewer than 10 answers give it")
    assert "agree most on sure (alpha 1.00)" in page.numbers.verdict[-1]


def test_the_numbers_are_written_and_compared_with_earlier_ones(page, tmp_path):
    numbers = json.loads(page.write(tmp_path / "a.html").with_suffix(".json").read_text("utf-8"))
    assert numbers["kind"] == "multi-label"
    assert numbers["classes"] == LABELS.tolist()
    assert set(page.values) == set(VALUES["multi-label"])
    annotations = crowd()
    fewer = annotations.select_rows(annotations.annotator_ids != 3)
    later = report_page(
        fewer, MultiLabel("dawid-skene").fit(fewer), bootstrap=0, before=numbers, hash_ids=False
    ).changes  # fmt: skip
    assert later["tasks"]["both"] == 100
    assert later["tasks"]["changed"] == len(later["tasks"]["listed"]) or later["tasks"]["changed"] > 10


def test_results_of_other_crowds_and_settings_of_other_kinds_are_refused():
    annotations = crowd()
    result = MultiLabel("majority-vote").fit(annotations)
    with pytest.raises(DataError, match="other tasks"):
        report_page(annotations.select_tasks(np.arange(9)), result)
    with pytest.raises(DataError):
        report_page(annotations, DawidSkene().fit(Annotations.from_arrays([0, 0], ["a", "b"], [0, 1])))
    with pytest.raises(ConfigError, match="one a task"):
        report_page(annotations, result, gold=np.zeros(100, int))
    with pytest.raises(ConfigError, match="a label holds or not"):
        report_page(annotations, result, metric="ordinal")
