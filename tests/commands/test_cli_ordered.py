"""Labels of classes that have an order: the median of the probabilities."""

import shlex
from dataclasses import replace

import numpy as np
import pytest
from command_line import run
from csv_files import read_csv, write_csv

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote, RatingMean, with_median_labels
from crowdzoo.errors import DataError


@pytest.fixture
def answers(here):
    """One task of which half say low and half high, one say mid; and clear ones."""
    labels = {"a": ("low", "low", "mid", "high", "high"), "b": ("high", "high", "high", "low", "high"), "c": ("low",)}
    write_csv(
        "a.csv",
        ("task", "annotator", "label"),
        *[(task, f"w{place}", label) for task, row in labels.items() for place, label in enumerate(row)],
    )


def test_the_median_is_between_those_who_differ(answers):
    words = ("--method", "majority-vote", "--ordered", "--out", "labels.csv")
    assert run("aggregate", "a.csv", *words, "--classes", "low,mid,high") == 0
    assert {row["task"]: row["label"] for row in read_csv("labels.csv")} == {"a": "mid", "b": "high", "c": "low"}


def test_an_order_that_is_not_known_is_asked_for_and_the_advice_can_be_pasted(answers, refusal_of):
    words = ("aggregate", "a.csv", "--method", "majority-vote", "--ordered", "--out", "labels.csv")
    assert "That of the alphabet is: --classes high,low,mid\n" in refusal_of(*words)
    assert run(*words, "--classes", "high,low,mid") == 0
    assert run(*words, "--classes", "low,mid,high", "--accept-error", 0.1, "--gold", "a.csv") == 4
    assert run("aggregate", "a.csv", "--ordered", "--multi-label", "--out", "x.csv") == 4
    assert run("aggregate", "a.csv", "--ordered", "--kind", "free-text", "--out", "x.csv") == 4


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (("2", "10", "-1.5"), "from low to high: --classes=-1.5,2,10"),
        (("so so", "no, never"), "That of the alphabet is: --classes '\"no, never\",so so'"),
    ],
)
def test_advice_on_the_order_has_numbers_by_value_and_quotes(names, advice, here, refusal_of):
    write_csv("a.csv", ("task", "annotator", "label"), *[(f"t{place}", "w", name) for place, name in enumerate(names)])
    words = ("aggregate", "a.csv", "--method", "majority-vote", "--ordered", "--out", "labels.csv")
    message = refusal_of(*words).strip()
    assert message.endswith(advice)
    assert run(*words, *shlex.split(message[message.index("--classes") :])) == 0


def test_accuracy_is_that_of_the_medians(answers, capsys):
    write_csv("gold.csv", ("task", "gold"), ("a", "mid"), ("b", "low"), ("c", "low"))
    words = ("--method", "majority-vote", "--ordered", "--classes", "low,mid,high", "--gold", "gold.csv")
    assert run("aggregate", "a.csv", *words, "--out", "labels.csv") == 0
    table = dict(line.partition("  ")[::2] for line in capsys.readouterr().out.splitlines())
    assert table["accuracy"].strip() == "0.6667; steps from gold: 0.6667 (on 3 tasks with gold)"  # b is two off
    assert "mean probability there" not in table


def test_what_was_said_of_other_labels_goes():
    answers = Annotations.from_arrays([0, 0], [0, 1], [0, 2], classes=range(3))
    known = {"settled": np.ones(1), "answers_to_settle": np.ones(1, int), "accepted": np.ones(1, bool)}
    calibrated = replace(
        MajorityVote().fit(answers), accuracy_interval=(0.9, 0.8, 1.0), error_bound=(0.1, 0.95), **known
    )
    result = with_median_labels(calibrated)
    assert [getattr(result, name) for name in (*known, "accuracy_interval", "error_bound")] == [None] * 5


def test_numbers_are_in_order_and_medians_are_fewer_steps_off(here):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 400)
    said = np.clip(truth[:, None] + rng.choice([-1, 0, 1], size=(400, 4), p=[0.3, 0.4, 0.3]), 0, 4)
    rows = [(f"t{task}", f"w{who}", said[task, who]) for task in range(400) for who in range(4)]
    write_csv("a.csv", ("task", "annotator", "label"), *rows)
    off = []
    for words in ((), ("--ordered",)):
        assert run("aggregate", "a.csv", *words, "--out", "labels.csv", "--force") == 0
        labels = {row["task"]: int(row["label"]) for row in read_csv("labels.csv")}
        off.append(np.mean([abs(labels[f"t{task}"] - truth[task]) for task in range(400)]))
    assert off[1] < off[0] - 0.03


def test_ratings_have_no_median_of_classes():
    ratings = Annotations.from_arrays([0, 0, 1], [0, 1, 0], [1.0, 2.0, 3.0], kind="regression")
    with pytest.raises(DataError, match="kind classification, got regression"):
        with_median_labels(RatingMean().fit(ratings))
    answers = Annotations.from_arrays([0, 0], [0, 1], [0, 2], classes=range(3))
    assert with_median_labels(MajorityVote().fit(answers)).labels.tolist() == [0]  # the lower of two medians
