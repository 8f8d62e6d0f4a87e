"""What who runs a crowd asks: whom to look at, what is owed, what to ask again."""

import json
import re
import shlex
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from command_line import actions_of, flags_of, run
from csv_files import read_csv, write_csv

from crowdzoo.commands.compare import OWN, TRAINING
from crowdzoo.commands.options import add_reading
from crowdzoo.errors import ConfigError
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.page_parts import annotators_first

CLASSES = ("furniture", "tools", "toys", "garden")
BAD = {3: "random", 8: "random", 14: "constant", 19: "swap"}
READ = ("--platform", "mturk", "--on-duplicate", "last")
START = datetime(2026, 3, 1, tzinfo=timezone.utc)


def name(who: int) -> str:
    return f"{('Jürgen Müller', 'Zoë Köhler', 'Ann Öst')[who % 3]} {who}"


@pytest.fixture
def hits(tmp_path, here):
    """400 tasks, 5 of 25 annotators each: 2 guess, 1 says one class, 1 swaps two; rows twice, and without an answer."""
    rng = np.random.default_rng(3)
    skill, truth = rng.uniform(0.75, 0.95, 25), rng.integers(0, 4, 400)
    rows = []
    for task, true in enumerate(truth.tolist()):
        for place, who in enumerate(rng.permutation(25)[:5].tolist()):
            said = true if rng.random() < skill[who] else int(rng.integers(4))
            bad = BAD.get(who)
            said = {"random": int(rng.integers(4)), "constant": 0, "swap": {0: 1, 1: 0}.get(said, said)}.get(bad, said)
            seconds = 2 if bad in ("random", "constant") else 14
            when = f"{START + timedelta(minutes=10 * task + place):%a %b %d %H:%M:%S UTC %Y}"
            rows.append([f"HIT{task:03}", name(who), "Approved", when, seconds, f"{task}.jpg", CLASSES[said]])
    rows += [list(row) for row in rows[:4]]
    for row in rows[100:110]:
        row[-1] = ""
    header = ["HITId", "WorkerId", "AssignmentStatus", "SubmitTime", "WorkTimeInSeconds", "Input.image", "Answer.class"]
    write_csv("hits.csv", header, *(rows[row] for row in rng.permutation(len(rows))))
    write_csv("gold.csv", ["HIT", "truth"], *([f"HIT{i:03}", CLASSES[truth[i]]] for i in range(0, 400, 5)))
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_sheet_of_people_names_the_four_with_what_they_do_and_that_of_tasks_what_to_ask_again(hits, capsys):
    gold = ("--gold", "gold.csv", "--gold-columns", "task=HIT,gold=truth")
    assert (
        run("quality", "hits.csv", *READ, *gold, "--pay", 0.04, "--out", "q", "--format", "csv", "--bootstrap", 0) == 0
    )
    people, tasks = read_csv("q/annotators.csv"), read_csv("q/tasks.csv")
    reasons = {
        "random": "answers at random", "constant": "always says furniture", "swap": "exchanges furniture and tools",
    }  # fmt: skip
    # a short time is told with a reason, never alone
    found = {row["annotator"]: row["reason"].partition(", 2 s per answer")[0] for row in people[:4]}
    assert found == {name(who): reasons[BAD[who]] for who in BAD}
    assert not any(row["flag"] or row["reason"] for row in people[4:])
    worst = [float(row["reliability"]) for row in people[4:]]
    assert worst == sorted(worst)
    hits = read_csv("hits.csv")
    answers = {row["WorkerId"]: 0 for row in hits}
    for row in {(row["HITId"], row["WorkerId"]): row for row in hits if row["Answer.class"]}.values():
        answers[row["WorkerId"]] += 1
    truth = {row["HIT"]: row["truth"] for row in read_csv("gold.csv")}
    for row in people:
        who = int(row["annotator"].split()[-1])
        said = [each for each in hits if each["WorkerId"] == row["annotator"] and each["HITId"] in truth]
        right = {each["HITId"] for each in said if each["Answer.class"] == truth[each["HITId"]]}
        assert int(row["annotations"]) == answers[row["annotator"]]
        assert float(row["due"]) == pytest.approx(0.04 * answers[row["annotator"]])
        assert float(row["seconds"]) == (2 if BAD.get(who) in ("random", "constant") else 14)
        assert float(row["gold_share"]) * int(row["gold"]) == pytest.approx(len(right))
        assert (row["gain_without"] != "") == (who in BAD)
        assert row["agrees_with"] != row["annotator"]
    again = [row for row in tasks if row["redo"]]
    assert tasks[: len(again)] == again
    assert all(float(row["cost"]) == pytest.approx(0.04 * int(row["further_answers"])) for row in again)
    assert {row["redo"] for row in again} <= {"tied votes", "not settled"}
    assert all(float(row["settled"]) < 0.95 for row in again)
    printed = capsys.readouterr().out
    assert re.search(rf"tasks to redo +{len(again)}\n", printed)
    assert f"{sum(answers.values()) * 0.04:.2f}" in printed


