"""The page of `crowdzoo report`, and the numbers beside it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, MajorityVote
from crowdzoo.datasets import load_labelme
from crowdzoo.errors import ConditionError, ConfigError, DataError
from crowdzoo.instances import TEXTS, Instances
from crowdzoo.kinds.page_parts import PageWarning, look_first, median_seconds
from crowdzoo.quality import quality_report
from crowdzoo.quality.figures import wilson
from crowdzoo.report.page import MOST_BYTES, VALUES, report_page

EVIL = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>",
    "<!--<script>",
    "{{DATA}}",
    "a\u2028\u2029b",
    "\\u003c",
    "&lt;b&gt;",
]


def crowd(seed: int = 0, *, classes: tuple = ("ape", "bat", "cat"), spam: bool = True) -> Annotations:
    """60 tasks by six annotators; the fifth says anything, and the sixth always the first class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, len(classes), 60)
    said = np.where(rng.random((6, 60)) < 0.85, truth, rng.integers(0, len(classes), (6, 60)))
    if spam:
        said[4], said[5] = rng.integers(0, len(classes), 60), 0
    names = np.repeat([f"a{number}" for number in range(6)], 60)
    return Annotations.from_arrays(np.tile(np.arange(60), 6), names, np.array(classes, object)[said.ravel()])


def page_of(annotations: Annotations, **settings):
    return report_page(annotations, DawidSkene().fit(annotations), **{"bootstrap": 20, "curve": 0, **settings})


def data_of(page) -> dict:
    """What the page's script reads."""
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.to_html(), flags=re.S)
    return json.loads(data)


@pytest.fixture(scope="module")
def labelme():
    annotations = load_labelme().annotations
    aggregation = DawidSkene().fit(annotations)
    return annotations, aggregation, report_page(annotations, aggregation, bootstrap=20, title="labelme", curve=0)


def test_the_numbers_are_those_of_the_report_on_quality(labelme):
    annotations, aggregation, page = labelme
    report = quality_report(annotations, aggregation, bootstrap=20)
    numbers = json.loads(page.to_json())
    assert numbers["format"] == "crowdzoo-report"
    assert numbers["format_version"] == 1
    assert numbers["values"]["alpha"] == round(report.alpha.value, 4)
    assert numbers["summary"]["tasks_tied"] == report.overall["tasks_tied"] == 129
    tasks, annotators = numbers["tables"]["tasks"], numbers["tables"]["annotators"]
    assert tasks["values"]["task"] == annotations.tasks.tolist()
    assert annotators["values"]["agreement"] == pytest.approx(report.annotators["agreement"].to_pylist(), abs=1e-4)
    assert numbers["tables"]["classes"]["values"]["agreement"][3] == pytest.approx(0.447, abs=5e-4)  # insidecity


def test_the_first_screen_names_the_classes_that_are_unclear(labelme):
    _, _, page = labelme
    headline, look, settled, gold = page.numbers.verdict
    assert headline.startswith("Probably usable with care: about 80 %")
    assert " of the labels are correct (66 to " in headline
    assert " % of the labels are settled (" in settled
    assert gold.startswith("To measure how many are correct, label 50 tasks yourself")
    assert look.startswith("Read the warning marked serious before you use the labels")
    assert look.endswith("insidecity and street, with 25 % of all disagreement.")
    alpha = next(fact for fact in page.numbers.facts if fact[0] == "agreement beyond chance")
    assert round(alpha[1], 2) == 0.68
    assert alpha[4].startswith("Agreement corrected for chance: 0 for random")
    unclear = [each for each in page.numbers.warnings if "definition" in each.finding]
    assert [each.about for each in unclear] == ["insidecity / street", "insidecity / tallbuilding"]
    assert unclear[0].finding.endswith("45 % on insidecity")
    assert all(each.fix for each in page.numbers.warnings)


@pytest.mark.parametrize(
    ("serious", "noted", "more", "said"),
    [
        (0, 0, [], "Nothing."),
        (0, 1, [], "Look first at the annotator with a serious note."),
        (0, 2, ["the class a"], "Look first at the 2 annotators with serious notes and at the class a."),
        (1, 0, [], "Read the warning marked serious before you use the labels."),
        (
            2,
            1,
            [],
            "Read the 2 warnings marked serious before you use the labels, then look at the annotator with a serious "
            "note.",
        ),
    ],
)
def test_the_verdict_ends_with_what_to_look_at_first_and_serious_warnings_come_before_all(serious, noted, more, said):
    warnings = [PageWarning(number < serious, "data", "finding", "fix") for number in range(3)]
    assert look_first(warnings, noted, more, "Nothing.") == said


def test_reliability_has_wilsons_interval():
    low, high = wilson([0.5, 1.0, 0.0, np.nan], [10, 10, 10, 0])
    # Newcombe, Statistics in Medicine 17, 1998, gives such intervals; these by its formula, by hand
    np.testing.assert_allclose(low[:3], [0.2366, 0.7225, 0.0], atol=1e-4)
    np.testing.assert_allclose(high[:3], [0.7634, 1.0, 0.2775], atol=1e-4)
    assert np.isnan(low[3])
    values = page_of(crowd()).numbers.tables["annotators"].values
    for value, least, most in zip(*(values[f"reliability{end}"] for end in ("", "_low", "_high")), strict=True):
        assert least < value < most


