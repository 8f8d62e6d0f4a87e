"""An option that would do nothing is refused, before any work is done."""

import pytest
from command_line import run
from csv_files import read_csv, write_csv


@pytest.fixture(autouse=True)
def files(here):
    """Answers, ratings, and lists in order, one of five tasks per annotator."""
    answers = [(f"t{task}", f"w{who}", "ab"[task % 2]) for task in range(6) for who in range(3)]
    write_csv("a.csv", ("task", "annotator", "label"), *answers)
    write_csv("ratings.csv", ("task", "annotator", "label"), *[(task, who, task[1:]) for task, who, _ in answers])
    write_csv(
        "lists.csv", ("annotator", "task", "rank"), *[(f"w{who}", f"t{n}", n) for who in range(3) for n in (1, 2)]
    )


AGGREGATE = ("aggregate", "a.csv", "--out", "o.csv")
LISTS = ("aggregate", "lists.csv", "--out", "o.csv", "--kind", "preference", "--rankings")
SAMPLE = ("next", "a.csv", "--gold-sample", 2, "--out", "gold.csv")
FIRST = ("next", "a.csv", "--first", "--annotators", "w0,w1")
REPORT = ("report", "a.csv", "--out", "r.html")
RATINGS = ("--kind", "regression")


@pytest.mark.parametrize(
    "words",
    [
        (*AGGREGATE, "--gold-columns", "gold=x"),
        ("serve", "served", "--log-share", 0.5),
        (*AGGREGATE, "--format", "jsonl"),
        *[(*LISTS, f"--{name}", "w1") for name in ("only", "rename", "annotator-separator", "exclude")],
        *[(*LISTS, name, "2026-01-01") for name in ("--since", "--until")],
        *[(*FIRST, *words) for words in (("--separator", ";"), ("--classes", "a,b"), ("--wide",))],
        (*FIRST, "--kind", "regression", "--low", 1),
        (*FIRST, "--kind", "region", "--distance", 3),
        (*SAMPLE, "--method", "dawid-skene"),
        (*SAMPLE, "--set", "prior=1"),
        (*SAMPLE, "--cost", "w1=3"),
        *[(*SAMPLE, f"--{name}", 3) for name in ("budget", "pay", "per-task")],
        (*REPORT, "--gold-columns", "gold=x"),
        (*REPORT, "--instance-columns", "text=x"),
        (*REPORT, "--outside-images"),
        ("report", "ratings.csv", "--out", "r.html", *RATINGS, "--curve", 3),
        (*REPORT, "--multi-label", "--curve", 3),
        ("quality", "a.csv", "--gold-columns", "gold=x"),
        ("quality", "a.csv", "--sure", 0.5),
        *[("quality", "ratings.csv", *RATINGS, f"--{name}", 0) for name in ("target", "worth")],
        ("compare", "a.csv", "--out", "c", "--gold-columns", "gold=x"),
        ("compare", "a.csv", "--out", "c", "--outside-images"),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_an_option_without_effect_is_refused(words, refusal_of, here):
    before = {*here.iterdir()}
    assert str([word for word in words if str(word).startswith("--")][-1]) in refusal_of(*words)
    assert {*here.iterdir()} == before


def test_what_an_option_says_already_may_be_said_again():
    assert run(*AGGREGATE[:3], "o.jsonl", "--format", "jsonl") == 0


def test_new_annotators_can_be_asked_beside_those_who_are_named(here):
    answers = [(f"t{n}", who, (n + (who == "w2" and n > 4)) % 2) for n in range(8) for who in ("w0", "w2")]
    write_csv("few.csv", ("task", "annotator", "label"), *answers, ("t0", "w1", 0))
    words = ("--annotators", "w1", "--new", "zoe", "--per-annotator", 1, "--out", "batch.csv")
    assert run("next", "few.csv", *words) == 0
    assert {row["annotator"] for row in read_csv("batch.csv")} == {"w1", "zoe"}


@pytest.mark.parametrize("words", [("quality", "--models"), ("next", "--annotators"), ("quality", "--exclude")])
def test_names_with_commas_stand_in_quotes(words, capsys, refusal_of):
    write_csv(
        "b.csv",
        ("task", "annotator", "label"),
        *[(f"t{n}", who, n % 2) for n in range(9) for who in ("a, b", "c", "d")],
    )
    command, option = words
    assert run(command, "b.csv", option, 'c, "a, b"') == 0
    assert run(command, "b.csv", option, "a, b") == 4
    capsys.readouterr()
    assert "double quotes around one with a comma or a line break" in refusal_of(command, "b.csv", option, "c\nd")


def test_a_table_of_costs_alone_says_what_annotators_are_due(here, capsys, refusal_of):
    write_csv("costs.csv", ("annotator", "cost"), ("w0", 1), ("w1", 2), ("w2", 0.5))
    words = ("--annotator-table", "costs.csv", "--out", "q", "--format", "csv")
    assert run("quality", "a.csv", *words) == 0
    due = {row["annotator"]: float(row["due"]) for row in read_csv("q/annotators.csv")}
    assert due == {"w0": 6, "w1": 12, "w2": 3}
    for command in ("quality", "next"):
        assert run(command, "a.csv", *words[:2], "--pay", 2) == 4
        assert "--pay does not go with costs in --annotator-table" in capsys.readouterr().err
    assert "no column 'source'" in refusal_of("quality", "a.csv", *words[:2], "--epsilon", 0.1, code=3)
