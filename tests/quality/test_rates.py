"""`rate`: a mean or a pass rate from few labels of people and many of judges."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import Ridge

from crowdzoo import Annotations, ConfigError, DataError
from crowdzoo.commands import main as cli
from crowdzoo.quality import rate
from crowdzoo.quality.rates import PENALTIES, UNTOLD


def judged(people, judges, **more):
    """Annotator 0 is a person, who labels the first tasks; 1 and so on are judges of all tasks."""
    labels = np.full((len(judges), judges.shape[1] + 1), -1)
    labels[: len(people), 0] = people
    labels[:, 1:] = judges
    return Annotations.from_dense(labels, **more)


def crowd(size, right=(0.9, 0.8, 0.7), tasks=400, true=0.6, seed=0):
    """0 or 1 for each task, people's labels of some, and those of judges."""
    rng = np.random.default_rng(seed)
    truth = rng.random(tasks) < true
    judges = np.stack([np.where(rng.random(tasks) < each, truth, ~truth) for each in right], axis=1)
    return judged(truth[:size], judges, classes=[0, 1])


def test_people_alone_have_clopper_and_pearsons_interval():
    for yes, size in ((7, 29), (0, 20), (20, 20), (40, 60)):
        table = judged(np.arange(size) < yes, np.zeros((100, 1)), classes=[0, 1])
        found = rate(table, [0], passes=[1])
        exact = binomtest(yes, size).proportion_ci(0.95)
        assert found.people == pytest.approx((yes / size, exact.low, exact.high))
        assert (found.value, found.low, found.high) == pytest.approx(found.people)  # a judge who always says no
        assert (found.num_judges, found.worth, found.num_labelled, found.num_tasks) == (0, size, size, 100)


def test_judges_count_from_thirty_labels_of_people():
    assert rate(crowd(29), [0], passes=[1]).num_judges == 0
    found = rate(crowd(30), [0], passes=[1])
    assert found.num_judges == 3
    assert found.high - found.low < found.people.high - found.people.low
    assert found.worth > 30


def test_judges_count_where_people_see_five_tasks_that_pass_and_five_that_do_not():
    tasks = np.arange(200)
    judges = np.where(tasks % 10 == 0, tasks % 20 == 0, tasks < 40)[:, None]  # wrong about one task in ten
    for passed, number in ((4, 0), (5, 1), (35, 1), (36, 0)):
        table = judged(
            np.arange(40) < passed, judges ^ (tasks[:, None] < 40) ^ (tasks[:, None] < passed), classes=[0, 1]
        )
        assert rate(table, [0], passes=[1]).num_judges == number


def test_the_estimate_is_that_of_the_ridge_regression_with_the_least_errors_left_out():
    """By scikit-learn, which fits each penalty once for every task that is left out."""
    table, size, total = crowd(40), 40, 400
    dense = table.to_dense()
    labels, judges = dense[:size, 0].astype(float), dense[:, 1:].astype(float)
    judges = (judges - judges.mean(axis=0)) / judges.std(axis=0)

    def model(penalty, rows):
        return Ridge(alpha=penalty).fit(judges[:size][rows], labels[rows])

    everyone, errors = np.arange(size), {}
    for penalty in PENALTIES * size:
        left_out = [labels[task] - model(penalty, everyone != task).predict(judges[[task]])[0] for task in everyone]
        errors[penalty] = np.mean(np.square(left_out)) * (1 - 1 / size) ** 2
    penalty = min(errors, key=errors.get)
    chosen = model(penalty, everyone)
    value = labels.mean() + chosen.predict(judges).mean() - chosen.predict(judges[:size]).mean()
    found = rate(table, [0], passes=[1])
    assert found.value == pytest.approx(value, abs=1e-9)
    rest = errors[penalty] + (labels.var() - errors[penalty]) * UNTOLD / size
    assert found.worth == pytest.approx(size * labels.var() / rest)
    variance = rest * (1 / size - 1 / total) + labels.var() / total
    number = value * (1 - value) / variance
    nearest = binomtest(round(value * number), round(number)).proportion_ci(0.95)
    assert (found.low, found.high) == pytest.approx((nearest.low, nearest.high), abs=0.01)


