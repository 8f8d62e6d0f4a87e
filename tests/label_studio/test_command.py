"""`crowdzoo label-studio` against a real server: what it writes, for every kind of question, and when it stops."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from urllib.parse import urlsplit

import httpx
import pandas as pd
import pytest
from server import CHOICES, User, label_studio, serving

from crowdzoo.commands.main import main

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("label_studio")]
TEXT = '<Text name="o" value="$text"/>'
WORDS = "Anna met Bob in Rome"


@pytest.fixture(scope="module")
def team(studio):
    return [studio.user(f"{name}@command.example.com") for name in ("ann", "bob", "cyd", "dan")]


@pytest.fixture(autouse=True)
def token(studio, monkeypatch):
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", studio.owner.token)


def item(kind, value, **more):
    return {"id": "r", "from_name": "c", "to_name": "o", "type": kind, "value": value, **more}


def choices(*labels):
    return [item("choices", {"choices": [*labels]})]


def span(start, end, label="PER"):
    value = {"start": start, "end": end, "text": WORDS[start:end], "labels": [label]}
    return item("labels", value, id=f"s{start}")


def box(x, size=(200, 100), **more):
    value = {"x": x, "y": 10, "width": 20, "height": 40, "rotation": 0, "rectanglelabels": ["car"]}
    return [item("rectanglelabels", value, original_width=size[0], original_height=size[1], image_rotation=0, **more)]


def polygon(x):
    value = {"points": [[x, 0], [x + 50, 0], [x + 50, 100], [x, 100]], "polygonlabels": ["car"]}
    return [item("polygonlabels", value, original_width=8, original_height=4, image_rotation=0)]


def imported(studio, team, config, entries, **settings):
    """A project of tasks with answers, (data, an answer of each of the team); the project's number."""
    tasks = [
        {"data": data, "annotations": [
            {"result": result, "completed_by": user.id, "ground_truth": False, "lead_time": 4.0}
            for user, result in zip(team, answers, strict=False)
        ]}
        for data, answers in entries
    ]  # fmt: skip
    return studio.project(config, tasks, **settings)


def crowdzoo(studio, project, folder, *words):
    return main(["label-studio", studio.url, "--project", str(project), "--out", str(folder), *words])


def wait_until(is_so):
    end = time.monotonic() + 240
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


def labels(folder):
    return pd.read_parquet(folder / "labels" / "tasks.parquet")


