"""The page of `crowdzoo report` for preferences."""

import json

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, create
from crowdzoo.errors import ConditionError, ConfigError, DataError
from crowdzoo.instances import TEXTS, Instances
from crowdzoo.quality import order_of_others
from crowdzoo.quality.figures import wilson
from crowdzoo.report.page import MOST_BYTES, VALUES, report_page

NAMES = ("ann", "bob", "cem", "dan", "lea", "guy")


def crowd() -> Annotations:
    """20 tasks, best first; ann, bob and cem are right nine times in ten, dan answers the wrong way round,
    lea always says left, guy guesses."""
    rng = np.random.default_rng(5)
    left, right = np.nonzero(~np.eye(20, dtype=bool))
    chosen = rng.permutation(len(left))[:150]
    left, right = left[chosen], right[chosen]
    better = left < right
    right_answers = rng.random((6, 150)) < np.array([[0.9], [0.9], [0.9], [0.1], [0.5], [0.5]])
    said_left = np.where(right_answers, better, ~better)
    said_left[4] = True
    answers = np.where(said_left, "left", "right").astype(object)
    answers[0, :15] = "equal"
    return Annotations.from_arrays(
        np.tile(left, 6), np.repeat(NAMES, 150), answers.ravel(), right=np.tile(right, 6), kind="preference"
    )


def fitted(annotations: Annotations, method: str = "annotator-bradley-terry"):
    return create(method, kind="preference").fit(annotations)


def table_of(*rows: str, **options) -> Annotations:
    """Judgments as "left right annotator answer"."""
    left, right, who, said = zip(*(row.split() for row in rows), strict=True)
    return Annotations.from_arrays(left, who, said, right=right, kind="preference", **options)


@pytest.fixture(scope="module")
def page():
    annotations = crowd()
    return report_page(annotations, fitted(annotations), bootstrap=20)


def test_notes_are_those_of_the_annotators(page):
    values = page.numbers.tables["annotators"].values
    assert values["annotator"] == sorted(NAMES)
    notes = dict(zip(values["annotator"], values["notes"], strict=True))
    assert notes == {"ann": [], "bob": [], "cem": [], "dan": ["against"], "lea": ["random", "left"], "guy": ["random"]}
    assert page.values["noted_annotators"] == 3
    assert page.values["noted_share"] == 0.5


def test_reliability_is_the_share_that_agrees_with_the_order_by_the_others(page):
    annotations, values = crowd(), page.numbers.tables["annotators"].values
    lead = order_of_others(annotations)
    hits, all_named = 0, 0
    for who, name in enumerate(values["annotator"]):
        mine = (annotations.annotator_ids == who) & (annotations.labels < 2)
        right = (lead[mine] > 0) == (annotations.labels[mine] == 0)
        assert values["reliability"][who] == pytest.approx(right.mean(), abs=1e-4), name
        low, high = wilson([right.mean()], [mine.sum()])
        assert values["reliability_low"][who] == pytest.approx(low[0], abs=1e-4)
        assert values["reliability_high"][who] == pytest.approx(high[0], abs=1e-4)
        hits, all_named = hits + right.sum(), all_named + mine.sum()
    assert page.values["order_agreement"] == pytest.approx(hits / all_named)


def test_an_annotator_who_is_right_leans_to_no_side_where_the_better_one_stands_on_the_left():
    rng = np.random.default_rng(0)
    left, right = np.nonzero(~np.eye(30, dtype=bool))
    kept = (left < right) | (rng.random(len(left)) < 0.3)  # 77 % have the better one on the left
    left, right = left[kept], right[kept]
    said = np.tile(np.where(left < right, "left", "right"), 3)
    annotations = Annotations.from_arrays(
        np.tile(left, 3), np.repeat(["a", "b", "c"], len(left)), said, right=np.tile(right, 3), kind="preference"
    )
    values = report_page(annotations, fitted(annotations), bootstrap=0).numbers.tables["annotators"].values
    assert min(values["left_share"]) > 0.7
    assert values["left"] == [0.5] * 3
    assert values["notes"] == [[], [], []]