@pytest.mark.parametrize("sort", ["good", "useless", "alike"])
def test_the_interval_holds_the_truth(sort):
    """100 crowds, of which the interval is to hold 95: fewer than 89 have a probability of .004."""
    held, narrower = 0, 0
    for seed in range(100):
        right = {"good": (0.85,) * 5, "useless": (0.5,) * 5, "alike": (0.85,)}[sort]
        table = crowd(30, right, seed=seed)
        if sort == "alike":
            table = judged(table.to_dense()[:30, 0], np.repeat(table.to_dense()[:, 1:], 5, axis=1), classes=[0, 1])
        found = rate(table, [0], passes=[1])
        held += found.low <= 0.6 <= found.high
        narrower += found.high - found.low < 0.9 * (found.people.high - found.people.low)
    assert held >= 89
    assert narrower > 80 if sort != "useless" else narrower < 20


def test_means_of_grades_and_ratings():
    rng = np.random.default_rng(1)
    grades = rng.integers(0, 4, 300)
    judges = np.clip(grades[:, None] + rng.integers(-1, 2, (300, 3)), 0, 3)
    table = judged(grades[:50], judges, classes=[0, 1, 2, 3])
    found = rate(table, judges=[1, 2, 3])
    ratings = judged(grades[:50], judges).to_dense().astype(float)
    same = rate(Annotations.from_dense(np.where(ratings < 0, np.nan, ratings), kind="regression"), [0])
    assert (found.value, found.low, found.high) == pytest.approx((same.value, same.low, same.high))
    assert found.low < grades.mean() < found.high
    assert found.people.value == pytest.approx(grades[:50].mean())
    passed = rate(table, [0], passes=[2, 3])
    assert passed.people.value == pytest.approx((grades[:50] >= 2).mean())
    assert passed.num_judges == 3


def test_of_exactly_these_tasks_less_is_unknown():
    table = crowd(200)
    of_these, of_all = rate(table, [0], passes=[1], these_tasks=True), rate(table, [0], passes=[1])
    assert of_these.value == of_all.value
    assert of_all.low < of_these.low < of_these.high < of_all.high
    complete = rate(crowd(400), [0], passes=[1], these_tasks=True)
    assert complete.low == complete.value == complete.high
    assert complete.value == pytest.approx(crowd(400).to_dense()[:, 0].mean())


def test_a_missing_label_of_a_judge_is_the_judges_mean_and_several_people_are_averaged():
    table = crowd(60)
    dense = table.to_dense()
    gaps = np.where((np.arange(400) % 20 == 3)[:, None] & (np.arange(4) == 1), -1, dense)
    filled = gaps.astype(float)
    filled[filled < 0] = np.nan
    filled[np.isnan(filled[:, 1]), 1] = np.nanmean(filled[:, 1])
    by_hand = rate(Annotations.from_dense(filled, kind="regression"), [0])
    found = rate(Annotations.from_dense(gaps, classes=[0, 1]), [0], passes=[1])
    assert (found.value, found.low) == pytest.approx((by_hand.value, by_hand.low))
    two = np.column_stack([dense, dense[:, 0]])
    two[:10, 4] = 1 - two[:10, 4]
    averaged = rate(Annotations.from_dense(two, classes=[0, 1]), [0, 4], passes=[1])
    assert averaged.people.value == pytest.approx(np.mean([*[0.5] * 10, *dense[10:60, 0]]))


