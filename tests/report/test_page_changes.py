"""What a report says of changes since an earlier one."""

import json
from dataclasses import replace

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, RatingEM
from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError
from crowdzoo.report.page import report_page
from crowdzoo.report.page_changes import _moves, read_numbers


def crowd(skills, num_tasks=120, seed=0, first=0):
    """Tasks of three classes; one annotator a skill, who labels each of them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num_tasks)
    said = np.where(rng.random((len(skills), num_tasks)) < np.array(list(skills.values()))[:, None], truth, 0)
    who = np.repeat([*skills], num_tasks)
    tasks = np.tile([f"t{first + task}" for task in range(num_tasks)], len(skills))
    return Annotations.from_arrays(tasks, who, np.array(["ape", "bat", "cat"], object)[said.ravel()])


def page_of(annotations, **settings):
    return report_page(annotations, DawidSkene().fit(annotations), bootstrap=0, **settings)


SKILLS = {"ann": 0.95, "bob": 0.95, "cy": 0.9, "dee": 0.9}


@pytest.fixture
def before(tmp_path):
    page_of(crowd(SKILLS), title="monday").write(tmp_path / "monday.html")
    return tmp_path / "monday.json"


def test_the_same_annotations_have_no_changes(before):
    found = page_of(crowd(SKILLS), before=read_numbers(before)).changes
    assert found == {
        "title": "monday", "method": "dawid-skene", "values": [], "new": [], "gone": [], "options": [],
        "annotators": {"added": 0, "gone": 0, "both": 4, "moved": 0, "listed": []},
        "tasks": {"added": 0, "gone": 0, "both": 120, "changed": 0, "listed": []},
    }  # fmt: skip


def test_annotators_who_became_worse_tasks_with_another_label_and_warnings_are_listed(before):
    now = crowd({**SKILLS, "dee": 0.1} | {"eve": 0.9}, first=20)
    page = page_of(now, before=read_numbers(before))
    found, earlier = page.changes, json.loads(before.read_text())
    assert found["tasks"]["added"] == found["tasks"]["gone"] == 20
    assert found["tasks"]["both"] == 100
    assert (found["annotators"]["added"], found["annotators"]["gone"]) == (1, 0)
    ((name, reliable, unreliable),) = found["annotators"]["listed"]
    assert name == "dee"
    assert reliable > 0.8 > 0.6 > unreliable
    table, values = earlier["tables"]["tasks"]["values"], page.numbers.tables["tasks"].values
    then = dict(zip(table["task"], table["label"], strict=True))
    labels = dict(zip(values["task"], values["label"], strict=True))
    different = [[task, then[task], labels[task]] for task in then if task in labels and then[task] != labels[task]]
    assert found["tasks"]["changed"] == len(different) > 10
    assert found["tasks"]["listed"] == different[:10]
    assert any("dee" in warned for warned in found["new"])
    changed = {name: (old, new) for name, old, new in found["values"]}
    assert changed["annotators"] == (4, 5)
    assert changed["alpha"][0] == earlier["values"]["alpha"] > changed["alpha"][1]
    assert "annotators_gone" not in changed
    assert json.loads(page.to_json())["changes"] == found
    back = page_of(crowd(SKILLS), before=json.loads(page.to_json())).changes
    assert back["gone"] == found["new"]


def test_a_note_is_new_or_gone_for_those_who_have_it_in_one_report_alone(tmp_path):
    page_of(crowd(SKILLS | {"x": 0, "y": 0, "z": 0.9})).write(tmp_path / "then.html")
    then = read_numbers(tmp_path / "then.json")
    assert "same" in {each["key"] for each in then["warnings"]}
    more = page_of(crowd(SKILLS | {"x": 0, "y": 0, "z": 0.9}, num_tasks=150), before=then).changes
    assert (more["new"], more["gone"]) == ([], [])  # the same people, of another share of the annotations
    other = page_of(crowd(SKILLS | {"x": 0, "y": 0.9, "z": 0}), before=then).changes
    assert [each for each in other["new"] if "same answer nearly" in each] == [
        "z: gives the same answer nearly always, whatever others say"
    ]
    assert [each.partition(":")[0] for each in other["gone"] if "same answer nearly" in each] == ["y"]


def test_who_moved_is_who_left_the_interval_of_the_difference():
    """Intervals of .1 to each side: the difference has one of .141."""
    then, now = ({"r": values, "r_low": np.subtract(values, 0.1).tolist(), "r_high": np.add(values, 0.1).tolist()}
                 for values in ([0.5, 0.5, 0.5], [0.63, 0.36, 0.65]))  # fmt: skip
    places = {"a": 0, "b": 1, "c": 2}
    assert [name for name, *_ in _moves("r", then, now, places, places)] == ["c"]
    assert _moves("r", then, {**now, "r": [0.63, 0.35, 0.66]}, places, places) == [["c", 0.5, 0.66], ["b", 0.5, 0.35]]


def test_an_annotator_who_answers_one_class_half_of_the_time_has_moved(before):
    crowded = crowd(SKILLS)
    labels = crowded.labels.copy()
    labels[np.flatnonzero(crowded.annotator_ids == 3)[:30]] = 1
    found = page_of(replace(crowded, labels=labels), before=read_numbers(before)).changes["annotators"]
    ((name, reliable, unreliable),) = found["listed"]
    assert name == "dee"
    assert 0.1 < reliable - unreliable < 0.25  # so that the two intervals overlap


def test_of_ratings_the_estimates_that_moved_most_are_listed(tmp_path):
    rng = np.random.default_rng(0)
    ratings = rng.normal(5, 2, (60, 1)) + rng.normal(0, 0.5, (60, 4))

    def page(dense, **settings):
        annotations = Annotations.from_dense(dense, kind="regression")
        return report_page(annotations, RatingEM().fit(annotations), bootstrap=0, **settings)

    page(ratings).write(tmp_path / "before.html")
    ratings[7] += 3
    ratings[9] -= 2
    found = page(ratings, before=read_numbers(tmp_path / "before.json")).changes
    assert [each[0] for each in found["tasks"]["listed"][:2]] == ["7", "9"]
    assert found["tasks"]["changed"] is None
    assert found["annotators"] == {"added": 0, "gone": 0, "both": 4, "moved": 0, "listed": []}
    assert found["tasks"]["listed"][0][2] - found["tasks"]["listed"][0][1] == pytest.approx(3, abs=0.5)


def test_reports_that_cannot_be_compared_are_refused(before, write):
    earlier = read_numbers(before)
    with pytest.raises(DataError, match="no annotator is in both reports"):
        page_of(crowd({"zoe": 0.9, "yan": 0.9}), before=earlier)
    with pytest.raises(DataError, match="is of kind 'regression', this one of 'classification'"):
        page_of(crowd(SKILLS), before={**earlier, "kind": "regression"})
    for damage in ({"tables": 3}, {"values": None}, {"warnings": [{}]}, {"tables": {"annotators": {"values": {}}}}):
        with pytest.raises(DataError, match="The earlier report is damaged"):
            page_of(crowd(SKILLS), before={**earlier, **damage})
    for text, message in (
        ("[]", "is not a report"),
        ('{"format": "crowdzoo-report", "format_version": 9}', "format 9"),
    ):
        with pytest.raises(DataError, match=message):
            read_numbers(write("odd.json", text))


def test_the_command_writes_the_changes(before, tmp_path, capsys, refusal_of):
    answers = crowd(SKILLS)
    rows = zip(answers.task_ids, answers.annotator_ids, answers.labels, strict=True)
    lines = [f"t{task},{answers.annotators[who]},{answers.classes[label]}" for task, who, label in rows]
    (tmp_path / "a.csv").write_text("\n".join(["task,annotator,label", *lines]) + "\n")
    words = ["report", tmp_path / "a.csv", "--out", tmp_path / "today.html", "--before", before, "--bootstrap", 0]
    assert cli.main([str(word) for word in words]) == 0
    assert json.loads((tmp_path / "today.json").read_text())["changes"]["title"] == "monday"
    assert '"changes":{"title":"monday"' in (tmp_path / "today.html").read_text()
    words[3:6] = [tmp_path / "later.html", "--before", tmp_path / "today.json"]
    capsys.readouterr()
    assert cli.main([str(word) for word in [*words, "--exclude", "dee"]]) == 0
    assert json.loads((tmp_path / "later.json").read_text())["changes"]["options"] == [["exclude", None, "dee"]]
    assert "--exclude differs from the earlier report." in capsys.readouterr().out
    words[3] = tmp_path / "hashed.html"
    assert cli.main([str(word) for word in [*words[:4], "--exclude", "dee", "--hash-ids", "--bootstrap", 0]]) == 0
    assert json.loads((tmp_path / "hashed.json").read_text())["options"]["exclude"] == "given"
    assert "nowhere.json" in refusal_of(*words[:5], tmp_path / "nowhere.json", code=3)
