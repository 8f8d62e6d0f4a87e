"""`crowdzoo compare`: the table, the files, the line to take, and what is refused."""

import json
import shlex
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import run
from csv_files import write_csv


@pytest.fixture
def folder(tmp_path, here):
    """Answers of six annotators on 80 tasks, two of them random; gold of half; instances with two features."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    said = np.where(rng.random((80, 6)) < [0.9, 0.9, 0.8, 0.8, 0.5, 0.5], truth[:, None], 1 - truth[:, None])
    write_csv("answers.csv", ("task", "annotator", "label"), *(
        (f"t{task}", f"a{annotator}", ["no", "yes"][said[task, annotator]])
        for task in range(80) for annotator in range(6)
    ))  # fmt: skip
    write_csv("gold.csv", ("item", "truth"), *((f"t{task}", ["no", "yes"][truth[task]]) for task in range(40)))
    rows = [(f"t{task}", truth[task] + 0.1, rng.normal(), "eval" if task < 30 else "train") for task in range(80)]
    write_csv("instances.csv", ("task", "x", "y", "split"), *rows)
    return tmp_path


GOLD = ("--gold", "gold.csv", "--gold-columns", "task=item,gold=truth")


METHODS = "one-coin right=1,wawa"


def test_the_table_the_files_and_the_line_that_takes_the_best(folder, capsys):
    assert run("compare", "answers.csv", *GOLD, "--methods", METHODS, "--out", "runs") == 0
    printed = capsys.readouterr().out
    assert "40 tasks, intervals of 95 %" in printed
    frame = pd.read_csv("runs/comparison.csv")
    assert sorted(frame["method"]) == sorted(["majority-vote", "wawa", "one-coin right=1"])
    assert (folder / "runs" / "comparison.png").stat().st_size > 5000
    line = shlex.split(printed.strip().splitlines()[-1])
    assert line[:4] == ["crowdzoo", "aggregate", "answers.csv", "--method"]
    assert run(*line[1:]) == 0  # as it stands
    capsys.readouterr()
    assert run("compare", "answers.csv", *GOLD, "--methods", "quick", "--out", "runs") == 0  # goes on, needs no --force
    assert len(pd.read_parquet("runs/runs.parquet")) == 9
    assert "Level with it: " in capsys.readouterr().out


def test_without_matplotlib_the_picture_is_left_out_and_the_table_is_there(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    assert run("compare", "answers.csv", *GOLD, "--methods", "wawa", "--out", "runs") == 0
    printed = capsys.readouterr()
    assert "40 tasks, intervals of 95 %" in printed.out
    assert "plots need matplotlib: pip install 'crowdzoo[plots]'" in printed.err
    assert (folder / "runs" / "comparison.csv").exists()
    assert not (folder / "runs" / "comparison.png").exists()


def test_without_gold_the_table_says_what_it_cannot_tell(folder, capsys, monkeypatch):
    assert run("compare", "answers.csv", "--methods", "wawa", "--out", "runs") == 0
    printed = capsys.readouterr().out
    assert "log-likelihood per hidden annotation" in printed
    assert "give gold of a few hundred tasks (--gold)" in printed
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run("compare", "answers.csv", "--methods", "wawa", "--out", "runs") == 0
    assert "too narrow for behind the best, seconds: see" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_deep_methods_are_compared_on_instances_and_the_line_trains(folder, capsys):
    how = ("--epochs", 10, "--hidden", 8, "--learning-rate", 0.05, "--methods", "ccem")
    assert run("compare", "answers.csv", "instances.csv", *GOLD, *how, "--out", "runs") == 0
    printed = capsys.readouterr().out
    assert "30 tasks" in printed
    assert len(pd.read_parquet("runs/runs.parquet")) == 2
    line = shlex.split(printed.strip().splitlines()[-1])
    assert line[:4] == ["crowdzoo", "train", "answers.csv", "instances.csv"]
    assert run(*line[1:], "--epochs", 10, "--learning-rate", 0.05) == 0
    capsys.readouterr()
    assert run("compare", "answers.csv", "instances.csv", *GOLD, *how, "--hidden", 5, "--out", "runs") == 4
    assert "runs.parquet: its runs are of other settings." in capsys.readouterr().err


def test_the_line_that_takes_the_best_has_the_options_that_were_given(folder, capsys, answer_for_models):
    rows = [line.split(",") for line in (folder / "answers.csv").read_text().splitlines()[1:]]
    write_csv("hits.csv", ("item", "who", "answer"), *rows)
    answer_for_models(lambda *given, **_: np.full((len(given[4]), 2), 0.5))
    columns = ("--columns", "task=item,annotator=who,label=answer")
    how = (*columns, "--exclude", "a5", "--epochs", 3, "--hidden", 4, "--dropout", 0, "--no-jit-compile",
           "--outside-images")  # fmt: skip
    methods = ("--methods", "crowdsourced-layer connection=VW scale=2", "--out", "runs")
    assert run("compare", "hits.csv", "instances.csv", *how, *methods) == 0  # and no gold
    printed = capsys.readouterr().out
    assert "log-likelihood per hidden annotation" in printed
    line = shlex.split(printed.strip().splitlines()[-1])
    assert line[:4] == ["crowdzoo", "train", "hits.csv", "instances.csv"]
    for option, value in [how[:2], how[2:4], how[4:6], how[6:8]]:
        assert line[line.index(option) + 1] == str(value)
    assert float(line[line.index("--dropout") + 1]) == 0
    assert {"--no-jit-compile", "--outside-images"} <= {*line}
    assert run("compare", "hits.csv", "instances.csv", *how, *methods, "--force") == 0
    capsys.readouterr()
    (folder / "instances.csv").write_text("task,x\nt0,many\n")
    assert run("compare", "hits.csv", "instances.csv", *how, *methods, "--force") == 3
    assert len(pd.read_parquet("runs/runs.parquet")) == 2  # nothing is lost by a broken file


def test_what_does_not_go_together_is_said(folder, capsys, refusal_of):
    assert run("compare", "answers.csv", "--epochs", 3, "--out", "runs") == 4
    assert "--epochs: is for deep methods: name the file of instances" in capsys.readouterr().err
    assert "--methods: names no method" in refusal_of("compare", "answers.csv", "--methods", ",", "--out", "runs")
    assert run("compare", "answers.csv", "--base-set", "a=1", "--out", "runs") == 4
    assert "--base-set: is for deep methods" in capsys.readouterr().err
    assert not (folder / "runs").exists()
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    assert "--out full: " in refusal_of("compare", "answers.csv", "--out", "full")


def test_several_labels_are_compared_with_gold_and_the_line_aggregates(tmp_path, here, capsys, refusal_of):
    rng = np.random.default_rng(0)
    holds = rng.random((40, 2)) < 0.4
    write_csv("answers.csv", ("task", "annotator", "label"), *(
        (task, annotator, "|".join(np.array(["a", "b"])[holds[task] ^ (rng.random(2) < 0.1 * annotator)]))
        for task in range(40) for annotator in range(3)
    ))  # fmt: skip
    gold = [(task, "|".join(np.array(["a", "b"])[holds[task]]) or "(none)") for task in range(40)]
    write_csv("gold.csv", ("task", "gold"), *gold)
    how = ("compare", "answers.csv", "--multi-label", "--label-separator", "|", "--methods", "wawa")
    assert "are compared with gold: give --gold FILE" in refusal_of(*how, "--out", "runs")
    assert run(*how, "--gold", "gold.csv", "--out", "runs", "--track", "tensorboard") == 0
    assert [*(tmp_path / "runs" / "tensorboard").rglob("events*")]
    printed = capsys.readouterr().out
    assert "F1 of labels" in printed
    line = shlex.split(printed.strip().splitlines()[-1])
    assert line[:4] == ["crowdzoo", "aggregate", "answers.csv", "--method"]
    assert "--multi-label" in line
    assert run(*line[1:]) == 0
    assert run(*how, "--gold", "gold.csv", "--no-label", "x", "--out", "runs") == 4
    assert "--no-label does not go with --multi-label" in capsys.readouterr().err


def test_preferences_are_compared_with_true_scores_and_models_on_instances(tmp_path, answer_for_models, here, capsys):
    rng = np.random.default_rng(0)
    quality = rng.normal(size=50)
    pairs = [(left, right) for left in range(50) for right in rng.choice(50, 4, replace=False) if left != right]
    said = [(left, right, who, ("left", "right")[int(quality[left] + who / 3 * rng.normal() < quality[right])])
            for left, right in pairs for who in range(3)]  # fmt: skip
    write_csv("judgments.csv", ("left", "right", "annotator", "label"), *said)
    write_csv("gold.csv", ("task", "gold"), *enumerate(quality[:30]))
    write_csv("instances.csv", ("task", "x"), *enumerate(quality))
    how = ("--kind", "preference", "--gold", "gold.csv")
    assert run("compare", "judgments.csv", *how, "--out", "runs") == 0
    printed = capsys.readouterr().out
    assert "30 tasks, intervals of 95 %" in printed
    line = shlex.split(printed.strip().splitlines()[-1])
    assert run(*line[1:]) == 0
    capsys.readouterr()

    def answers(settings, x, measure, kept, hidden, *_, **__):
        return np.stack([hidden, 0 * hidden], axis=1)

    answer_for_models(answers)
    assert run("compare", "judgments.csv", "instances.csv", *how, "--methods", "pair-annotators", "--out", "deep") == 0
    printed = capsys.readouterr().out
    assert "share of pairs in order" in printed
    assert shlex.split(printed.strip().splitlines()[-1])[:4] == ["crowdzoo", "train", "judgments.csv", "instances.csv"]


def test_sentences_are_compared_alone_and_by_taggers(tmp_path, answer_for_models, here, capsys):
    spans = [{"start": 0, "end": 3, "label": "PER"}]
    with open("spans.jsonl", "w") as file:
        for task in range(30):
            sentence = {"task": f"s{task}", "text": "Ann ran."}
            rows = [{"annotator": f"a{who}", "spans": spans if (task + who) % 5 else []} for who in range(3)]
            for row in (*rows, {"gold": True, "spans": spans}):
                file.write(json.dumps(sentence | row) + "\n")
    how = ("compare", "spans.jsonl", "--kind", "sequence")
    assert run(*how, "--methods", "span-majority-vote", "--out", "runs") == 0
    printed = capsys.readouterr().out
    assert "F1 of spans" in printed
    line = shlex.split(printed.strip().splitlines()[-1])
    assert line[:3] == ["crowdzoo", "aggregate", "spans.jsonl"]
    assert run(*line[1:]) == 0
    capsys.readouterr()

    def tags(settings, x, measure, kept, hidden, *_, **__):
        return np.zeros((3 * len(hidden), 1))

    answer_for_models(tags)
    assert run(*how, "--base", "sequence-tagger", "--epochs", 2, "--methods", "deep-em", "--out", "deep") == 0
    line = shlex.split(capsys.readouterr().out.strip().splitlines()[-1])
    assert line[:3] == ["crowdzoo", "train", "spans.jsonl"]
    assert line[line.index("--base") + 1] == "sequence-tagger"
