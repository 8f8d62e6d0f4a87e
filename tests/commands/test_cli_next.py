"""`crowdzoo next` as a user meets it."""

import csv
import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from csv_files import read_csv

from crowdzoo.commands import main as cli
from crowdzoo.kinds import kind_of


@pytest.fixture
def folder(tmp_path, here):
    """60 texts, of which 50 have labels of three of six annotators; two annotators guess."""
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=60)
    rows, skill = ["task,annotator,label"], [0.9, 0.9, 0.9, 0.9, 0.5, 0.5]
    for task in range(50):
        for who in rng.choice(6, 3, replace=False):
            said = truth[task] if rng.random() < skill[who] else 1 - truth[task]
            rows.append(f"t{task},w{who},{('no', 'yes')[said]}")
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "texts.csv").write_text("task,text\n" + "".join(f"t{task},text number {task}\n" for task in range(60)))
    (tmp_path / "gold.csv").write_text("task,gold\n" + "".join(f"t{i},{('no', 'yes')[truth[i]]}\n" for i in range(50)))
    return tmp_path


def run(*words) -> int:
    return cli.main(["next", *map(str, words)])


def asked(folder):
    return {(row["task"], row["annotator"]) for row in read_csv(folder / "a.csv")}


def test_a_batch_keeps_to_the_budget_and_asks_nobody_twice(folder, capsys):
    assert run("a.csv", "--budget", 8, "--out", "b.csv") == 0
    rows = read_csv("b.csv")
    assert len(rows) == 8
    assert len({row["task"] for row in rows}) == 8
    assert not asked(folder) & {(row["task"], row["annotator"]) for row in rows}
    gains = [float(row["gain"]) for row in rows]
    assert gains == sorted(gains, reverse=True)
    assert max(np.unique([row["annotator"] for row in rows], return_counts=True)[1]) <= 4  # twice an even share of 8/6
    assert "8 of 8" in capsys.readouterr().out
    assert run("a.csv", "--budget", 5, "--out", "b.csv") == 0  # its own file is replaced
    assert len(read_csv("b.csv")) == 5


def test_tasks_without_labels_are_asked_about_and_texts_go_to_label_studio(folder):
    assert run("a.csv", "texts.csv", "--budget", 60, "--sure", 0.9, "--per-annotator", 60, "--out", "b.json") == 0
    entries = json.loads((folder / "b.json").read_text("utf-8"))
    tasks = [entry["data"]["task"] for entry in entries]
    assert len(set(tasks)) == len(tasks)
    assert {f"t{task}" for task in range(50, 60)} <= set(tasks)
    for entry in entries:
        assert entry["data"]["text"] == f"text number {entry['data']['task'][1:]}"
        assert len(entry["data"]["annotators"]) == 1
        assert entry["meta"]["gain"] > 0
    assert run("a.csv", "--out", "b.json") == 0  # its own file is replaced


def test_where_the_default_method_has_no_confusion_matrices_those_of_another_one_are_taken(folder, monkeypatch):
    monkeypatch.setitem(vars(kind_of("classification").aggregation), "default", "glad")
    assert run("a.csv", "--budget", 5, "--out", "b.csv") == 0
    assert len(read_csv("b.csv")) == 5
    assert run("a.csv", "--method", "glad") == 4


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--budget", 1000], "each open task has one question (--per-task)"),
        (["--budget", 1000, "--per-task", 2], "each open task has 2 questions (--per-task)"),
        (
            ["--budget", 1000, "--per-task", 2, "--per-annotator", 99, "--worth", 1000],
            "each open task has 2 questions, or as many as settle it (--per-task)",
        ),
        (["--budget", 30, "--per-annotator", 2, "--worth", 1000], "everyone who could answer more has 2 questions"),
        (["--budget", 500, "--per-task", 6, "--sure", 1], "everybody who can be asked has answered the rest, or"),
        (["--budget", 8], None),
    ],
)
def test_it_says_why_the_budget_is_not_spent(folder, capsys, words, reason):
    assert run("a.csv", *words) == 0
    said = capsys.readouterr().out
    assert (reason in said) if reason else ("why not more" not in said)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--annotators", "a,b"], "why not more .* each task has one answer by every annotator"),
        (["--annotators", "a,b,c,d"], r"why not more .* each task has 3 answers \(--per-task\)"),
        (["--annotators", "a,b,c,d", "--budget", 15], "why not all tasks .* --budget 15: all of them cost about 30"),
        (["--annotators", "a,b,c", "--per-annotator", 4], r"why not more .* the annotators have 4 questions each"),
        (["--annotators", "a,b,c", "--budget", 30], None),
    ],
)
def test_a_first_round_says_why_it_is_short(folder, capsys, words, reason):
    (folder / "t.csv").write_text("task,text\n" + "".join(f"{n},x\n" for n in range(10)))
    assert cli.main(["next", "t.csv", "--first", *map(str, words)]) == 0
    said = capsys.readouterr().out
    assert re.search(reason, said) if reason else "why not" not in said