def test_agreement_does_not_depend_on_which_task_stands_on_the_left():
    annotations = crowd()
    swapped = np.random.default_rng(1).random(len(annotations)) < 0.5
    said = np.array(["left", "right", "equal"])[annotations.labels]
    other = np.array(["right", "left", "equal"])[annotations.labels]
    turned = Annotations.from_arrays(
        np.where(swapped, annotations.right_ids, annotations.task_ids),
        annotations.annotators[annotations.annotator_ids],
        np.where(swapped, other, said),
        right=np.where(swapped, annotations.task_ids, annotations.right_ids),
        kind="preference",
        on_duplicate="all",
    )
    found = [report_page(each, fitted(each), bootstrap=0).values for each in (annotations, turned)]
    for name in ("alpha", "agreement", "pairs", "circular_share"):
        assert found[0][name] == pytest.approx(found[1][name]), name


def in_both_orders(*said_of, number: int = 6) -> list[str]:
    """Judgments of all pairs in both orders by one annotator each, whose answers come from the two numbers."""
    return [
        f"t{one} t{two} j{who} {said(one, two)}"
        for one in range(number) for two in range(number) if one != two for who, said in enumerate(said_of)
    ]  # fmt: skip


def always_left(one: int, two: int) -> str:
    return "left"


def test_a_crowd_that_answers_by_the_side_is_not_called_reliable():
    annotations = table_of(*in_both_orders(*[always_left] * 4, number=12))
    page = report_page(annotations, fitted(annotations), bootstrap=20)
    assert abs(page.values["alpha"]) < 0.02
    assert page.values["agreement"] == 0.5
    assert page.values["left_share"] == 1.0
    assert page.values["noted_annotators"] == 4
    sides = [each for each in page.numbers.warnings if each.about == "sides"]
    assert sides[0].serious
    assert sides[0].finding.startswith("the crowd prefers the left in 100 % of the judgments")
    with pytest.raises(ConditionError, match="alpha"):
        page.check(["alpha<0.6"])


def test_a_crowd_does_not_lean_to_a_side_because_some_annotators_do():
    rng = np.random.default_rng(0)

    def guess(lean):
        return lambda one, two: "left" if rng.random() < lean + (0.3 if one < two else -0.3) else "right"

    few = table_of(*in_both_orders(*[guess(0.5)] * 8, always_left, always_left, always_left, number=12))
    page = report_page(few, fitted(few), bootstrap=0)
    assert page.values["left_share"] > 0.6
    assert not [each for each in page.numbers.warnings if each.finding.startswith("the crowd prefers")]
    assert [each.about for each in page.numbers.warnings if "prefer the left" in each.finding] == ["j10, j8, j9"]
    all_of_them = table_of(*in_both_orders(*[guess(0.57)] * 8, always_left, number=12))
    page = report_page(all_of_them, fitted(all_of_them), bootstrap=0)
    found = [each for each in page.numbers.warnings if each.finding.startswith("the crowd prefers the left in")]
    assert found[0].finding.endswith("and in 56 % without the 3 who answer by the side")
    assert not found[0].serious
    assert found[0].fix.endswith("scores are corrected for it")


def test_agreement_and_alpha_are_those_counted_by_hand():
    annotations = table_of(
        "a b ann left", "b a bob right", "a c ann left", "a c bob right", "b c ann equal", "b c bob left",
        "c a cem left", "a d cem left",
    )  # fmt: skip
    values = report_page(annotations, fitted(annotations), bootstrap=0).values
    # a b: both for a. a c: ann for a, bob and cem for c: one of three pairs of answers agrees. b c: none
    assert values["agreement"] == pytest.approx((1 + 1 / 3 + 0) / 3)
    # alpha, with every pair in both orders: 14 answers; 6.5 for either side, i.e. 13 of them name one: 6 + 6 + 2 equal
    observed = 2 * (0 + 2 * 2 / 2 + 2) / 14
    counts = np.array([6, 6, 2])
    expected = 1 - (counts * (counts - 1)).sum() / (14 * 13)
    assert values["alpha"] == pytest.approx(1 - observed / expected)
    assert values["pairs"] == 4
    assert values["pairs_with_several"] == 3