def test_a_task_opens_with_its_votes_and_an_annotator_with_a_confusion_matrix():
    annotations = crowd()
    page = page_of(annotations)
    tasks = page.numbers.tables["tasks"]
    place = tasks.rows.index(7)
    votes = annotations.labels[annotations.task_ids == 7]
    assert sorted(tasks.details[place]["votes"]) == [[code, int((votes == code).sum())] for code in np.unique(votes)]
    assert tasks.details[place]["voters"][0] == ["a0", int(votes[0])]
    entropy = [tasks.values["entropy"][row] for row in tasks.rows]
    assert entropy == sorted(entropy, reverse=True)
    annotators = page.numbers.tables["annotators"]
    always = annotators.details[annotators.rows.index(5)]
    assert {said for _, said, _ in always["confusion"]} == {0}
    assert sum(count for *_, count in always["confusion"]) == 60


def test_beyond_a_thousand_the_page_shows_those_that_matter_and_the_numbers_have_all():
    rng = np.random.default_rng(2)
    who = np.concatenate([np.arange(1500), np.repeat(np.arange(1490, 1500), 200)])
    tasks = np.concatenate([np.arange(1500), np.tile(np.arange(1500, 1700), 10)])
    labels = rng.integers(0, 2, len(who))
    annotations = Annotations.from_arrays(tasks, who, labels)
    page = report_page(annotations, MajorityVote().fit(annotations), bootstrap=0)
    data, numbers = data_of(page), json.loads(page.to_json())
    for name, total in (("annotators", 1500), ("tasks", 1700)):
        assert data["tables"][name]["total"] == total
        assert len(data["tables"][name]["details"]) == len(data["tables"][name]["rows"]) == 1000
        assert len(numbers["tables"][name]["shown"]) == 1000
        assert {len(values) for values in numbers["tables"][name]["values"].values()} == {total}
    assert set(range(1490, 1500)) <= set(data["tables"]["annotators"]["values"]["annotator"])
    assert min(data["tables"]["tasks"]["values"]["task"][:100]) >= 1500  # divided votes


def test_the_page_stays_below_two_megabytes_however_long_the_names_are():
    rng = np.random.default_rng(1)
    names = np.array([f"{number}-{'名' * 1500}" for number in range(900)], object)
    annotations = Annotations.from_arrays(names[np.repeat(np.arange(900), 3)], rng.integers(0, 9, 2700) + np.tile(
        np.arange(3) * 9, 900), rng.integers(0, 2, 2700))  # fmt: skip
    page = report_page(annotations, MajorityVote().fit(annotations), bootstrap=0)
    assert len(page.to_html().encode()) <= MOST_BYTES
    assert 0 < len(data_of(page)["tables"]["tasks"]["rows"]) < 900
    assert len(json.loads(page.to_json())["tables"]["tasks"]["values"]["task"]) == 900


def test_names_and_texts_from_data_are_never_markup():
    rng = np.random.default_rng(0)
    tasks, who = np.divmod(np.arange(8 * 8), 8)
    evil = np.array(EVIL, object)
    labels = evil[np.where(rng.random(64) < 0.7, tasks % 4, rng.integers(0, 4, 64))]
    annotations = Annotations.from_arrays(evil[tasks], evil[who], labels)
    instances = Instances(annotations.tasks, TEXTS, evil.copy())
    page = page_of(annotations, title=EVIL[0], instances=instances)
    text = page.to_html()
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    for each in ("<img", "<svg", "<!--", "onerror=alert(1)>"):
        assert each not in text
    assert set(data_of(page)["tables"]["tasks"]["values"]["task"]) == set(EVIL)
    assert data_of(page)["title"] == EVIL[0]
    assert {detail["instance"]["text"] for detail in data_of(page)["tables"]["tasks"]["details"]} == set(EVIL)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text.split('id="data"')[0])


def test_the_page_asks_for_nothing_outside():
    text = page_of(crowd()).to_html()
    assert "default-src 'none'" in text
    text = text.replace('"http://www.w3.org/2000/svg"', "", 1)  # the name of SVG's elements; nobody asks for it
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|<link|<iframe| src=", text)


def test_ids_are_hashed_on_request():
    annotations = crowd()
    plain = page_of(annotations)
    one, same, other = (page_of(annotations, hash_ids=key) for key in ("key", "key", True))
    names = [page.numbers.tables["annotators"].values["annotator"] for page in (plain, one, same, other)]
    assert names[1] == names[2]
    assert len({*names[0], *names[1], *names[3]}) == 18
    assert not re.search(r'"a[0-5]"', one.to_json())
    assert one.values == plain.values
    assert one.hashed