def test_the_gain_of_an_answer_is_explained_without_jargon(folder, capsys):
    assert run("a.csv") == 0
    said = capsys.readouterr().out
    assert re.search(r"gain of an answer +how .* 0.69 decides between two", said)
    assert "nats" not in said


def test_wrong_words_are_refused_before_any_work(folder, refusal_of):
    (folder / "own.json").write_text("[1]")
    (folder / "own.csv").write_text("a,b\n")
    for words, message in (
        (["--out", "b.txt"], "is written as .csv or .json"),
        (["--out", "own.json"], "own.json"),
        (["--out", "own.csv"], "own.csv"),
        (["--cost", "w1"], "write NAME=X"),
        (["--cost", "w1=-1"], "write NAME=X"),
        (["--cost", "w9=1"], "unknown annotator 'w9'"),
        (["--annotators", "w1,nobody"], "unknown annotator 'nobody'"),
        (["--method", "wawa"], "has no confusion matrices"),
        (["--budget", 0.5], "less than one answer costs"),
        (["--sure", 0], "--sure 0"),
        (["--classes", "a\0b"], "has an empty name"),
        (["--classes", "\n0"], "has an empty name"),
    ):
        assert message in refusal_of("next", "a.csv", *words)
    assert not list(folder.glob("b.*"))


def test_a_table_of_annotators_says_what_answers_cost_and_who_is_a_model(folder, capsys):
    rows = [f"w{code},{'model' if code < 2 else 'person'},{0.5 if code < 2 else 5}" for code in range(6)]
    (folder / "who.csv").write_text("\n".join(["annotator,source,cost", *rows]) + "\n")
    assert run("a.csv", "--annotator-table", "who.csv", "--budget", "10", "--out", "batch.csv") == 0
    said = capsys.readouterr().out
    found = read_csv(folder / "batch.csv")
    cheap = [row for row in found if row["annotator"] in ("w0", "w1")]
    assert {row["cost"] for row in cheap} == {"0.5"}
    assert f"{len(cheap)} (cost {len(cheap) * 0.5:g})" in said
    assert f"{len(found) - len(cheap)} (cost {(len(found) - len(cheap)) * 5:g})" in said
    german = (folder / "who.csv").read_text().replace(",", ";").replace(".", ",")
    (folder / "german.csv").write_text(german)
    assert run("a.csv", "--annotator-table", "german.csv", "--decimal", ",", "--budget", "10") == 0
    assert run("a.csv", "--annotator-table", "who.csv", "--cost", "w0=3") == 4
    assert "--cost and --annotator-table both say what answers cost" in capsys.readouterr().err


def test_models_who_repeat_each_other_are_not_asked_again_where_people_tell_more(folder, capsys):
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=200)
    view = np.where(rng.random(200) < 0.75, truth, 1 - truth)
    rows = [f"t{task},gpt{code},{view[task]}\n" for task in range(200) for code in range(4)]
    rows += [f"t{task},ann,{truth[task]}\nt{task},bo,{truth[task]}\n" for task in range(0, 200, 4)]
    rows += ["t1,gpt4,1\n", "t2,gpt4,0\n"]
    (folder / "mixed.csv").write_text("task,annotator,label\n" + "".join(rows))
    who = "".join(f"gpt{code},model,0.1\n" for code in range(5)) + "ann,person,1\nbo,person,1\n"
    (folder / "who.csv").write_text("annotator,source,cost\n" + who)
    words = ["mixed.csv", "--annotator-table", "who.csv", "--budget", 50, "--per-annotator", 1000, "--out", "b.csv"]
    assert run(*words) == 0
    assert "correlation of models' errors" in capsys.readouterr().out
    assert {row["annotator"] for row in read_csv("b.csv")} <= {"ann", "bo"}
    assert len(read_csv("b.csv")) == 50
    assert run(*words, "--method", "hierarchical-dawid-skene") == 0
    assert "correlation of models' errors" not in capsys.readouterr().out


