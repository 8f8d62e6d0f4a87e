"""How many labels are correct in real crowds that look similar, and what the first sentences say of it."""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from csv_files import read_csv, write_csv

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, MajorityVote, Robust
from crowdzoo.errors import DataError
from crowdzoo.kinds.quality_words import opening
from crowdzoo.quality import expected_accuracy, quality_report, settlement
from crowdzoo.quality.comparable_crowds import HALF, POWER, SHIFT
from crowdzoo.quality.settled import SHARE_ENDS
from crowdzoo.report.page import report_page

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import expected_accuracy as benchmark
import real_crowds


def crowd(tasks=30, classes=3, seed=0):
    """Four annotators of all tasks, who are correct with probability .8."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=tasks)
    wrong = (truth + rng.integers(1, max(classes, 2), size=(4, tasks))) % classes
    labels = np.where(rng.random((4, tasks)) < 0.8, truth, wrong)
    rows = np.tile(np.arange(tasks), 4), np.repeat(np.arange(4), tasks)
    return truth, Annotations.from_arrays(*rows, labels.ravel(), classes=range(classes))


def test_the_value_and_its_ends_follow_from_the_mean_probability():
    _, annotations = crowd()
    labels = DawidSkene().fit(annotations).labels
    labels[:3] = (labels[:3] + 1) % 3
    found = expected_accuracy(annotations, labels, np.tile([0.7, 0.9], 15))
    # p = .8, p (1 - p) = .16, its root .4, log(.8 / .2) = 1.3863; 27 of 30 labels are those of Dawid and Skene; four
    # answers per task; and of thirty tasks 1.645 standard errors are .3003 of the root
    value = 0.8 + 0.16 * (SHIFT[0] + 0.9 * SHIFT[1] + 1.3863 * SHIFT[2])
    half = 0.4 * np.hypot(HALF * 4**POWER, 0.3003)
    np.testing.assert_allclose(found, np.clip([value, value - half, value + half], 0, 1), rtol=1e-4)
    assert expected_accuracy(annotations, labels, np.ones(30)) == pytest.approx(
        (1, 1 - np.sqrt(0.03) * np.hypot(HALF * 4**POWER, 0.3003), 1), rel=1e-4
    )
    for wrong in (np.ones((30, 2)), np.ones(29)):
        with pytest.raises(DataError, match="probability must have one value"):
            expected_accuracy(annotations, labels, wrong)


def test_of_labels_by_another_method_the_default_says_how_probable_they_are():
    _, annotations = crowd(seed=1)
    base = Robust().fit(annotations)
    rows, labels = np.arange(30), MajorityVote().fit(annotations)
    found = settlement(annotations, labels)
    np.testing.assert_allclose(found.probability, base.posteriors[rows, labels.labels])
    others = replace(base, labels=(base.labels + 1) % 3)
    assert expected_accuracy(annotations, others.labels, settlement(annotations, others).probability)[0] < 0.3


@pytest.mark.parametrize(("tasks", "classes"), [(19, 3), (30, 1)])
def test_nothing_is_said_of_few_tasks_or_of_one_class(tasks, classes):
    _, annotations = crowd(tasks, classes)
    assert expected_accuracy(annotations, np.zeros(tasks, np.int64), np.full(tasks, 0.8)) is None


def test_the_constants_are_those_that_the_measured_crowds_give_and_no_unseen_family_is_among_them():
    rows = json.loads(benchmark.RESULTS.read_text())["measures"]
    unseen = {family for family, _ in real_crowds.UNSEEN}
    shift, half = benchmark.fit(benchmark.Crowds.of([row for row in rows if row["family"] not in unseen]))
    assert (tuple(shift.round(3).tolist()), round(half, 3), benchmark.POWER) == (SHIFT, HALF, POWER)
    assert tuple(benchmark.settled_ends()[0].round(3).tolist()) == SHARE_ENDS


def test_intervals_for_a_family_do_not_depend_on_its_own_accuracy():
    rows = json.loads(benchmark.RESULTS.read_text())["measures"][:12]
    changed = [*rows]
    own = {**rows[0]["methods"]["robust"], "right": 0}
    changed[0] = {**rows[0], "methods": {"robust": own}}
    found = [benchmark.by_others(benchmark.Crowds.of(each)) for each in (rows, changed)]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9, atol=1e-12)
    assert (found[0][1:] != found[1][1:]).any()


OVERALL = {
    "settled": 0.96, "settled_low": 0.94, "settled_high": 0.97, "tasks": 60, "tasks_without_annotations": 20,
    "expected_accuracy": 0.88, "expected_accuracy_low": 0.78, "expected_accuracy_high": 0.95, "agreement": 0.8,
    "annotators": 5, "tasks_to_ask": 33, "answers_to_ask": 70,
}  # fmt: skip


MEASURED = {
    "aggregate_accuracy": 0.9, "aggregate_accuracy_low": 0.71, "aggregate_accuracy_high": 0.97, "gold_tasks": 20,
}  # fmt: skip
_, SETTLED, ADVICE = opening(OVERALL)


@pytest.mark.parametrize(
    ("changes", "place", "parts"),
    [
        (
            {},
            0,
            ["Probably usable with care: about 88 %", "(78 to 95 % in nine of ten similar real", "more are correct."],
        ),
        ({}, 1, ["96 % of the labels are settled (94 to 97 %)", "About 70 (63 to 126) further answers on 33 tasks"]),
        ({}, 2, ["label 40 tasks yourself, drawn at random"]),
        ({"tasks_to_ask": 0}, 1, ["No further answer is worth its cost"]),
        ({"camps_statistic": 9.0}, 0, ["Not usable yet: two camps of annotators contradict each other."]),
        ({"agreement": 1}, 0, ["copies of one source. If they are independent, about 88 %"]),
        ({"annotators": 1}, 0, ["from one annotator"]),
        ({"settled": None}, 1, ["is not estimated"]),
        ({"expected_accuracy": None}, 0, ["Not known whether usable: answers alone do not tell"]),
        (MEASURED, 0, ["Usable: 90 % of the labels are correct (71 to 97 %), as", "measured on 20 tasks with gold."]),
    ],
)
def test_the_first_sentences_say_what_is_usual_what_is_settled_and_how_to_measure(changes, place, parts):
    sentence = opening(OVERALL | changes)[place]
    for part in parts:
        assert part in sentence


def test_a_sentence_stands_where_its_numbers_are_known():
    assert opening(OVERALL, "a.csv")[1].endswith("next a.csv --out batch.csv` chooses the first of them.")
    assert "settled" not in " ".join(opening(OVERALL | {"camps_statistic": 9.0}, "a.csv"))
    assert opening(OVERALL | {"expected_accuracy": None})[1:] == [SETTLED, ADVICE]
    assert opening(OVERALL | MEASURED)[1:] == [SETTLED]


@pytest.mark.parametrize(
    ("share", "level"), [(0.9, "Usable: "), (0.899, "Usable with care: "), (0.749, "Not usable yet: ")]
)
def test_the_first_words_say_what_the_share_of_correct_labels_is_enough_for(share, level):
    overall = {**OVERALL, "aggregate_accuracy": share, "aggregate_accuracy_low": 0.1, "aggregate_accuracy_high": 1}
    assert opening({**overall, "gold_tasks": 9})[0].startswith(level)
    assert opening({**OVERALL, "expected_accuracy": share})[0].startswith(f"Probably {level.lower()}")


def test_page_and_report_have_the_sentences_and_their_numbers_and_gold_takes_the_place_of_other_crowds(monkeypatch):
    truth, annotations = crowd()
    result = Robust().fit(annotations)
    overall = quality_report(annotations, result, bootstrap=0).overall
    page = report_page(annotations, result, bootstrap=0, source="a.csv")
    written = json.loads(page.to_json())
    assert written["verdict"][:3] == opening(overall, "a.csv")
    for name in ("settled", "expected_accuracy"):
        for end in ("", "_low", "_high"):
            assert written["summary"][name + end] == written["values"][name + end] == round(overall[name + end], 4)
    monkeypatch.setattr("crowdzoo.quality.settled.MOST_CELLS", 10)
    large = quality_report(annotations, result, bootstrap=0).overall
    assert opening(large, "a.csv")[::2] == opening(overall, "a.csv")[::2]
    assert opening(large)[1].endswith("would change is not estimated for so many answers.")
    assert (
        quality_report(annotations, MajorityVote().fit(annotations), bootstrap=0).overall["expected_accuracy"] is None
    )
    page.check([f"expected_accuracy_low<{overall['expected_accuracy_low'] - 0.01}"])
    measured = report_page(annotations, result, bootstrap=0, gold=truth).numbers.verdict[0]
    assert f": {100 * (result.labels == truth).mean():.0f} % of the labels are correct (" in measured
    assert measured.endswith("as measured on 30 tasks with gold.")
    unknown = report_page(annotations, result, bootstrap=0, gold=np.full(30, -1)).numbers.verdict[0]
    assert unknown == written["verdict"][0]


@pytest.fixture
def files(tmp_path, here):
    truth, annotations = crowd()
    rows = [[f"t{task}", f"ann {who}", f"c{label}", ""] for task, who, label in zip(
        annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True)]  # fmt: skip
    write_csv("my answers.csv", ["item", "worker", "label", "note"], *rows)
    write_csv("gold.csv", ["task", "gold"], *([f"t{task}", f"c{truth[task]}"] for task in range(25)))
    return tmp_path


COLUMNS = ("--columns", "task=item,annotator=worker,label=label", "--exclude", "ann 3")


@pytest.mark.filterwarnings("ignore")
def test_quality_and_report_print_the_sentences_first_with_the_options_of_reading(files, capsys):
    assert run("quality", "my answers.csv", *COLUMNS, "--bootstrap", 0) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " % of the labels are settled (" in lines[1]
    assert run(*shlex.split(lines[1].split("`")[1])[1:], "--budget", 5) == 0
    assert "questions" in capsys.readouterr().out
    command = shlex.split(lines[2].split("`")[1])
    assert command[:7] == ["crowdzoo", "next", "my answers.csv", *COLUMNS[2:], *COLUMNS[:2]]
    assert command[7:] == ["--gold-sample", "30", "--out", "gold.csv"]
    assert run("report", "my answers.csv", *COLUMNS, "--out", "r.html", "--bootstrap", 0) == 0
    assert capsys.readouterr().out.splitlines()[:3] == lines[:3]
    assert run("quality", "my answers.csv", *COLUMNS, "--bootstrap", 0, "--gold", "gold.csv") == 0
    assert "of the labels are correct (" in capsys.readouterr().out.splitlines()[0]
    assert run("quality", "my answers.csv", *COLUMNS, "--bootstrap", 0, "--method", "none") == 0
    assert "settled" not in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_the_command_that_is_advised_draws_the_sample(files, capsys):
    assert run("quality", "my answers.csv", *COLUMNS, "--bootstrap", 0) == 0
    command = shlex.split(capsys.readouterr().out.splitlines()[2].split("`")[1])
    (files / "gold.csv").unlink()
    assert run(*command[1:]) == 0
    assert len(read_csv("gold.csv")) == 30


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["--use-gold", "--calibrate"])
def test_labels_that_gold_fixed_are_settled_in_the_result(files, how):
    assert run("aggregate", "my answers.csv", *COLUMNS, "--gold", "gold.csv", how, "--out", "labels.csv") == 0
    rows = {row["task"]: row for row in read_csv("labels.csv")}
    for row in read_csv("gold.csv"):
        assert (float(rows[row["task"]]["settled"]), rows[row["task"]]["answers_to_settle"]) == (1, "0")
    assert float(rows["t27"]["settled"]) < 1