# question -> its configuration, the data of tasks, the answers of the team, the column of the labels, and what it holds
QUESTIONS = {
    "choices": (
        f'<View>{TEXT}<Choices name="c" toName="o"><Choice value="yes"/><Choice value="no"/><Choice value="never"/>'
        "</Choices></View>",
        [({"text": "a"}, [choices("yes")] * 3), ({"text": "b"}, [choices("no")] * 4), ({"text": "c"}, [])],
        "label", ["yes", "no"],
    ),
    "several": (
        f'<View>{TEXT}<Choices name="c" toName="o" choice="multiple"><Choice value="x"/><Choice value="y"/></Choices>'
        "</View>",
        [({"text": "a"}, [choices("x", "y")] * 3), ({"text": "b"}, [choices("y")] * 3), ({"text": "c"}, [[]] * 3)],
        "labels", ["x|y", "y", ""],
    ),
    "taxonomy": (
        f'<View>{TEXT}<Taxonomy name="c" toName="o" maxUsages="1"><Choice value="x"><Choice value="y"/></Choice>'
        '<Choice value="z"/></Taxonomy></View>',
        [({"text": "a"}, [[item("taxonomy", {"taxonomy": [["x", "y"]]})]] * 3),
         ({"text": "b"}, [[item("taxonomy", {"taxonomy": [["z"]]})]] * 3)],
        "label", ["x / y", "z"],
    ),
    "rating": (
        f'<View>{TEXT}<Rating name="c" toName="o" maxRating="5"/></View>',
        [({"text": str(each)}, [[item("rating", {"rating": stars})] for stars in each])
         for each in ((5, 5, 4), (1, 1, 2), (3, 3, 3))],
        "estimate", pytest.approx([14 / 3, 4 / 3, 3], abs=0.5),
    ),
    "texts": (
        f'<View>{TEXT}<TextArea name="c" toName="o"/></View>',
        [({"text": "a"}, [[item("textarea", {"text": ["one two"]})]] * 3),
         ({"text": "b"}, [[item("textarea", {"text": ["three"]})]] * 3)],
        "text", ["one two", "three"],
    ),
    "spans": (
        f'<View>{TEXT}<Labels name="c" toName="o"><Label value="PER"/><Label value="LOC"/></Labels></View>',
        [({"text": WORDS}, [[span(0, 4), span(16, 20, "LOC")]] * 3), ({"text": "Bob"}, [[]] * 3)],
        None, None,
    ),
    "boxes": (
        '<View><Image name="o" value="$image"/><RectangleLabels name="c" toName="o"><Label value="car"/>'
        "</RectangleLabels></View>",
        [({"image": f"https://example.com/{x}.jpg"}, [box(x)] * 3) for x in (10, 30)],
        None, None,
    ),
    "polygons": (
        '<View><Image name="o" value="$image"/><PolygonLabels name="c" toName="o"><Label value="car"/>'
        "</PolygonLabels></View>",
        [({"image": f"https://example.com/{x}.jpg"}, [polygon(x)] * 3) for x in (0, 50)],
        None, None,
    ),
    "pairwise": (
        '<View><Pairwise name="c" toName="o,p"/><Text name="o" value="$left"/><Text name="p" value="$right"/></View>',
        [({"left": "good", "right": "bad"}, [[item("pairwise", {"selected": "left"})]] * 3),
         ({"left": "bad", "right": "good"}, [[item("pairwise", {"selected": "right"})]] * 3)],
        None, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_round_writes_labels_tables_and_page(studio, team, question, tmp_path, capsys):
    config, entries, column, expected = QUESTIONS[question]
    project = imported(studio, team, config, entries, title="Our project")
    assert crowdzoo(studio, project, tmp_path) == 0
    output = capsys.readouterr()
    answers = sum(len(each) for _, each in entries)
    assert f"new tasks: {len(entries)}, new answers: {answers} (" in output.out
    assert studio.owner.token not in output.out + output.err
    page = (tmp_path / "report.html").read_text()
    assert f"<title>Our project, c: {time.strftime('%d %B %Y', time.gmtime())}" in page
    assert 'http-equiv="refresh"' not in page
    people = pd.read_parquet(tmp_path / "sheets" / "annotators.parquet")
    assert {*people["annotator"]} == {user.email for user in team[: max(len(each) for _, each in entries)]}
    assert (tmp_path / "sheets" / "tasks.parquet").is_file()
    if column is not None:
        assert labels(tmp_path)[column].tolist() == expected
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or studio.owner.token.encode() not in file.read_bytes()
    assert crowdzoo(studio, project, tmp_path) == 0
    assert "nothing changed" in capsys.readouterr().out


def test_an_answer_that_cannot_be_read_is_kept_apart(studio, team, tmp_path, capsys):
    config, entries, *_ = QUESTIONS["boxes"]
    turned = [{**box(10)[0], "image_rotation": 90}]
    project = imported(studio, team, config, [*entries, ({"image": "https://example.com/t.jpg"}, [turned] * 2)])
    assert crowdzoo(studio, project, tmp_path) == 0
    assert f"2 answers that cannot be read are in {tmp_path / 'rejects.csv'}" in capsys.readouterr().err
    assert "image_rotation 90" in (tmp_path / "rejects.csv").read_text()


def test_ground_truth_is_gold(studio, team, tmp_path):
    config, entries, *_ = QUESTIONS["choices"]
    project = imported(studio, team, config, entries)
    first = studio.owner.json("GET", "/api/tasks", project=project, page_size=9)["tasks"][0]["id"]
    body = {"result": choices("no"), "ground_truth": True}
    studio.owner.json("POST", f"/api/tasks/{first}/annotations/", body)
    crowdzoo(studio, project, tmp_path)
    people = pd.read_parquet(tmp_path / "sheets" / "annotators.parquet").set_index("annotator")
    assert people.loc[team[0].email, ["gold", "gold_share"]].tolist() == [1, 0]  # all said yes
    assert studio.owner.email not in people.index


def test_a_dry_run_sends_nothing(studio, team, tmp_path, capsys):
    config, entries, *_ = QUESTIONS["choices"]
    project = imported(studio, team, config, entries)
    before = studio.owner.json("GET", "/api/tasks", project=project, fields="all")
    assert crowdzoo(studio, project, tmp_path, "--push", "predictions,views,next", "--dry-run") == 0
    assert "predictions: 2 new" in capsys.readouterr().out
    assert studio.owner.json("GET", "/api/tasks", project=project, fields="all") == before
    assert studio.owner.json("GET", "/api/dm/views/", project=project) == []
    assert crowdzoo(studio, project, tmp_path, "--push", "predictions,views") == 0
    assert len(studio.owner.json("GET", "/api/predictions/", project=project)) == 2
    assert len(studio.owner.json("GET", "/api/dm/views/", project=project)) == 3


def test_several_questions_are_listed_and_one_is_chosen(studio, team, tmp_path, capsys):
    config = f"""<View>{TEXT}<Choices name="c" toName="o"><Choice value="a"/><Choice value="b"/></Choices>
      <Rating name="stars" toName="o"/></View>"""
    stars = {**item("rating", {"rating": 2}), "from_name": "stars"}
    project = imported(studio, team, config, [({"text": "x"}, [[*choices("b"), stars]] * 3)])
    assert crowdzoo(studio, project, tmp_path) == 4
    assert "choose one with --field NAME: c (Choices), stars (Rating)" in capsys.readouterr().err
    assert crowdzoo(studio, project, tmp_path, "--field", "c") == 0
    assert labels(tmp_path)["label"].tolist() == ["b"]


def test_no_answer_yet(studio, tmp_path, capsys):
    project = studio.project(QUESTIONS["choices"][0], [{"data": {"text": "x"}}])
    assert crowdzoo(studio, project, tmp_path, "--push", "predictions") == 0
    assert "No task has an answer yet." in capsys.readouterr().out


def started(studio, project, folder, *words):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "crowdzoo", "label-studio", studio.url, "--project", str(project), "--out", folder]
    return subprocess.Popen(
        [*map(str, command), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip


def test_a_command_that_is_killed_again_and_again_ends_with_the_same_labels(studio, team, tmp_path):
    config, entries, *_ = QUESTIONS["choices"]
    project, rng = imported(studio, team, config, entries * 50), random.Random(0)
    for _ in range(5):
        process = started(studio, project, tmp_path / "killed")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=rng.uniform(1, 8))
        process.kill()
        process.communicate()
    for folder in ("killed", "whole"):
        assert crowdzoo(studio, project, tmp_path / folder) == 0
    for file in ("tasks.json", "data/annotations.csv", "labels/tasks.parquet", "sheets/tasks.parquet", "next.csv"):
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    leftovers = [each.name for each in (tmp_path / "killed").rglob(".*") if "crowdzoo-" in each.name]
    assert leftovers == []


def test_a_server_that_restarts_is_waited_for(tmp_path, monkeypatch):
    with label_studio(tmp_path / "server") as first:
        port = urlsplit(first.url).port
        user = first.user("ann@restart.example.com")
        project = imported(first, [user], *QUESTIONS["choices"][:2])
        monkeypatch.setenv("LABEL_STUDIO_API_KEY", user.token)
        process = started(first, project, tmp_path / "out", "--every", "1")
        page = tmp_path / "out" / "report.html"
        wait_until(page.is_file)
    try:
        with serving(tmp_path / "server", port), httpx.Client(base_url=first.url, timeout=60) as http:
            user = User(first.url, user.email, user.id, user.token, http)
            third = user.json("GET", "/api/tasks", project=project, page_size=9)["tasks"][2]["id"]
            user.json("POST", f"/api/tasks/{third}/annotations/", {"result": choices("never"), "lead_time": 2})
            wait_until(lambda: "new answers: 1" in page.read_text())
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert "does not answer" in errors
    assert "trying again in" in errors
    assert "new answers: 1" in output


def test_rounds_go_on_until_they_are_interrupted(studio, team, tmp_path):
    config, entries, *_ = QUESTIONS["choices"]
    project = imported(studio, team, config, entries)
    process = started(studio, project, tmp_path / "out", "--every", "1")
    page = tmp_path / "out" / "report.html"
    try:
        wait_until(lambda: page.is_file() and '<meta http-equiv="refresh" content="1">' in page.read_text())
        third = studio.owner.json("GET", "/api/tasks", project=project, page_size=9)["tasks"][2]["id"]
        body = {"result": choices("never"), "lead_time": 2}
        team[0].json("POST", f"/api/tasks/{third}/annotations/", body)
        wait_until(lambda: "new answers: 1" in page.read_text())
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "rounds; the results are in" in errors
    assert "new answers: 1" in output
    assert '"refresh"' not in page.read_text()
    assert json.loads((tmp_path / "out" / "report.json").read_text())["changes"]
    assert labels(tmp_path / "out")["label"].tolist() == ["yes", "no", "never"]


def test_rounds_end_where_no_task_is_worth_a_further_answer(studio, team, tmp_path, capsys):
    config = CHOICES.format('<Choice value="a"/><Choice value="b"/>').replace("kind", "c").replace('"text" v', '"o" v')
    entries = [({"text": f"text {n}"}, [choices("ab"[n % 2])] * 4) for n in range(12)]
    project = imported(studio, team, config.replace('toName="text"', 'toName="o"'), entries)
    assert crowdzoo(studio, project, tmp_path, "--every", "1") == 0
    assert "No task is worth a further answer." in capsys.readouterr().out