def test_a_file_with_the_better_one_always_on_the_left_is_warned_of():
    left, right = np.nonzero(np.triu(np.ones((12, 12)), 1))
    annotations = Annotations.from_arrays(
        np.tile(left, 2), np.repeat(["a", "b"], len(left)), ["left"] * 2 * len(left), right=np.tile(right, 2),
        kind="preference",
    )  # fmt: skip
    page = report_page(annotations, fitted(annotations, "bradley-terry"), bootstrap=0)
    warned = [each for each in page.numbers.warnings if each.about == "sides"]
    assert warned[0].finding.startswith("100 % of the judgments prefer the left")
    assert "--method bradley-terry" in warned[0].fix
    assert warned[0].serious
    assert len(warned) == 1
    assert page.numbers.tables["annotators"].values["left"] == [None, None]
    assert page.values["left_share"] is None
    assert page.values["alpha"] == pytest.approx(1)  # of both orders of a pair
    page.to_html()


def test_two_groups_who_contradict_each_other_are_told_from_guessing():
    rng = np.random.default_rng(1)

    def said(right):
        return lambda one, two: "left" if (rng.random() < right) == (one < two) else "right"

    annotations = table_of(*in_both_orders(*[said(0.9)] * 4, *[said(0.1)] * 4, number=10))
    found = report_page(annotations, fitted(annotations), bootstrap=20).numbers.warnings
    assert any("two groups may contradict each other" in each.finding for each in found)


def test_circles_groups_few_judgments_and_one_way_tasks_are_warned_of():
    circle = [f"t{one} t{(one + step) % 7} {who} left" for one in range(7) for step in (1, 2, 3) for who in ("a", "b")]
    more = [f"u{one} u{one + 1} {who} left" for one in range(3) for who in ("a", "b")]
    annotations = table_of(*circle, *more)
    page = report_page(annotations, fitted(annotations), bootstrap=0)
    found = {each.about: each for each in page.numbers.warnings if each.about == "circles"}
    # seven tasks of which each beats three: 14 of the 35 triads are circles, the most that there can be
    assert found["circles"].finding.startswith("by majorities 40 % of the 35 triads of tasks are circles")
    assert page.values["circular_share"] == pytest.approx(14 / 35)
    assert page.values["groups"] == 2
    findings = [each.finding for each in page.numbers.warnings if each.about == "tasks"]
    assert any(finding.startswith("fall into 2 groups that no comparison links") for finding in findings)
    assert "4 (36 %) have fewer than 5 judgments" in findings
    assert any(finding.startswith("2 won all comparisons, or lost all") for finding in findings)
    assert "group" in [column.key for column in page.numbers.tables["tasks"].columns]
    assert page.numbers.tables["tasks"].values["circular"][:7] == [6] * 7


def test_answers_that_change_with_the_order_are_counted():
    rows = [f"t{one} t{two} ann left" for one in range(8) for two in range(8) if one != two]
    others = [
        f"t{one} t{two} bob {'left' if one < two else 'right'}" for one in range(8) for two in range(8) if one != two
    ]
    annotations = table_of(*rows, *others)
    page = report_page(annotations, fitted(annotations), bootstrap=0)
    assert page.numbers.tables["annotators"].values["consistent"] == [0.0, 1.0]
    finding = "an annotator judged a pair in both orders 56 times, and gave another answer in 50 % of them"
    assert finding in [each.finding for each in page.numbers.warnings]
    few = table_of("a b ann left", "b a ann left", "b c ann left", *others)
    found = report_page(few, fitted(few), bootstrap=0).numbers
    assert found.tables["annotators"].values["both_orders"] == [1, 28]
    assert not [each for each in found.warnings if "in both orders" in each.finding]  # 1 of 29