def test_what_cannot_be_estimated_is_refused():
    table, words = crowd(40), Annotations.from_dense(np.zeros((3, 2), int), classes=["bad", "good"])
    ratings = Annotations.from_dense(np.ones((3, 2)), kind="regression")
    for options, annotations, error, reason in (
        ({}, table, ConfigError, "say with people="),
        ({"people": ["ann"]}, table, ConfigError, "unknown annotator 'ann'"),
        ({"people": [0, 1], "judges": [1]}, table, ConfigError, "cannot be both"),
        ({"judges": [0, 1]}, table, DataError, "judge 0 labelled 40 of the 400 tasks"),
        ({"people": [0], "passes": ["2"]}, table, ConfigError, "unknown class '2'"),
        ({"people": [0]}, words, DataError, "such as passes=['bad']"),
        ({"people": [], "passes": [1]}, table, DataError, "no task was labelled by people"),
        ({"people": [0]}, ratings, DataError, "all labels are 1"),
        ({"people": [0], "passes": [1]}, ratings, ConfigError, "leave it out, for their mean"),
        ({"people": [0], "confidence": 1}, table, ConfigError, "confidence"),
        ({"people": [0]}, table.select_rows(np.zeros(len(table), bool)), DataError, "there are no annotations"),
    ):
        with pytest.raises(error, match=re.escape(reason)):
            rate(annotations, **options)


@pytest.fixture
def answers(tmp_path):
    """A file of answers, where ann labels forty tasks."""
    dense = crowd(40).to_dense()
    rows = [f"{task},{['ann', 'j1', 'j2', 'j3'][who]},{['bad', 'good'][label]}" for (task, who), label in
            np.ndenumerate(dense) if label >= 0]  # fmt: skip
    (tmp_path / "a.csv").write_text("task,annotator,label\n" + "\n".join(rows) + "\n")
    return str(tmp_path / "a.csv")


def test_the_command_prints_and_writes_the_rate(answers, tmp_path, capsys):
    options = ["--rate", "good", "--bootstrap", "0", "--method", "majority-vote"]
    cli.main(["quality", answers, "--models", "j1,j2,j3", *options, "--out", str(tmp_path / "q")])
    printed, found = capsys.readouterr().out, rate(crowd(40), [0], passes=[1])
    assert re.search(r"rate of good\npeople alone, 40 tasks +" + re.escape(str(found.people)), printed)
    assert re.search(r"with 3 models, 400 tasks +" + re.escape(str(found)), printed)
    assert json.loads((tmp_path / "q" / "summary.json").read_text())["rate"]["low"] == pytest.approx(found.low)
    (tmp_path / "who.csv").write_text("annotator,source\nann,person\nj1,model\nj2,model\nj3,model\n")
    cli.main(["quality", answers, "--annotator-table", str(tmp_path / "who.csv"), *options])
    assert str(found) in capsys.readouterr().out
    for words, reason in (
        (["--rate", "good"], "name the models with --models A,B, or in a file with --annotator-table"),
        (["--rate", "godo", "--models", "j1,j2,j3"], "--rate: unknown class 'godo'"),
        (["--rate", "mean", "--models", "j1,j2,j3"], "such as --rate bad"),
        (["--rate", "good", "--multi-label"], "--rate does not go with --multi-label"),
    ):
        assert cli.main(["quality", answers, *words]) != 0
        assert reason in capsys.readouterr().err


@pytest.mark.skipif("CROWDZOO_DATA" not in os.environ, reason="real judges need CROWDZOO_DATA")
def test_many_real_judges_narrow_the_interval_of_few_labels():
    folder = Path(os.environ["CROWDZOO_DATA"]) / "llm-judges"
    if not folder.is_dir():
        pytest.skip("no folder llm-judges in CROWDZOO_DATA")
    judges = Annotations.read(folder / "annotations.csv")
    gold = dict(line.split(",") for line in (folder / "gold.csv").read_text().split()[1:])
    tasks = judges.tasks.tolist()
    truth = np.array([int(gold[task]) for task in tasks])
    held, widths = 0, []
    for seed in range(20):
        some = np.random.default_rng(seed).choice(len(tasks), 50, replace=False)
        table = Annotations.from_arrays(
            np.concatenate([judges.task_ids, some]),
            np.concatenate([judges.annotator_ids, np.full(50, -1)]),
            np.concatenate([judges.labels, truth[some]]),
        )
        found = rate(table, [-1], passes=[2, 3], these_tasks=True)
        held += found.low <= (truth >= 2).mean() <= found.high
        widths.append((found.high - found.low) / (found.people.high - found.people.low))
    assert held >= 16
    assert np.mean(widths) < 0.93
