"""What crowdzoo knows of a project, against a real server: every change there is a change here."""

import itertools
import json
import random
import re
import time
from pathlib import Path

import numpy as np
import pytest
from server import CHOICES

from crowdzoo.aggregation import MajorityVote
from crowdzoo.errors import ConfigError
from crowdzoo.label_studio import Client, LabelStudioError, Project
from crowdzoo.label_studio import project as project_module

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("label_studio")]
CONFIG = CHOICES.format('<Choice value="cat"/><Choice value="dog"/><Choice value="owl"/>')


@pytest.fixture(scope="module")
def team(studio):
    return [studio.user(f"{name}@project.example.com") for name in ("ann", "bob", "cyd")]


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Changes are asked for from the second on in which the last round began, so that a round is not one of all."""
    monkeypatch.setattr(project_module, "MARGIN", project_module.timedelta(seconds=0))


OPEN = []


@pytest.fixture(autouse=True)
def closing():
    yield
    while OPEN:
        OPEN.pop().close()


def opened(studio, number, folder=None):
    OPEN.append(Project(studio.url, number, studio.owner.token, folder=folder))
    return OPEN[-1]


def made(studio, tasks=4, config=CONFIG, **settings):
    """A project with tasks, their numbers, and the project as crowdzoo sees it."""
    number = studio.project(config, [{"data": {"text": f"text {n}"}} for n in range(tasks)], **settings)
    project = opened(studio, number)
    project.pull()
    return project, project.store.ids()


def answers(project):
    """(task, user's name, label) of every answer that counts, and of gold with None for the user."""
    return sorted(
        (task["id"], "gold" if one["ground_truth"] else one["completed_by"]["email"].partition("@")[0],
         one["result"][0]["value"]["choices"][0])
        for task in project.tasks() for one in task["annotations"]
    )  # fmt: skip


def test_every_change_on_the_server_is_pulled(studio, team):
    ann, bob, _ = team
    project, (first, second, third, fourth) = made(studio)
    owner = studio.owner
    one, two = ann.choose(first, "cat"), bob.choose(first, "dog")
    ann.choose(second, "owl")
    ann.choose(third, None)  # skips
    ann.json("POST", f"/api/tasks/{fourth}/drafts", {"result": two["result"], "lead_time": 1})
    changes = project.pull()
    assert changes == {"new answers": 4}  # a skipped task is one
    assert answers(project) == [(first, "ann", "cat"), (first, "bob", "dog"), (second, "ann", "owl")]
    assert project.pull() == {}

    bob.json("DELETE", f"/api/annotations/{two['id']}/")
    ann.json("PATCH", f"/api/annotations/{one['id']}/", {"result": two["result"]})
    assert project.pull() == {"deleted answers": 1, "changed answers": 1}
    assert answers(project) == [(first, "ann", "dog"), (second, "ann", "owl")]

    owner.json("DELETE", f"/api/tasks/{second}/")
    owner.json("POST", f"/api/projects/{project.number}/import", [{"data": {"text": "new"}}])
    owner.json("PATCH", f"/api/tasks/{third}/", {"data": {"text": "other"}})
    assert project.pull() == {"deleted tasks": 1, "deleted answers": 1, "new tasks": 1, "changed tasks": 1}
    assert answers(project) == [(first, "ann", "dog")]
    assert [task["data"]["text"] for task in project.tasks()] == ["text 0", "other", "text 3", "new"]

    bob.choose(fourth, "cat")
    project.pull()
    chosen = {"selectedItems": {"all": False, "included": [first, fourth]}}
    owner.json("POST", "/api/dm/actions", chosen, id="delete_tasks_annotations", project=project.number)
    assert project.pull() == {"deleted answers": 2}
    owner.json("POST", "/api/dm/actions", {"selectedItems": {"all": True, "excluded": []}}, id="delete_tasks",
               project=project.number)  # fmt: skip
    assert project.pull() == {"deleted tasks": 4, "deleted answers": 1}  # the skipped one
    assert project.pull() == {}
    assert list(project.tasks()) == []


def test_changes_without_a_time_are_found_by_the_totals(studio, team, monkeypatch):
    """The server adds answers with its action "propagate" and deletes tasks without saying when."""
    monkeypatch.setattr(project_module, "PAGE_SIZE", 3)  # so that the search divides the tasks
    project, ids = made(studio, 20)
    source = team[0].choose(ids[7], "owl")
    project.pull()
    body = {"source_annotation_id": source["id"], "selectedItems": {"all": False, "included": [ids[3], ids[18]]}}
    studio.owner.json("POST", "/api/dm/actions", body, id="propagate_annotations", project=project.number)
    for gone in (ids[0], ids[11], ids[12]):
        studio.owner.json("DELETE", f"/api/tasks/{gone}/")
    assert project.pull() == {"new answers": 2, "deleted tasks": 3}
    assert [task for task, _, label in answers(project) if label == "owl"] == [ids[3], ids[7], ids[18]]
    assert project.store.ids() == [number for number in ids if number not in (ids[0], ids[11], ids[12])]


def test_of_two_answers_by_one_user_the_one_updated_last_counts(studio, team):
    ann = team[0]
    project, (first, *_) = made(studio)
    older, _ = ann.choose(first, "cat"), ann.choose(first, "dog")
    project.pull()
    assert answers(project) == [(first, "ann", "dog")]
    ann.json("PATCH", f"/api/annotations/{older['id']}/", {"lead_time": 9.0})
    project.pull()
    assert answers(project) == [(first, "ann", "cat")]
    ann.choose(first, None)  # skipping is no answer
    project.pull()
    assert answers(project) == [(first, "ann", "cat")]


def test_ground_truth_is_gold_and_predictions_are_no_answers(studio, team):
    ann, bob, cyd = team
    project, (first, second, *_) = made(studio)
    ann.choose(first, "cat")
    truth = bob.choose(first, "dog")
    bob.json("PATCH", f"/api/annotations/{truth['id']}/", {"ground_truth": True})
    cyd.choose(second, "owl")
    items = [{"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": ["owl"]}}]
    body = {"task": first, "result": items, "score": 0.9, "model_version": "crowdzoo"}
    studio.owner.json("POST", "/api/predictions/", body)
    everything = {"selectedItems": {"all": True, "excluded": []}}
    studio.owner.json("POST", "/api/dm/actions", everything, id="predictions_to_annotations", project=project.number)
    assert studio.owner.json("GET", f"/api/tasks/{first}/")["total_annotations"] == 3
    project.pull()
    assert answers(project) == [(first, "ann", "cat"), (first, "gold", "dog"), (second, "cyd", "owl")]
    [stored] = studio.owner.json("GET", "/api/predictions/", project=project.number)
    studio.owner.json(
        "DELETE", f"/api/predictions/{stored['id']}/"
    )  # now nothing there says what the answer was made of
    assert project.pull() == {}
    votes = project.annotations()
    assert len(votes) == 2
    assert votes.classes.tolist() == ["cat", "dog", "owl"]