def test_of_a_rare_class_only_divided_votes_are_asked_about(tmp_path):
    """One task in twenty is of the class; 300 of 300 questions were once about `ok, ok, ok`."""
    rng, votes = np.random.default_rng(0), {}
    with open(tmp_path / "answers.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "annotator", "label"])
        for task in range(600):
            share = 0.7 if rng.random() < 0.05 else 0.04
            said = [(who, "toxic" if rng.random() < share else "ok") for who in rng.choice(10, 3, replace=False)]
            writer.writerows((f"t{task}", f"a{who}", label) for who, label in said)
            votes[f"t{task}"] = {label for _, label in said}
    out = tmp_path / "questions.csv"
    assert cli.main(["next", str(tmp_path / "answers.csv"), "--budget", "300", "--out", str(out)]) == 0
    asked = [row["task"] for row in read_csv(out)]
    assert len(asked) > 10
    assert all(len(votes[task]) == 2 for task in asked)


def test_new_annotators_are_taken_for_usual_ones_or_as_an_earlier_result_knows_them(folder, capsys, refusal_of):
    assert cli.main(["aggregate", "a.csv", "--method", "dawid-skene", "--out", "then"]) == 0
    rows = (folder / "a.csv").read_text().replace(",w0,", ",vet,").replace(",w4,", ",guesser,")
    (folder / "later.csv").write_text("\n".join(row for row in rows.splitlines() if ",guesser," not in row))
    words = ("--method", "dawid-skene", "--per-annotator", 60, "--budget", 60, "--out", "b.csv", "--force")
    assert run("later.csv", "--new", "ann, bob", "--annotators", "ann,bob,w5", *words) == 0
    assert {row["annotator"] for row in read_csv("b.csv")} == {"ann"}  # tells more than w5, who guesses; bob is alike
    assert run("later.csv", "--new", "w0,w4", "--annotators", "w0,w4,w5", "--prior", "then", *words) == 0
    assert {row["annotator"] for row in read_csv("b.csv")} == {"w0"}  # better than others, as it was found before
    whole = [
        f"t{task},{who},{(task + (task % 3 == place)) % 2}" for task in range(12) for place, who in enumerate("xyz")
    ]
    (folder / "whole.csv").write_text("task,annotator,label\n" + "\n".join(whole))
    assert run("whole.csv", "--new", "ann", "--budget", 9, "--worth", 5000, "--out", "c.csv") == 0
    assert [row["annotator"] for row in read_csv("c.csv")] == ["ann"] * 9  # nobody else can answer more
    capsys.readouterr()
    for more, message in (
        (["--new", "ann,vet"], "'vet' is empty, named twice, or has answered"),
        (["--prior", "none"], "none"),
        (["--prior", "then", "--rename", "yes=may"], "is about no, yes, and these annotations about may, no"),
    ):
        assert run("later.csv", *words, *more) in (3, 4)
        assert message in capsys.readouterr().err
    assert cli.main(["aggregate", "a.csv", "--method", "wawa", "--out", "votes"]) == 0
    assert "wawa has no confusion matrices" in refusal_of("next", "later.csv", *words, "--prior", "votes", code=3)


def test_what_a_label_is_worth_is_refused_where_it_would_not_count(folder, capsys, refusal_of):
    (folder / "texts_of.csv").write_text("task,annotator,label\n1,a,one\n1,b,two\n2,a,one\n2,b,one\n")
    (folder / "who.csv").write_text(
        "annotator,source\n" + "".join(f"w{i},{('person', 'model')[i < 2]}\n" for i in range(6))
    )
    for words, reason in (
        (["a.csv", "--multi-label"], "--multi-label"),
        (["texts_of.csv", "--kind", "free-text"], "--kind free-text"),
        (["a.csv", "--on-duplicate", "all", "--annotator-table", "who.csv"], "an annotator, models"),
    ):
        for option in ("--worth", "--target"):
            assert run(*words, "--budget", 5, option, ".5") == 4
            assert f"{option} does not go with" in (said := capsys.readouterr().err)
            assert reason in said
    (folder / "double.csv").write_text((folder / "a.csv").read_text() + "t0,w0,no\nt0,w0,yes\n")
    for words, reason in (
        (["a.csv", "--pay", "0"], "add --pay"),
        (["a.csv", "--annotator-table", "who.csv"], "add --pay"),
        (["double.csv", "--on-duplicate", "all", "--pay", "1"], "several labels from an annotator"),
    ):
        assert reason in refusal_of("quality", *words, "--worth", "3")
    redone = []
    for target in ("0", "1"):
        assert cli.main(["quality", "a.csv", "--target", target]) == 0
        redone += re.findall(r"tasks to redo +(\d+)", capsys.readouterr().out)
    assert redone[0] == "0" < redone[1]


def test_answers_that_are_promised_are_those_of_tasks_to_redo_and_other_tasks_have_a_column_of_another_name(folder):
    assert cli.main(["quality", "a.csv", "--bootstrap", "0", "--out", "q", "--format", "csv"]) == 0
    assert cli.main(["aggregate", "a.csv", "--out", "labels.csv"]) == 0
    labels = {row["task"]: row["answers_to_settle"] for row in read_csv("labels.csv")}
    redo = [row for row in read_csv("q/tasks.csv") if row["redo"]]
    others = [row for row in read_csv("q/tasks.csv") if not row["redo"]]
    assert all(row["further_answers"] == labels[row["task"]] for row in redo)
    assert not any(row["further_answers"] for row in others)
    assert any(int(labels[row["task"]]) for row in others), "needed, but not worth it"
    summary = json.loads((folder / "q" / "summary.json").read_text())
    assert (
        summary["answers_to_ask"] == summary["total_further_answers"] == sum(int(labels[row["task"]]) for row in redo)
    )


def test_where_everybody_has_answered_new_annotators_are_advised_and_get_the_questions(folder, capsys):
    rng, rows = np.random.default_rng(0), ["task,annotator,label"]
    rows += [f"t{task},w{who},{rng.integers(2)}" for task in range(40) for who in range(3)]
    (folder / "full.csv").write_text("\n".join(rows) + "\n")
    words = ("full.csv", "--worth", 500, "--budget", 9)
    assert run(*words) == 0
    advice = re.search(r"questions +0\n(?:.*\n)*why not more .*; (--new) NAME adds others", capsys.readouterr().out)
    assert run(*words, advice[1], "eve", "--out", "b.csv") == 0
    assert {row["annotator"] for row in read_csv("b.csv")} == {"eve"}


def test_volunteers_without_an_account_are_not_asked(folder, capsys):
    """Zooniverse names them not-logged-in-ADDRESS; nobody can send them a task. w0 to w3 are the better ones."""
    text = (folder / "a.csv").read_text()
    for name in ("w0", "w1", "w2"):
        text = text.replace(f",{name},", f",not-logged-in-{name}0a1b,")
    (folder / "a.csv").write_text(text)
    assert run("a.csv", "--budget", 30, "--out", "b.csv") == 0
    assert {row["annotator"] for row in read_csv("b.csv")} <= {"w3", "w4", "w5"}
    (shown,) = re.findall(r"annotators without an account, not asked +(\d+)", capsys.readouterr().out)
    assert int(shown) == 3
    assert run("a.csv", "--annotators", "not-logged-in-w00a1b", "--budget", 3, "--out", "b.csv") == 0  # as you say
    assert {row["annotator"] for row in read_csv("b.csv")} == {"not-logged-in-w00a1b"}
    assert "without an account" not in capsys.readouterr().out
    (folder / "a.csv").write_text(re.sub(",(w[345]),", r",not-logged-in-\1,", text))
    assert run("a.csv", "--out", "b.csv") == 3
    assert "--new A,B" in capsys.readouterr().err
    assert run("a.csv", "--new", "ann", "--out", "b.csv") == 0
    assert {row["annotator"] for row in read_csv("b.csv")} == {"ann"}


def test_no_task_gets_more_questions_than_settle_it(folder):
    assert cli.main(["aggregate", "a.csv", "--out", "labels.csv"]) == 0
    needed = {row["task"]: int(row["answers_to_settle"]) for row in read_csv("labels.csv")}
    assert run("a.csv", "--budget", 500, "--per-task", 6, "--per-annotator", 99, "--out", "b.csv") == 0
    tasks, counts = np.unique([row["task"] for row in read_csv("b.csv")], return_counts=True)
    assert counts.max() > 1
    assert all(count <= needed[task] for task, count in zip(tasks, counts, strict=True))


def test_several_labels_are_asked_about_together(folder, capsys):
    rng, rows = np.random.default_rng(0), ["task,annotator,label"]
    for task in range(40):
        for who in rng.choice(4, 2, replace=False):
            said = [name for place, name in enumerate("ab") if (task >> place) % 2 ^ (rng.random() < 0.15)]
            rows.append(f"{task},w{who},{';'.join(said)}")
    (folder / "m.csv").write_text("\n".join(rows))
    words = ("m.csv", "--multi-label", "--label-separator", ";", "--method", "dawid-skene")
    assert run(*words, "--per-annotator", 40, "--budget", 20, "--sure", 0.999, "--out", "b.csv") == 0
    assert re.search(r"when to stop +not known here", capsys.readouterr().out)
    from crowdzoo.aggregation import MultiLabel

    crowd = kind_of("classification").reading.read("m.csv", label_separator=";", on_duplicate="all", no_label="(none)")
    found = MultiLabel("dawid-skene").fit(crowd)
    for row in read_csv("b.csv"):
        task, who = int(row["task"]), found.annotators.tolist().index(row["annotator"])
        gain = 0.0
        for label in range(2):  # in the words of Bayes: what is said, and what is believed then
            yes, right = (
                found.probabilities[task, label],
                (found.specificity[who, label], found.sensitivity[who, label]),
            )
            says = {1: [1 - right[0], right[1]], 0: [right[0], 1 - right[1]]}
            for likely in says.values():
                joint = np.array(likely) * [1 - yes, yes]
                gain += (joint * np.log(np.maximum(joint, 1e-300) / joint.sum() / [1 - yes, yes])).sum()
        assert float(row["gain"]) == pytest.approx(gain, abs=2e-6)
    sure = np.maximum(found.probabilities, 1 - found.probabilities).min(axis=1) >= 0.999
    assert not {int(row["task"]) for row in read_csv("b.csv")} & set(np.flatnonzero(sure))
    rows = [
        f"{task},{who},{label}"
        for task in range(20) for who in "vwxyz" for label in "abcd" if (task < 10 or who == "z") and rng.random() < 0.7
    ]  # fmt: skip
    (folder / "n.csv").write_text("task,annotator,label\n" + "\n".join(rows))
    assert run("n.csv", "--multi-label", "--method", "dawid-skene", "--budget", 10, "--out", "c.csv") == 0
    asked = [row["annotator"] for row in read_csv("c.csv")]
    assert max(map(asked.count, asked)) <= 6 < len(asked) == 10  # an even share of the four who can answer more, twice


def test_texts_that_annotators_disagree_on_are_asked_of_those_who_agree_with_others(folder, capsys):
    said = {"a": ["it was late", "it was late", "it was late"], "b": ["a red hat", "a blue hat", "the old dog"]}
    rows = [
        f"{task}{copy},w{who},{text}" for task, of in said.items() for copy in range(5) for who, text in enumerate(of)
    ]
    rows = [row for row in rows if row[:2] != "b4" or ",w2," in row] + ["c,w0,only one"]
    (folder / "t.csv").write_text("task,annotator,text\n" + "\n".join(rows))
    (folder / "all.csv").write_text("task,text\n" + "".join(f"{row[:2]},x\n" for row in rows[::3]) + "c,x\nd,x\n")
    words = ("--kind", "free-text", "--columns", "label=text", "--method", "medoid", "--normalize", "words")
    assert run("t.csv", "all.csv", *words, "--new", "w9", "--per-annotator", 9, "--out", "b.csv") == 0
    asked = [(row["task"], row["annotator"]) for row in read_csv("b.csv")]
    assert [task for task, _ in asked][:2] == ["d", "b4"]  # nobody has answered; one who is seldom right
    assert "c" in [task for task, _ in asked][2:7]  # one who is mostly right; where all agree it is asked last
    assert not {"a0", "b0"} & {task for task, who in asked if who != "w9"}  # everybody has answered
    assert dict(asked)["b4"] == "w0"
    assert float(read_csv("b.csv")[0]["gain"]) > 0.5  # w / (1 + w) with a weight above that of a usual annotator
    assert run("t.csv", *words, "--sure", 0.5) == 0
    assert "5 of 11" in capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("--multi-label",)])