def test_conditions_are_checked():
    page = page_of(crowd())
    page.check([])
    page.check(["alpha<0.1", "annotations <= 359"])
    with pytest.raises(ConditionError, match=r"alpha<0.9 holds: alpha is 0\.\d+; .*>=360 holds: .* 360\.$"):
        page.check(["alpha<0.9", "tasks>60", "annotations>=360"])
    with pytest.raises(ConfigError, match=r"'alhpa'.*alpha"):
        page.check(["alhpa<0.9"])
    for wrong in ("alpha", "alpha<x", "alpha=3", "alpha<nan", "<3", "alpha<0.6 or 1"):
        with pytest.raises(ConfigError, match="is not a condition"):
            page.check([wrong])
    assert set(page.values) == set(VALUES["classification"])


def test_a_condition_on_what_is_not_defined_does_not_pass():
    annotations = Annotations.from_arrays([0, 1, 2], ["a", "b", "a"], [0, 1, 1])
    page = page_of(annotations)
    assert "cannot be measured" in page.numbers.verdict[-1]
    assert page.numbers.warnings[0].serious
    with pytest.raises(ConditionError, match="alpha is not defined"):
        page.check(["alpha<0.5"])
    page.to_html()
    page.to_json()


def test_instances_are_shown_by_name_and_none_may_be_missing(monkeypatch):
    annotations = crowd()
    names = np.arange(60)[::-1].astype(str).astype(object)
    instances = Instances(names, TEXTS, np.array([f"text {name}" for name in names], object))
    page = page_of(annotations, instances=instances)
    table = data_of(page)["tables"]["tasks"]
    for task, detail in zip(table["values"]["task"], table["details"], strict=True):
        assert detail["instance"] == {"text": f"text {task}"}
    assert table["instances"] == 60
    long = replace(instances, values=np.array(["a" * 600] * 60, object))
    monkeypatch.setattr("crowdzoo.report.page.INSTANCE_BYTES", 6200)
    assert data_of(page_of(annotations, instances=long))["tables"]["tasks"]["instances"] == 10
    with pytest.raises(DataError, match=r"1 of the 60 tasks have no instance, such as '0'"):
        page_of(annotations, instances=Instances(names[:-1], TEXTS, instances.values[:-1]))


def test_seconds_are_the_median_between_annotations():
    times = [0.0, 4, 10, 30, 5, 7, np.nan]
    annotations = Annotations.from_arrays(np.arange(7), ["a"] * 4 + ["b"] * 3, [0, 1, 0, 1, 0, 1, 0], timestamp=times)
    np.testing.assert_equal(median_seconds(annotations), [6.0, np.nan])
    # what an answer took is known better than what lay between
    took = Annotations.from_arrays(
        np.arange(7), ["a"] * 4 + ["b"] * 3, [0, 1, 0, 1, 0, 1, 0], timestamp=times, seconds=[1, 2, 3, 9, np.nan, 5, 8]
    )
    np.testing.assert_equal(median_seconds(took), [2.5, 6.5])
    assert median_seconds(Annotations.from_arrays([0], ["a"], ["x"])) is None


@pytest.mark.parametrize(("num_annotators", "finding"), [(1, "no task has two annotations"), (2, "are equal")])
def test_where_agreement_is_not_defined_the_advice_goes_with_the_reason(num_annotators, finding):
    tasks = np.tile(np.arange(6), num_annotators)
    who = np.repeat(np.arange(num_annotators), 6)
    labels = np.arange(6) % 2 if num_annotators == 1 else np.zeros(12, np.int64)
    annotations = Annotations.from_arrays(tasks, who, labels, classes=np.arange(2))
    page = report_page(annotations, MajorityVote().fit(annotations), bootstrap=0)
    (warned,) = [each for each in page.numbers.warnings if each.about == "agreement"]
    assert finding in warned.finding
    assert ("second annotator" in warned.fix) == (num_annotators == 1)


def test_an_annotator_whose_labels_say_little_about_the_class_is_noted():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    right = rng.random((5, 300)) < np.array([0.62, 0.9, 0.9, 0.9, 0.85])[:, None]
    said = np.where(right, truth, 1 - truth)
    annotations = Annotations.from_arrays(np.tile(np.arange(300), 5), np.repeat(np.arange(5), 300), said.ravel())
    page = report_page(annotations, DawidSkene().fit(annotations), bootstrap=0)
    table = page.numbers.tables["annotators"].values
    apart = said[0][truth == 1].mean() - said[0][truth == 0].mean()
    assert table["spammer_score"][0] == pytest.approx(apart**2, abs=0.02)
    assert 0.01 < apart**2 < 0.1
    assert table["notes"] == [["vague"], [], [], [], []]
    (warned,) = [each for each in page.numbers.warnings if each.link == "annotator-0"]
    assert "say little about the class" in warned.finding
    few = annotations.select_rows(np.flatnonzero((annotations.annotator_ids > 0) | (annotations.task_ids < 19)))
    page = report_page(few, DawidSkene().fit(few), bootstrap=0)
    assert "vague" not in page.numbers.tables["annotators"].values["notes"][0], "19 annotations, ten a class are needed"