def test_imported_answers_that_are_all_ground_truth_are_answers(studio, team):
    """An import marks every answer as ground truth; two of one task cannot both be."""
    project, _ = made(studio, 0)
    items = [{"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": ["owl"]}}]
    both = [{"result": items, "completed_by": user.id} for user in team[:2]]
    tasks = [{"data": {"text": "a"}, "annotations": both}, {"data": {"text": "b"}, "annotations": both[:1]}]
    studio.owner.json("POST", f"/api/projects/{project.number}/import", tasks)
    project.pull()
    assert [who for _, who, _ in answers(project)] == ["ann", "bob", "gold"]


def test_a_file_of_the_export_has_what_counts(studio, team, tmp_path):
    project, (first, *_) = made(studio, 2)
    team[0].choose(first, "cat")
    project.pull()
    assert project.write(tmp_path / "tasks.json") == 1
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert [len(task["annotations"]) for task in tasks] == [1, 0]
    assert tasks[0]["annotations"][0]["completed_by"]["email"] == "ann@project.example.com"


class Killed(Exception):  # noqa: N818
    """The process ends here."""


class Dying(Client):
    """A client whose process is killed before one of its requests."""

    def __init__(self, url, token, life):
        super().__init__(url, token)
        self.life = life

    def _request(self, *arguments):
        self.life -= 1
        if self.life < 0:
            raise Killed
        return super()._request(*arguments)


