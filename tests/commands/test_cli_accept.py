"""Labels that are accepted with a bound on their error, and the questions about the others."""

import re
import shlex

import numpy as np
import pyarrow.parquet as pq
import pytest
from command_line import run
from csv_files import read_csv, write_csv


@pytest.fixture
def truth(tmp_path, here):
    """600 tasks with five answers of twenty annotators, half of them hard, and gold of 200 random ones."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 600)
    rows = []
    for task in range(600):
        for who in rng.choice(20, 5, replace=False):
            wrong = rng.random() < (0.5 if task % 2 else 0.03)
            rows.append((f"t{task}", f"w{who}", "xyz"[rng.integers(0, 3) if wrong else truth[task]]))
    write_csv("a.csv", ("task", "annotator", "label"), *rows)
    write_csv("gold.csv", ("task", "gold"), *[(f"t{task}", "xyz"[truth[task]]) for task in rng.permutation(600)[:200]])
    return {f"t{task}": "xyz"[one] for task, one in enumerate(truth)}


@pytest.mark.parametrize("out", ["labels.csv", "my labels"])
def test_accepted_labels_are_within_the_bound_and_only_the_others_are_asked_about(truth, out, capsys):
    assert run("aggregate", "a.csv", "--gold", "gold.csv", "--accept-error", 0.05, "--out", out) == 0
    shown = capsys.readouterr().out
    number = int(re.search(r" (\d+) of 600 labels accepted: at most 5 % wrong \(95 % confidence\)", shown)[1])
    table = read_csv(out) if out.endswith(".csv") else pq.read_table(f"{out}/tasks.parquet").to_pylist()
    accepted = {row["task"]: row["label"] for row in table if str(row["accepted"]).lower() == "true"}
    known = {row["task"]: row["gold"] for row in read_csv("gold.csv")}
    assert len(accepted) == number < 600
    assert known.items() <= accepted.items()  # their labels are their gold
    wrong = sum(truth[task] != label for task, label in accepted.items())
    assert number > 350
    assert wrong <= 0.05 * (number - len(known))
    words = shlex.split(re.search(r"crowdzoo next with (.*)$", shown, flags=re.M)[1])  # the advice, word for word
    assert run("next", "a.csv", *words, "--out", "b.csv") == 0
    assert f"accepted tasks                 {number}" in capsys.readouterr().out
    asked = {row["task"] for row in read_csv("b.csv")}
    assert asked
    assert not asked & accepted.keys()
    assert run("next", "a.csv", "--out", "c.csv") == 0
    assert {row["task"] for row in read_csv("c.csv")} & accepted.keys()  # as without the option


def test_more_gold_or_a_larger_error_is_advice_that_works(truth, capsys):
    rows = [(row["task"], row["gold"]) for row in read_csv("gold.csv")]
    write_csv("few.csv", ("task", "gold"), *rows[:30])
    words = ("aggregate", "a.csv", "--gold", "few.csv", "--out", "labels.csv", "--accept-error")
    assert run(*words, 0.05) == 3
    needed = int(re.search(r"30 annotated tasks have gold, .* takes (\d+):", capsys.readouterr().err)[1])
    assert run(*words, 0.12) == 0
    write_csv("few.csv", ("task", "gold"), *rows[: needed - 1])
    assert run(*words, 0.05, "--force") == 3
    write_csv("few.csv", ("task", "gold"), *rows[:needed])
    assert run(*words, 0.05, "--force") == 0


def test_nothing_is_advised_on_others_where_all_labels_are_accepted(truth, capsys):
    write_csv("all.csv", ("task", "gold"), *truth.items())
    assert run("aggregate", "a.csv", "--gold", "all.csv", "--accept-error", 0.05, "--out", "labels.csv") == 0
    shown = capsys.readouterr().out
    assert "600 of 600 labels accepted" in shown
    assert "the others" not in shown
    write_csv("wrong.csv", ("task", "gold"), ("t0", "q"))
    assert run("aggregate", "a.csv", "--gold", "wrong.csv", "--out", "x.csv") == 3
    assert "Some true labels cannot be used." in capsys.readouterr().err


def test_what_has_no_bound_is_refused(truth, capsys, refusal_of):
    words = ("aggregate", "a.csv", "--out", "labels.csv", "--accept-error", 0.05)
    gold = ("--gold", "gold.csv")
    cases = [
        ((), "--accept-error takes the classes of --gold FILE: give that file"),
        ((*gold, "--calibrate"), "--calibrate does not go with --accept-error, which tests labels that were made"),
        ((*gold, "--use-gold"), "leave one of them out"),
        ((*gold, "--multi-label"), "--accept-error does not go with --multi-label: leave one of them out"),
        ((*gold, "--kind", "regression"), "--accept-error is for classes; leave it out with --kind regression"),
    ]
    for more, message in cases:
        assert message in refusal_of(*words, *more)
    for kind in (("--kind", "free-text"), ("--multi-label",)):
        assert run("next", "a.csv", "--accepted", "gold.csv", *kind) == 4
        assert f"--accepted does not go with {' '.join(kind)}: leave one of them out" in capsys.readouterr().err
    assert run("aggregate", "a.csv", "--out", "labels.csv") == 0
    assert "accepted" in refusal_of("next", "a.csv", "--accepted", "labels.csv", code=3)