def test_divided_pairs_come_first_and_say_who_said_what():
    annotations = table_of(
        "a b ann left", "b a bob left", "a c ann left", "a c bob left", "a c cem right", "b c ann left", "b c bob left",
    )  # fmt: skip
    table = report_page(annotations, fitted(annotations), bootstrap=0).numbers.tables["divided"]
    assert sorted(table.values["pair"][0].split(" / ")) == ["a", "b"]  # one each
    assert table.values["pair"][1:] == ["a / c"]  # two of three; all agree on b and c
    assert (table.values["first_better"][1], table.values["second_better"][1]) == (2, 1)
    assert table.values["entropy"] == pytest.approx([np.log(2), -(2 * np.log(2 / 3) + np.log(1 / 3)) / 3], abs=1e-4)
    assert table.details[1] == {
        "tasks": ["a", "c"], "judges": [["ann", 0, True], ["bob", 0, True], ["cem", 1, True]],
    }  # fmt: skip
    assert [left for *_, left in table.details[0]["judges"]] in ([True, False], [False, True])


def test_tasks_have_scores_with_intervals_ranks_and_their_texts(page):
    annotations = crowd()
    result = fitted(annotations)
    values, table = page.numbers.tables["tasks"].values, page.numbers.tables["tasks"]
    assert [values["rank"][row] for row in table.rows] == list(range(1, 21))
    width = 1.959964 * result.standard_errors(annotations)
    assert values["score_low"] == pytest.approx(result.scores - width, abs=1e-4)
    assert values["score_high"] == pytest.approx(result.scores + width, abs=1e-4)
    assert sum(values["annotations"]) == 2 * len(annotations)
    mine = (annotations.task_ids == 0) & (annotations.labels == 0) | (annotations.right_ids == 0) & (
        annotations.labels == 1
    )
    either = (annotations.task_ids == 0) | (annotations.right_ids == 0)
    expected = (mine.sum() + 0.5 * (either & (annotations.labels == 2)).sum()) / either.sum()
    assert values["won"][0] == pytest.approx(expected, abs=1e-4)
    texts = Instances(np.arange(20), TEXTS, np.array([f"text {task}" for task in range(20)], object))
    shown = json.loads(report_page(annotations, result, bootstrap=0, instances=texts).to_json())["tables"]["tasks"]
    assert shown["instances"] == 20
    assert shown["details"][0]["instance"] == {"text": f"text {shown['shown'][0]}"}
    opponents = shown["details"][0]["opponents"]
    assert all(won + equal + lost for _, won, equal, lost, _ in opponents)


def test_the_numbers_are_written_and_conditions_compare_them(page, tmp_path):
    path = page.write(tmp_path / "a.html")
    numbers = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert numbers["kind"] == "preference"
    assert set(page.values) == set(VALUES["preference"])
    assert len(numbers["verdict"]) == 3
    assert path.stat().st_size < MOST_BYTES
    assert "http://" not in path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    page.check(["order_agreement<0.3", "groups>1"])
    with pytest.raises(ConditionError, match=r"order_agreement<0\.99 holds: order_agreement is 0\."):
        page.check(["order_agreement<0.99"])


def test_results_of_another_kind_or_crowd_and_settings_of_other_kinds_are_refused():
    annotations, classes = crowd(), Annotations.from_arrays([0, 0], ["a", "b"], [0, 1])
    result = fitted(annotations)
    with pytest.raises(DataError, match="kind"):
        report_page(classes, result)
    with pytest.raises(DataError):
        report_page(annotations, DawidSkene().fit(classes))
    with pytest.raises(DataError, match="other tasks"):
        report_page(annotations, fitted(table_of("a b ann left")))
    with pytest.raises(ConfigError, match="give nominal, ordinal or interval"):
        report_page(annotations, result, metric="ratio")
    with pytest.raises(ConfigError, match="gold"):
        report_page(annotations, result, gold=np.zeros(20, int))
    farther = report_page(annotations, result, metric="interval", bootstrap=0).values["alpha"]
    assert farther != report_page(annotations, result, bootstrap=0).values["alpha"]