def test_a_pull_that_is_killed_again_and_again_ends_with_the_same_tasks(studio, team, tmp_path, monkeypatch):
    monkeypatch.setattr(project_module, "PAGE_SIZE", 2)
    whole, ids = made(studio, 9)
    rng = random.Random(0)

    def pull(least, most):
        """Pulls in processes that are killed after so many requests; returns how many were killed."""
        for attempt in range(100):
            part = opened(studio, whole.number, tmp_path)
            part.client.close()
            part.client = Dying(studio.url, studio.owner.token, rng.randint(least, most))
            try:
                part.pull()
            except Killed:
                continue
            finally:
                part.close()
            return attempt
        raise AssertionError("never came to an end")

    assert pull(2, 4) > 1
    for number in ids[:6]:
        team[0].choose(number, "cat")
    studio.owner.json("DELETE", f"/api/tasks/{ids[8]}/")
    assert pull(4, 14) > 0
    part = opened(studio, whole.number, tmp_path)
    assert part.is_changed
    part.set_used()
    assert not part.is_changed
    whole.pull()
    assert list(part.tasks()) == list(whole.tasks())
    assert len(answers(part)) == 6


def test_a_second_round_without_changes_is_three_requests(studio, team, tmp_path):
    number = made(studio, 1)[0].number
    time.sleep(1.1)  # the server's clock is read in seconds
    opened(studio, number, tmp_path).pull()
    project = opened(studio, number, tmp_path)  # as in a new process, which gets a token first
    for expected in (3, 2):
        before = project.client.requests
        assert project.pull() == {}
        assert project.client.requests - before == expected


def test_results_and_views_are_pushed_from_python(studio, team):
    project, ids = made(studio, 3)
    for user, number in itertools.product(team, ids):
        user.choose(number, ("cat", "dog", "owl")[number % 3])
    votes = project.annotations()
    assert votes.num_annotators == 3
    result = MajorityVote().fit(votes)
    assert project.push_predictions(result)[0] == "predictions: 3 new, 0 changed, 0 removed, 0 unchanged"
    stored = studio.owner.json("GET", "/api/predictions/", project=project.number)
    assert {one["task"]: one["result"][0]["value"]["choices"] for one in stored} == {
        number: [("cat", "dog", "owl")[number % 3]] for number in ids
    }
    assert project.push_predictions(result) == ["predictions: 0 new, 0 changed, 0 removed, 3 unchanged"]
    project.push_views({"Look at these": ids[:2]})
    view = next(one for one in studio.owner.json("GET", "/api/dm/views/", project=project.number))
    shown = studio.owner.json("GET", "/api/tasks", view=view["id"], page_size=10)["tasks"]
    assert [task["id"] for task in shown] == ids[:2]
    assert project.pull() == {}  # predictions are no change


def test_the_code_of_the_guide_runs(studio, team):
    page = (Path(__file__).parents[2] / "docs" / "platforms.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "label_studio" in block]
    project, ids = made(studio, 2)
    for user, number in itertools.product(team, ids):
        user.choose(number, "cat")
    address = f'"{studio.url}", {project.number}'
    exec(code.replace('"https://labels.example.com", 1', address), {"token": studio.owner.token})
    assert len(studio.owner.json("GET", "/api/predictions/", project=project.number)) == 2
    [view] = studio.owner.json("GET", "/api/dm/views/", project=project.number)
    assert view["data"]["title"].startswith("Least sure")


def test_a_project_with_several_questions_lists_them(studio):
    config = """<View><Text name="t" value="$text"/><Choices name="kind" toName="t"><Choice value="a"/></Choices>
      <Rating name="stars" toName="t"/><KeyPointLabels name="k" toName="t"><Label value="b"/></KeyPointLabels></View>"""
    project, _ = made(studio, 1, config)
    with pytest.raises(ConfigError, match=r"with field='NAME': kind \(Choices\), stars \(Rating\)"):
        project.control()
    assert project.control("stars").kind == "regression"
    with pytest.raises(ConfigError, match="Did you mean 'stars'"):
        project.control("star")


def test_an_unknown_project_is_an_error_of_the_server(studio):
    with pytest.raises(LabelStudioError, match="404"):
        opened(studio, 999_999).pull()


def test_all_tasks_are_read_with_their_order(studio, team):
    project, ids = made(studio, 3)
    team[0].choose(ids[2], "cat")
    votes = project.annotations(tasks=np.array([*map(str, ids)], object))
    assert votes.redundancy.tolist() == [0, 0, 1]