@pytest.fixture
def dated(tmp_path, here):
    """Six tasks of three annotators, one a day in March; who is c answered none of the first three."""
    rows = [
        f"t{i},{who},{('no', 'yes')[i % 2]},2026-03-0{i + 1}" for i in range(6) for who in "abc" if who < "c" or i > 2
    ]
    (tmp_path / "a.csv").write_text("\n".join(["task,annotator,label,timestamp", *rows]) + "\n")
    (tmp_path / "texts.csv").write_text("task,text\n" + "".join(f"t{i},text {i}\n" for i in range(6)))


@pytest.mark.parametrize(
    ("words", "annotations", "tasks", "annotators"),
    [
        (("--only", "a,c"), 9, 6, 2),
        (("--only", "c"), 3, 3, 1),
        (("--since", "2026-03-05"), 6, 2, 3),
        (("--since", "2026-03-05T00:00:01+00:00", "--only", "a,b"), 2, 1, 2),
        (("--until", "2026-03-05"), 9, 4, 3),
        (("--since", "2026-03-02", "--until", "2026-03-04"), 4, 2, 2),
        (("--exclude", "b:2026-03-02..2026-03-04,c:2026-03-05..,a:..2026-03-02"), 10, 6, 3),
    ],
)
def test_some_annotators_and_days_are_as_if_there_were_no_others(dated, words, annotations, tasks, annotators, capsys):
    commands = (
        ("quality", "a.csv", "--bootstrap", 0, "--method", "none"),
        ("next", "a.csv", "--method", "one-coin"),
        ("aggregate", "a.csv", "--method", "majority-vote", "--out", "labels", "--force"),
    )
    for command in commands:
        if command[0] == "next" and {"--since", "--until"} & {*words}:  # see below
            continue
        assert run(*command, *words) == 0
        lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines() if "  " in line)
        found = [int(lines[name]) for name in ("annotations", "tasks", "annotators")]
        assert found == [annotations, tasks, annotators], command