def test_copies_are_asked_as_one(tmp_path, here, capsys, words):
    rng = np.random.default_rng(1)
    truth, rows = rng.integers(0, 3, 150), []
    for task in range(150):
        said = np.where(rng.random(8) < 0.75, truth[task], rng.integers(0, 3, 8))
        said[1] = said[0]
        for who in rng.choice(7, 3, replace=False) + 1:
            rows += [(task, f"w{each}", f"c{said[each]}") for each in ([0, 1] if who == 1 else [who])]
    (tmp_path / "a.csv").write_text("task,annotator,label\n" + "".join(f"{t},{w},{c}\n" for t, w, c in rows))
    assert run("a.csv", *words, "--budget", 100, "--cost", "w0=2", "--out", "b.csv") == 0
    printed = capsys.readouterr().out
    assert re.search(r"copies, asked as one +w0, w1", printed)
    if not words:  # `quality` promises the same
        tasks, answers = (
            re.search(rf"{row} +(.+)", printed)[1] for row in ("tasks worth further answers", "to settle them, about")
        )
        assert cli.main(["quality", "a.csv", "--bootstrap", "0"]) == 0
        promise = f"About {answers} further answers on {tasks.split()[0]} tasks are worth their cost"
        assert promise in capsys.readouterr().out
    questions = read_csv("b.csv")
    asked = {row["annotator"] for row in questions}
    assert "w1" in asked, "who costs less"
    assert "w0" not in asked
    answered = {str(task) for task, who, _ in rows if who in ("w0", "w1")}
    assert not answered & {row["task"] for row in questions if row["annotator"] == "w1"}
    assert run("a.csv", *words, "--annotators", "w0,w2,w3", "--budget", 100, "--out", "b.csv") == 0
    assert "w0" in {row["annotator"] for row in read_csv("b.csv")}


