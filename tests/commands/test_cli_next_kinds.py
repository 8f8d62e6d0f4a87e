"""`crowdzoo next` for ratings, preferences and sentences, and before the first answer."""

import json
from itertools import combinations

import numpy as np
import pytest
from command_line import run
from csv_files import read_csv, write_csv

from crowdzoo import Annotations

SIDES = ("right", "left")
TEXT = "Ann met Bob in Rome."


@pytest.fixture(autouse=True)
def files(here):
    """Ratings by a precise and a vague annotator, preferences, sentences, and texts of twelve tasks."""
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 3, 40)
    ratings = [
        (f"t{task}", who, round(truth[task] + rng.normal(0, deviation), 2))
        for task in range(40)
        for place, (who, deviation) in enumerate((("sharp", 0.1), ("vague", 4.0), ("third", 0.7), ("last", 0.7)))
        if (task + place) % 3 and (task < 37 or who == "third")
    ]
    write_csv("ratings.csv", ("task", "annotator", "label"), *ratings)
    pairs = [(left, right, who) for left, right in combinations(range(6), 2) for who in "ab" if rng.random() < 0.7]
    write_csv(
        "pairs.csv", ("left", "right", "annotator", "label"),
        *[(f"t{left}", f"t{right}", who, SIDES[int(truth[left] > truth[right])]) for left, right, who in pairs],
    )  # fmt: skip
    write_csv("texts.csv", ("task", "text"), *[(f"t{task}", f"text {task}") for task in range(12)])
    person, place = {"start": 0, "end": 3, "label": "PER"}, {"start": 15, "end": 19, "label": "LOC"}
    answers = {(task, who): [person, place] for task in "uvw" for who in "ab"} | {("x", "a"): [person], ("x", "c"): []}
    lines = [{"task": task, "annotator": who, "text": TEXT, "spans": spans} for (task, who), spans in answers.items()]
    (here / "spans.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_ratings_with_large_errors_are_asked_of_precise_annotators(capsys):
    assert (
        run("next", "ratings.csv", "--kind", "regression", "--budget", 2, "--per-annotator", 2, "--out", "b.csv") == 0
    )
    rows = read_csv("b.csv")
    assert {row["task"] for row in rows} == {"t38", "t39"}
    assert {row["annotator"] for row in rows} == {"sharp"}
    assert "lowers the standard error of the estimate" in capsys.readouterr().out
    assert run("aggregate", "ratings.csv", "--kind", "regression", "--out", "then") == 0
    words = ("--kind", "regression", "--prior", "then", "--new", "zoe", "--cost", "sharp=99")
    assert run("next", "ratings.csv", *words, "--out", "b.csv") == 0
    assert "sharp" not in {row["annotator"] for row in read_csv("b.csv")}
    assert run("next", "ratings.csv", "--kind", "regression", "--gold-sample", 4, "--out", "gold.csv") == 0
    assert len(read_csv("gold.csv")) == 4


def test_pairs_of_tasks_have_two_columns_and_new_tasks_come_first(here):
    words = ("next", "pairs.csv", "texts.csv", "--kind", "preference", "--budget", 6)
    assert run(*words, "--out", "b.csv") == 0
    rows = read_csv("b.csv")
    assert list(rows[0]) == ["left", "right", "annotator", "gain", "cost"]
    new = {f"t{task}" for task in range(6, 12)}
    assert all({row["left"], row["right"]} & new for row in rows)
    gains = [float(row["gain"]) for row in rows]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 0
    assert run(*words, "--out", "b.json") == 0
    data = json.loads((here / "b.json").read_text("utf-8"))[0]["data"]
    assert data["left_text"] == f"text {data['left'][1:]}"
    assert data["right_text"] == f"text {data['right'][1:]}"
    assert run(*words, "--out", "b.json") == 0  # its own file is replaced


def test_pairs_that_everybody_has_compared_need_new_annotators(capsys):
    write_csv("both.csv", ("left", "right", "annotator", "label"), *[("t1", "t2", who, "left") for who in "ab"])
    assert run("next", "both.csv", "--kind", "preference") == 0
    shown = capsys.readouterr().out
    assert "0 of 2" in shown  # sure tasks
    assert "everybody who can be asked has answered the rest" in shown
    assert run("next", "both.csv", "--kind", "preference", "--new", "zoe") == 0
    assert "each open task has one question" in capsys.readouterr().out


def test_the_sentence_that_annotators_contradict_each_other_on_is_asked_about(capsys, refusal_of):
    words = ("next", "spans.jsonl", "--kind", "sequence", "--budget", 2, "--out", "b.csv")
    assert run(*words, "--annotators", "b") == 0
    assert (read_csv("b.csv")[0]["task"], read_csv("b.csv")[0]["annotator"]) == ("x", "b")
    assert run(*words, "--new", "zoe", "--annotators", "zoe") == 0
    assert {row["annotator"] for row in read_csv("b.csv")} == {"zoe"}
    capsys.readouterr()
    with open("spans.jsonl", "a") as file:
        file.write(json.dumps({"task": "y", "text": TEXT}) + "\n")  # a sentence that nobody has answered
    assert run(*words, "--annotators", "a", "--force") == 0
    assert read_csv("b.csv")[0]["task"] == "y"
    assert "use bsc-seq, hmm-crowd or dawid-skene" in refusal_of(*words, "--method", "span-majority-vote")


def test_the_first_round_gives_equal_loads_and_shares_tasks(capsys):
    write_csv("gold.csv", ("task", "gold"), ("t3", "yes"), ("t7", "no"), ("t8", ""))
    words = ("next", "texts.csv", "--first", "--annotators", "ann,bob,cem", "--budget", 23, "--gold", "gold.csv")
    assert run(*words, "--out", "plan.csv") == 0
    rows = read_csv("plan.csv")
    assert list(rows[0]) == ["task", "annotator", "gain", "cost"]
    asked = {name: {row["task"] for row in rows if row["annotator"] == name} for name in ("ann", "bob", "cem")}
    assert [len(tasks) for tasks in asked.values()] == [7, 7, 7]  # one of gold, six of three answers
    assert all(len(tasks & {"t3", "t7"}) == 1 for tasks in asked.values())
    assert all(len(asked[one] & asked[other]) >= 6 for one, other in combinations(asked, 2))
    shown = capsys.readouterr().out
    assert "questions per annotator" in shown
    assert "7 to 7" in shown
    assert run(*words[:-2], "--kind", "preference", "--out", "plan.json") == 0
    assert run(*words[:-2], "--per-task", 1) == 0
    assert "some annotators share no task" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:ids.csv. columns were found by usual names")
@pytest.mark.parametrize("header", [("task",), ("gold", "task"), ("item",), ("image", "task")])
def test_a_list_of_tasks_needs_nothing_but_their_names(header):
    first = "https://example.com/1.jpg" if header[0] == "image" else ""
    write_csv("ids.csv", header, *((first, name)[-len(header) :] for name in ("t1", "t2", "t3")))
    answers = [(task, who, label) for task, label in (("t1", "a"), ("t2", "b")) for who in ("ann", "bob")]
    write_csv("few.csv", ("task", "annotator", "label"), *answers)
    assert run("next", "ids.csv", "--first", "--annotators", "ann,bob", "--out", "plan.csv") == 0
    assert {row["task"] for row in read_csv("plan.csv")} == {"t1", "t2", "t3"}
    assert run("next", "few.csv", "ids.csv", "--out", "more.csv") == 0
    assert "t3" in {row["task"] for row in read_csv("more.csv")}


@pytest.mark.parametrize("words", [("--first", "--annotators", "ann,bob"), ()])
def test_the_encoding_is_that_of_the_tasks_too(here, words, refusal_of):
    (here / "latin.csv").write_bytes("task,text\nt1,Grüße\nt2,Hallo\n".encode("latin-1"))
    write_csv("few.csv", ("task", "annotator", "label"), ("t1", "ann", "a"), ("t2", "bob", "b"))
    files = ("latin.csv",) if words else ("few.csv", "latin.csv")
    assert "--encoding latin-1" in refusal_of("next", *files, *words, code=3)
    assert run("next", *files, *words, "--encoding", "latin-1") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("texts.csv", "--first"), "--first: add --annotators"),
        (("texts.csv", "--first", "--annotators", "a,b", "--budget", 1), "--budget 1: is less than the answers to one"),
        (("texts.csv", "--first", "--annotators", "a,b", "--columns", "task=x"), "--columns does not go with --first"),
        (("texts.csv", "--first", "--annotators", "a,b", "--sure", 0.5), "--sure does not go with --first"),
        (("texts.csv", "pairs.csv", "--first", "--annotators", "a,b"), "pairs.csv does not go with --first"),
        (("texts.csv", "--first", "--annotators", "a", "--prior", "x"), "--prior does not go with --first"),
        (("texts.csv", "--first", "--annotators", "a", "--kind", "preference", "--gold", "texts.csv"), "--gold"),
        (
            ("pairs.csv", "--kind", "preference", "--gold-sample", 3, "--out", "g.csv"),
            "--gold-sample: draws tasks with",
        ),
        (
            ("spans.jsonl", "--kind", "sequence", "--gold-sample", 3, "--out", "g.csv"),
            "leave it out with --kind sequence",
        ),
        (("ratings.csv", "--gold", "texts.csv"), "or --first"),
        (("spans.jsonl", "texts.csv", "--kind", "sequence"), "texts.csv: sentences are in the file of annotations"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, message, refusal_of):
    assert message in refusal_of("next", *words)


def test_a_file_without_answers_says_how_to_plan_the_first_round(refusal_of):
    nothing = Annotations.from_arrays([], [], [], tasks=["t1"], annotators=["ann"], classes=["a", "b"])
    nothing.to_parquet("none.parquet")
    assert "--first --annotators A,B,… plans the first round" in refusal_of("next", "none.parquet", code=3)