def test_tasks_of_a_file_of_instances_stay_and_pairs_are_chosen_too(dated, tmp_path):
    assert (
        run("next", "a.csv", "texts.csv", "--method", "one-coin", "--only", "c", "--out", "b.csv", "--per-task", 1) == 0
    )
    assert {row["task"] for row in read_csv("b.csv")} == {"t0", "t1", "t2"}  # that c did not see
    (tmp_path / "p.csv").write_text("left,right,annotator,label\nx,y,a,left\ny,z,b,right\nz,x,a,left\n")
    assert run("aggregate", "p.csv", "--kind", "preference", "--only", "b", "--out", "p", "--format", "csv") == 0
    assert {row["task"] for row in read_csv("p/tasks.csv")} == {"y", "z"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--only", "a,x"), "--only: no annotation of a.csv is by 'x'"),
        (
            ("--since", "2027-01-01"),
            "a.csv: --since leaves no annotation of 15. Timestamps are from 2026-03-01 00:00 to 2026-03-06 00:00.",
        ),
        (("--until", "2026-03-01"), "a.csv: --until leaves no annotation of 15"),
        (("--since", "2026-03-02", "--until", "2026-03-02"), "--until is not after --since. Swap the two dates."),
        (("--until", "2026-03-05", "--columns", "timestamp="), "has no timestamps, which --until needs"),
        (("--exclude", "a:2026-03-04..2026-03-02"), "--exclude a:2026-03-04..2026-03-02: the end is not after the"),
        (("--exclude", "a:2026-03-32.."), "'2026-03-32' is not a date such as 2026-03-01"),
        (("--exclude", "x:..2026-03-02"), "--exclude: no annotation of a.csv is by 'x'"),
        (("--since", "2026-03-05", "--columns", "timestamp="), "has no timestamps"),
        (("--only", ","), "has an empty name"),
    ],
)
def test_what_chooses_nothing_is_refused(dated, words, told, capsys):
    assert run("quality", "a.csv", *words) != 0
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_next_asks_nobody_again_for_want_of_other_answers(dated, option, capsys):
    assert run("next", "a.csv", "--method", "one-coin", option, "2026-03-05") == 4
    assert f"{option}: answers that are left out would be asked for again" in capsys.readouterr().err


def test_times_are_chosen_in_python_too(dated):
    read, second = kind_of("classification").reading.read, datetime(2026, 3, 2, tzinfo=timezone.utc).timestamp()
    crowd = read("a.csv", since=second, until=second + 86400, exclude=["c", "b:2026-03-02..", "a:..2026-03-02"])
    assert (crowd.tasks.tolist(), crowd.annotators.tolist()) == (["t1"], ["a"])
    with pytest.raises(ConfigError, match=r"exclude='a:2026-13-01..': '2026-13-01' is not a date"):
        read("a.csv", exclude=["a:2026-13-01.."])


def test_the_numbers_of_a_page_have_the_times_of_reading(dated, tmp_path):
    times = ("--since", "2026-03-02", "--until", "2026-03-06", "--exclude", "b:2026-03-04..")
    assert run("report", "a.csv", *times, "--out", "r.html") == 0
    options = json.loads((tmp_path / "r.json").read_text())["options"]
    assert [options[name] for name in ("since", "until")] == [1772409600.0, 1772755200.0]  # GNU date


def test_the_line_that_compare_prints_reads_the_same_table(tmp_path, here, capsys):
    rows = [f"t{task},a|b|c,{'yn'[task % 2]}|{'yn'[task % 2]}|no" for task in range(66)]
    (tmp_path / "c.csv").write_text("\n".join(["task,annotator,label", *rows, "t66,a|b,-1|y"]) + "\n")
    (tmp_path / "g.csv").write_text("task,gold\n" + "".join(f"t{task},{'yn'[task % 2]}\n" for task in range(66)))
    reading = ("--annotator-separator", "|", "--rename", "no=n", "--missing=-1")
    assert run("compare", "c.csv", "--gold", "g.csv", "--methods", "wawa", *reading, "--out", "runs") == 0
    line = shlex.split(capsys.readouterr().out.strip().splitlines()[-1])
    assert run(*line[1:]) == 0
    found = json.loads(Path("result/summary.json").read_text())
    assert (found["num_annotations"], found["classes"]) == (199, ["n", "y"])


def test_the_line_that_compare_prints_has_all_options_of_reading_and_none_that_its_command_lacks():
    assert {action.dest for action in actions_of(add_reading)} & {*OWN} == {"rejects"}
    flags = {name: flags_of(name) for name in ("compare", "train", "aggregate")}
    own = {f"--{name.replace('_', '-')}" for name in OWN}
    assert flags["compare"] - own <= flags["train"] | {"--multi-label"}  # which is refused with instances
    trains = {f"--{name.replace('_', '-')}" for name in TRAINING} | {"--base-set", "--encoder-set", "--inputs"}
    left = flags["compare"] - own - trains - flags["aggregate"] - {"--outside-images"}
    assert {flag for flag in left if not flag.startswith("--no-")} == set()