def test_an_earlier_result_without_annotators_is_refused(folder, refusal_of):
    assert cli.main(["aggregate", "a.csv", "--method", "dawid-skene", "--out", "then"]) == 0
    table = pq.read_table("then/annotators.parquet")
    pq.write_table(table[:0], "then/annotators.parquet")
    assert "--prior then: has no annotators." in refusal_of("next", "a.csv", "--prior", "then", code=3)


def test_a_random_sample_is_drawn_for_gold_of_answered_tasks_and_never_twice(folder, capsys):
    assert run("a.csv", "texts.csv", "--gold-sample", 30, "--out", "gold1.csv") == 0
    rows = read_csv("gold1.csv")
    assert len({row["task"] for row in rows}) == 30
    assert {row["task"] for row in rows} <= {f"t{task}" for task in range(50)}  # the others have no answers
    assert all(row == {"task": row["task"], "gold": "", "text": f"text number {row['task'][1:]}"} for row in rows)
    assert re.search(r"probability of each +0\.6\n", capsys.readouterr().out)
    truth = {row["task"]: row["gold"] for row in read_csv("gold.csv")}
    (folder / "filled.csv").write_text("task,gold\n" + "".join(f"{row['task']},{truth[row['task']]}\n" for row in rows))
    assert cli.main(["aggregate", "a.csv", "--gold", "filled.csv", "--calibrate", "--out", "labels"]) == 0
    assert re.search(r"gold tasks, for calibration +30\n", capsys.readouterr().out)
    assert run("a.csv", "--gold-sample", 30, "--gold", "filled.csv", "--out", "more.json") == 0
    more = [entry["data"]["task"] for entry in json.loads((folder / "more.json").read_text("utf-8"))]
    assert sorted([*more, *(row["task"] for row in rows)]) == sorted(f"t{task}" for task in range(50))
    assert run("a.csv", "--gold-sample", 30, "--seed", 1, "--out", "gold2.csv") == 0
    assert {row["task"] for row in read_csv("gold2.csv")} != {row["task"] for row in rows}


def test_tasks_for_gold_are_not_drawn_over_what_was_filled_in_or_from_nothing(folder, capsys):
    assert run("a.csv", "--gold-sample", 30, "--out", "gold1.csv") == 0
    for words, message in (
        (["--gold-sample", 30, "--out", "gold1.csv"], "--force"),
        (["--gold-sample", 30], "add --out FILE.csv"),
        (["--gold", "gold.csv"], "add --gold-sample N"),
        (["--gold-sample", 30, "--worth", 3, "--out", "b.csv"], "--worth does not go with --gold-sample"),
        (["--gold-sample", 30, "--gold", "gold.csv", "--out", "b.csv"], "no answered task without gold is left"),
    ):
        assert run("a.csv", *words) in (3, 4), words
        assert message in capsys.readouterr().err, words
