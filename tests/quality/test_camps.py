"""Two camps of annotators who contradict each other: found, not found, and what is said of them."""

import csv
import json
import re
import shlex

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import Robust
from crowdzoo.commands import main as cli
from crowdzoo.errors import DataError
from crowdzoo.kinds.quality_words import opening
from crowdzoo.quality import camps_of, quality_report
from crowdzoo.quality.camps import _Answers
from crowdzoo.quality.figures import wilson
from crowdzoo.reading.tables.annotation_files import write_annotations
from crowdzoo.report.page import report_page
from crowdzoo.report.sheets import with_sheets

NAMES = np.array(["ape", "bat", "cat", "dog", "eel"], object)
SWAPPED = [1, 0, 2, 3, 4]


def crowd(seed=0, classes=3, tasks=300, people=12, each=6, accuracy=0.85, change=None):
    """The truth, and annotators w0, w1 and so on, who are right as often; `change` changes the matrix of answers."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=tasks)
    wrong = (truth + rng.integers(1, classes, (people, tasks))) % classes
    said = np.where(rng.random((people, tasks)) < accuracy, truth, wrong)
    said = said if change is None else change(said, rng)
    who = np.argsort(rng.random((tasks, people)), axis=1)[:, :each].ravel()
    rows = np.repeat(np.arange(tasks), each)
    names = np.array([f"w{place}" for place in range(people)], object)
    return truth, Annotations.from_arrays(
        rows, names[who], NAMES[said[who, rows]], tasks=np.arange(tasks), annotators=names, classes=NAMES[:classes]
    )


def swapping(*who):
    def change(said, rng):
        said[list(who)] = np.array(SWAPPED)[said[list(who)]]
        return said

    return change


FIVE = swapping(*range(5))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_seven_against_five_who_swap_two_classes_are_two_camps(classes):
    truth, annotations = crowd(classes=classes, change=FIVE)
    found = camps_of(annotations)
    assert found.camp.tolist() == [2] * 5 + [1] * 7
    assert found.statistic > 3
    assert found.p_value < 0.002
    assert not found.copies.any()
    other = np.array(SWAPPED)[truth]
    assert (found.labels[:, 0] == truth).mean() > 0.85
    assert (found.labels[:, 1] == other).mean() > 0.8
    assert (truth != other)[found.disputed].mean() > 0.85
    surely = found.probabilities[found.disputed].min(axis=1)
    assert surely.min() >= 0.6
    assert (np.diff(surely) <= 0).all()


def test_a_task_that_a_camp_did_not_label_has_no_label_of_it():
    _, annotations = crowd(change=FIVE)
    first = annotations.task_ids == 7
    alone = annotations.select_rows(~(first & (annotations.annotator_ids < 5)))
    found = camps_of(alone)
    assert found.labels[7, 1] == -1
    assert np.isnan(found.probabilities[7, 1])
    assert 7 not in found.disputed


def test_another_threshold_is_a_camp_and_thresholds_that_differ_by_degrees_are_none():
    def limits(shifts):
        def change(said, rng):
            place = rng.normal(size=said.shape[1])
            noise = rng.normal(0, 0.35, said.shape)
            return (place + shifts(rng, len(said))[:, None] + noise > 0).astype(int)

        return change

    for seed in range(3):
        two = limits(lambda rng, people: np.where(np.arange(people) < 5, 0.8, 0.0))
        assert camps_of(crowd(seed, classes=2, change=two)[1]).camp.tolist() == [2] * 5 + [1] * 7
        many = limits(lambda rng, people: np.linspace(-0.8, 0.8, people))
        assert camps_of(crowd(seed, classes=2, change=many)[1]) is None


def at_random(*who):
    def change(said, rng):
        said[list(who)] = rng.integers(0, said.max() + 1, (len(who), said.shape[1]))
        return said

    return change


def copying(*who, source, change=None):
    def copied(said, rng):
        said = said if change is None else change(said, rng)
        said[list(who)] = np.where(rng.random((len(who), said.shape[1])) < 0.95, said[source], said[list(who)])
        return said

    return copied


def hard(said, rng):
    """On three tasks in ten everybody guesses between two classes."""
    guessed = rng.random(said.shape[1]) < 0.3
    said[:, guessed] = rng.integers(0, 2, (len(said), guessed.sum()))
    return said


@pytest.mark.parametrize(
    "change",
    [
        None,
        hard,
        swapping(3),
        swapping(3, 8),
        at_random(1, 4, 9),
        copying(4, 5, source=9),
        copying(0, 1, source=2, change=at_random(2)),  # three with one source, who agree with nobody else
    ],
    ids=["honest", "hard tasks", "a swapper", "two swappers", "spammers", "copies", "bots of one source"],
)
@pytest.mark.parametrize("classes", [2, 4])
def test_who_errs_by_himself_or_copies_is_no_camp(change, classes):
    for seed in range(3):
        assert camps_of(crowd(seed, classes=classes, tasks=200, change=change)[1]) is None


def test_copies_in_a_camp_are_told_and_belong_to_it():
    _, annotations = crowd(tasks=400, people=14, each=8, change=copying(10, source=9, change=FIVE))
    found = camps_of(annotations)
    assert found.camp.tolist() == [2] * 5 + [1] * 9
    assert np.flatnonzero(found.copies).tolist() == [9, 10]


def test_rules_that_give_one_class_each_are_no_camps():
    truth = np.random.default_rng(0).integers(2, size=300)
    said = np.where(np.arange(10)[:, None] % 2 == truth, truth, -1)
    who, tasks = np.nonzero(said >= 0)
    assert camps_of(Annotations.from_arrays(tasks, who, said[who, tasks])) is None


def test_an_answer_is_compared_with_one_of_each_side():
    rng = np.random.default_rng(0)
    labels, side = rng.integers(0, 3, (6, 5)), np.array([1, -1, 1, 0, -1, 1])
    tasks, who = np.nonzero(rng.random((5, 6)) < 0.8)
    answers = _Answers(tasks, who, tasks * 3 + labels[who, tasks], (5, 6, 15))
    wins, decisive = answers.compare(side)
    for row, (task, one) in enumerate(zip(tasks, who, strict=True)):
        others = [other for other in who[tasks == task] if other != one]
        equal = {each: [labels[other, task] == labels[one, task] for other in others if side[other] == each]
                 for each in (1, -1)}  # fmt: skip
        pairs = [(mine, theirs) for mine in equal[1] for theirs in equal[-1]]
        first = np.mean([mine and not theirs for mine, theirs in pairs]) if pairs else 0
        second = np.mean([theirs and not mine for mine, theirs in pairs]) if pairs else 0
        assert (wins[row], decisive[row]) == pytest.approx((first - second, first + second))


@pytest.mark.parametrize("rows", [0, 1, 40])
def test_few_answers_say_nothing(rows):
    assert camps_of(crowd()[1].select_rows(np.arange(rows))) is None


def test_of_many_answers_tasks_are_drawn_and_everybody_gets_a_side():
    """At most 50,000 answers and 1,000 annotators are compared."""
    _, annotations = crowd(tasks=9000, people=1010, change=swapping(*range(400)))
    assert camps_of(annotations).camp.tolist() == [2] * 400 + [1] * 610


def test_camps_are_of_classes_with_one_label_each():
    with pytest.raises(DataError, match="camps_of"):
        camps_of(Annotations.from_dense(np.ones((3, 3)), kind="regression"))


def test_a_report_accuses_no_member_of_a_camp():
    for accuracy in (0.85, 1.0):  # members who never err agree like copies
        _, annotations = crowd(change=FIVE, accuracy=accuracy)
        report = quality_report(annotations, Robust().fit(annotations), bootstrap=0)
        assert set(report.annotators["notes"].to_pylist()) == {""}
        assert set(report.annotators["exchanges"].to_pylist()) == set(report.annotators["copies"].to_pylist()) == {None}
        assert report.annotators["camp"].to_pylist() == [2] * 5 + [1] * 7


def test_who_answers_at_random_is_named_beside_camps_and_belongs_to_none():
    def change(said, rng):
        return at_random(11)(FIVE(said, rng), rng)

    _, annotations = crowd(change=change)
    annotators = quality_report(annotations, Robust().fit(annotations), bootstrap=0).annotators
    assert annotators["camp"].to_pylist() == [2] * 5 + [1] * 6 + [None]
    assert [notes != "" for notes in annotators["notes"].to_pylist()] == [False] * 11 + [True]


def page_of(annotations, **options):
    return report_page(annotations, Robust().fit(annotations), bootstrap=0, curve=0, **options)


def test_the_page_shows_both_answers_and_says_that_labels_cannot_tell():
    page = page_of(crowd(change=FIVE)[1])
    (warned,) = [each for each in page.numbers.warnings if each.key == "camps"]
    assert warned.serious
    content = json.loads(page.to_json())
    assert any("two camps of annotators contradict each other" in sentence for sentence in page.numbers.verdict)
    assert not any("look similar" in sentence for sentence in page.numbers.verdict)
    values = content["tables"]["camps"]["values"]
    said = list(zip(values["camp_1"], values["camp_2"], strict=True))
    for one, other in (("ape", "bat"), ("bat", "ape")):
        assert f"5 say {other} where 7 say {one}, on {said.count((one, other))} tasks" in warned.finding
    assert "cannot tell which camp is right" in warned.fix
    assert content["summary"]["camps_p_value"] < 0.01
    assert content["tables"]["annotators"]["values"]["camp"] == [2] * 5 + [1] * 7
    assert not [each for each in content["warnings"] if each["key"] in ("exchange", "against", "random", "copy")]
    assert content["leave_out"] is None
    shown = [column["key"] for column in content["tables"]["annotators"]["columns"]]
    assert "camp" in shown
    assert "reliability" not in shown  # would judge one camp by the other


@pytest.mark.parametrize(
    ("number", "verdict"),
    [
        (40, "it supports camp 2."),
        (1, "that does not tell which is right: label more of them."),
        (0, "these yourself."),
    ],
)
def test_gold_says_which_camp_it_supports(number, verdict):
    truth, annotations = crowd(change=FIVE)
    right, result = np.array(SWAPPED)[truth], Robust().fit(annotations)  # the five are right
    report = quality_report(annotations, result, bootstrap=0)
    rows = {int(row["task"]): row["camp_2"] for row in report.camps.to_pylist()}
    gold, tasks = np.full(300, -1), list(rows)[:number]
    agreed = min(set(range(300)) - set(rows))  # the camps give the same label
    gold[[agreed, *tasks]] = right[[agreed, *tasks]]
    overall = with_sheets(report, annotations, result, gold=gold).overall
    assert overall["camp_gold_tasks"] == number
    if number:
        share = np.mean([rows[task] == NAMES[right[task]] for task in tasks])
        assert overall["camp_2_gold"] == pytest.approx(share, abs=1e-4)
        assert overall["camp_2_gold_low"] == pytest.approx(wilson(share, number)[0], abs=1e-4)
    sentences = page_of(annotations, gold=gold).numbers.verdict
    assert sentences[2].endswith(verdict)
    assert [sentences[0], sentences[2]] == opening(overall)


def test_a_page_without_camps_says_nothing_of_them():
    text = page_of(crowd()[1]).to_json()
    assert "camp" not in text


def test_a_page_with_hashed_names_offers_no_option():
    (warned,) = [
        each for each in page_of(crowd(change=FIVE)[1], hash_ids="key").numbers.warnings if each.key == "camps"
    ]
    assert "--exclude" not in warned.fix


@pytest.fixture
def answers(tmp_path):
    truth, annotations = crowd(change=FIVE)
    write_annotations(annotations, tmp_path / "answers.csv")
    return np.array(SWAPPED)[truth], tmp_path / "answers.csv"  # the five are right


def accuracy_of(path, truth, rows=None):
    with open(path, encoding="utf-8", newline="") as file:
        labels = {int(row["task"]): row["label"] for row in csv.DictReader(file)}
    return np.mean([labels.get(task) == NAMES[truth[task]] for task in (range(len(truth)) if rows is None else rows)])


def test_the_advice_can_be_pasted_and_labels_become_right(answers, tmp_path, capsys):
    truth, path = answers
    out = tmp_path / "labels.csv"
    assert (
        cli.main(["quality", str(path), "--bootstrap", "0", "--out", str(tmp_path / "tables"), "--format", "csv"]) == 0
    )
    said = capsys.readouterr().out
    assert "tasks on which the camps differ" in said
    with open(tmp_path / "tables" / "camps.csv", encoding="utf-8", newline="") as file:
        assert next(csv.DictReader(file)).keys() == {"task", "camp_1", "camp_2", "probability"}

    assert cli.main(["aggregate", str(path), "--out", str(out)]) == 0
    assert accuracy_of(out, truth) < 0.5
    options = re.findall(r"--exclude \S+(?= or|\.)", said)
    assert [set(shlex.split(each)[1].split(",")) for each in options] == [
        {f"w{place}" for place in range(5, 12)},
        {f"w{place}" for place in range(5)},
    ]
    assert cli.main(["aggregate", str(path), "--out", str(out), "--force", *shlex.split(options[0])]) == 0
    assert accuracy_of(out, truth) > 0.85

    known = np.random.default_rng(0).permutation(len(truth))[:30]
    gold = tmp_path / "gold.csv"
    gold.write_text("task,gold\n" + "".join(f"{task},{NAMES[truth[task]]}\n" for task in known), encoding="utf-8")
    drawn, corrected = re.search(r"\((crowdzoo next .*?), then (crowdzoo aggregate .*?)\)", said).groups()
    assert (
        cli.main(shlex.split(drawn.replace("ANSWERS", str(path)).replace("gold.csv", str(tmp_path / "some.csv")))[1:])
        == 0
    )
    command = corrected.replace("ANSWERS", str(path)).replace("gold.csv", str(gold)).replace("labels", str(out))
    assert cli.main([*shlex.split(command)[1:], "--force"]) == 0
    assert accuracy_of(out, truth, [task for task in range(len(truth)) if task not in known]) > 0.85


def test_models_that_are_named_are_no_camp_against_people():
    _, annotations = crowd(change=FIVE)
    report = quality_report(
        annotations, Robust().fit(annotations), bootstrap=0, models=[f"w{place}" for place in range(5)]
    )
    assert report.camps is None
    assert "camp" not in report.annotators.column_names