def test_sums_of_money_stand_in_the_summary(dated, capsys):
    assert run("quality", "a.csv", "--pay", 0.5, "--bootstrap", 0, "--format", "csv") == 4
    assert "which need a folder: add --out DIR." in capsys.readouterr().err
    assert run("quality", "a.csv", "--pay", 0.5, "--bootstrap", 0, "--format", "csv", "--out", "q") == 0
    found = json.loads(Path("q", "summary.json").read_text())
    for name, file in (("due", "annotators"), ("further_answers", "tasks"), ("cost", "tasks")):
        total = sum(float(row[name] or 0) for row in read_csv(f"q/{file}.csv"))
        assert found[f"total_{name}"] == pytest.approx(total)
    assert f"due for all annotations  {found['total_due']:,.2f}" in capsys.readouterr().out
    assert run("quality", "a.csv", "--only", "c", "--bootstrap", 0) == 0
    assert "further answers" not in capsys.readouterr().out  # nothing says what another would tell


def test_pay_is_what_a_question_costs(dated):
    words = ("--method", "one-coin", "--pay", 0.5, "--cost", "c=2", "--per-task", 3, "--out", "b.csv")
    assert run("next", "a.csv", "texts.csv", "--only", "c,b", *words) == 0
    assert {row["annotator"]: float(row["cost"]) for row in read_csv("b.csv")} == {"c": 2}  # b has answered all
    assert run("next", "a.csv", "texts.csv", "--only", "c", *words[:4], "--out", "d.csv") == 0
    assert {float(row["cost"]) for row in read_csv("d.csv")} == {0.5}


def test_a_report_takes_other_names_of_gold_and_says_how_far_its_share_may_be_off(dated, tmp_path, capsys):
    (tmp_path / "gold.csv").write_text("id,truth\nt0,no\nt1,yes\nt2,no\nt3,no\n")
    words = ("--gold", "gold.csv", "--gold-columns", "task=id,gold=truth", "--curve", 0, "--bootstrap", 0)
    assert run("report", "a.csv", *words, "--out", "r.html") == 0
    # three of four: Wilson's interval
    assert "75 % of the labels are correct (30 to 95 %), as measured on" in capsys.readouterr().out


def test_who_has_a_serious_note_comes_first_on_the_page():
    values = {"annotations": [9, 8, 1, 2], "notes": [[], ["few"], ["random"], ["same"]]}
    assert annotators_first(values, 3) == [3, 2, 0]


def test_quality_takes_several_labels_per_answer(tmp_path, refusal_of):
    answers = {"ann": ("x", "y"), "bob": ("x", "y"), "cid": ("x",)}
    rows = [(f"t{number}", who, label) for number in range(9) for who, said in answers.items() for label in said]
    header = ("task", "annotator", "label")
    write_csv(tmp_path / "a.csv", header, *rows, ("t9", "ann", ""), ("t9", "bob", "y"))
    words = ["quality", str(tmp_path / "a.csv"), "--multi-label", "--format", "csv", "--out", str(tmp_path / "sheets")]
    assert run(*words) == 0
    summary = json.loads((tmp_path / "sheets" / "summary.json").read_text())
    assert (summary["annotations"], summary["tasks"]) == (29, 10)
    people = {row["annotator"]: row for row in read_csv(tmp_path / "sheets" / "annotators.csv")}
    assert {who: row["annotations"] for who, row in people.items()} == {"ann": "10", "bob": "10", "cid": "9"}
    assert "--gold does not go with --multi-label" in refusal_of(*words, "--force", "--gold", str(tmp_path / "a.csv"))
