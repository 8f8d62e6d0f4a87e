"""What crowdzoo sends to Label Studio, and what annotators are handed out then, on a real server."""

import random

import pytest
from server import CHOICES

from crowdzoo.label_studio.client import Client
from crowdzoo.label_studio.pushing import (
    MARK,
    PATIENCE,
    annotator_view,
    push_next,
    push_predictions,
    push_views,
    tasks_view,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("label_studio")]
CONFIG = CHOICES.format('<Choice value="cat"/><Choice value="dog"/>')


class Killed(Exception):  # noqa: N818
    """The process ends here."""


class Dying(Client):
    """A client whose process is killed before a request, or right after it."""

    left = 10**9

    def _request(self, *arguments):
        if self.left <= 0:
            raise Killed
        answer = super()._request(*arguments)
        self.left -= random.choice((1, 2))  # after an even number the answer is lost
        if self.left <= 0:
            raise Killed
        return answer


@pytest.fixture(scope="module")
def team(studio):
    return [studio.user(f"{name}.push@example.com") for name in ("ann", "bob", "cyd")]


@pytest.fixture(scope="module")
def client(studio):
    with Client(studio.url, studio.owner.token) as client:
        yield client


def project_of(studio, number, **settings):
    """A project with tasks, and the numbers of these."""
    project = studio.project(CONFIG, [{"data": {"text": f"text {place}"}} for place in range(number)], **settings)
    return project, [task["id"] for task in state_of(studio, project)]


def state_of(studio, project):
    return studio.owner.json("GET", "/api/tasks", project=project, fields="all", page_size=100)["tasks"]


def tasks_by_number(studio, project):
    return {task["id"]: task for task in state_of(studio, project)}


def chosen(label):
    return [{"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": [label]}}]


def handed_out(user, project, view=None):
    """The tasks that a user is handed out, one after the other, each of which they answer."""
    numbers = []
    while (task := user.next_task(project, view)) is not None:
        user.choose(task["id"], "cat")
        numbers.append(task["id"])
    return numbers


def view_of(client, project, title):
    views = client.get("/api/dm/views/", project=project)
    return next((view for view in views if view["data"]["title"] == title + MARK), None)


def test_only_the_annotator_who_was_meant_is_handed_out_a_question(studio, team, client):
    ann, bob, cyd = team
    project, tasks = project_of(studio, 6)
    for task in tasks[:5]:
        ann.choose(task, "cat")
    names = {user.id: user.email for user in team}
    questions = [(tasks[3], bob.id), (tasks[0], bob.id), (tasks[1], cyd.id)]
    push_next(client, project, questions, tasks_by_number(studio, project), names)
    assert cyd.next_task(project)["id"] == tasks[5]  # of the project's queue: the task without an answer alone
    assert handed_out(bob, project, view_of(client, project, f"Next: {bob.email}")) == [tasks[0], tasks[3]]
    assert handed_out(ann, project, view_of(client, project, f"Next: {cyd.email}")) == []
    assert handed_out(cyd, project, view_of(client, project, f"Next: {cyd.email}")) == [tasks[1]]
    assert handed_out(bob, project) == []  # the last task is in cyd's hand
    assert handed_out(cyd, project) == [tasks[5]]
    # the questions are answered: nothing is left, and the views go
    push_next(client, project, [], tasks_by_number(studio, project), names)
    assert [handed_out(user, project) for user in team] == [[], [], []]
    assert view_of(client, project, f"Next: {bob.email}") is None


def test_tasks_that_are_not_asked_about_are_closed(studio, team, client):
    ann, bob, _ = team
    project, tasks = project_of(studio, 4, maximum_annotations=3)
    for task in tasks[:3]:
        ann.choose(task, "cat")
    push_next(client, project, [(tasks[1], bob.id)], tasks_by_number(studio, project), {bob.id: bob.email})
    assert handed_out(bob, project, view_of(client, project, f"Next: {bob.email}")) == [tasks[1]]
    assert handed_out(bob, project) == [tasks[3]]


def test_a_question_that_nobody_answers_in_time_is_for_anybody(studio, team, client):
    ann, bob, cyd = team
    project, tasks = project_of(studio, 2)
    handed_out(ann, project)
    names, question = {bob.id: bob.email}, [(tasks[0], bob.id)]
    for now, expected in ((1e9, []), (1e9 + PATIENCE, []), (1e9 + PATIENCE + 1, [tasks[0]])):
        push_next(client, project, question, tasks_by_number(studio, project), names, now=now)
        assert handed_out(cyd, project) == expected
    push_next(client, project, [(tasks[1], bob.id)], tasks_by_number(studio, project), names, now=now)
    assert handed_out(cyd, project) == []  # another question, and another hour for it


def test_skipped_answers_do_not_count_and_ground_truth_neither(studio, team, client):
    ann, bob, cyd = team
    project, tasks = project_of(studio, 2)
    ann.choose(tasks[0], "cat")
    bob.choose(tasks[0], None)
    ann.choose(tasks[1], "dog", ground_truth=True)
    bob.choose(tasks[1], "cat")
    push_next(client, project, [(task, cyd.id) for task in tasks], tasks_by_number(studio, project), {cyd.id: "cyd"})
    assert handed_out(bob, project) == []
    assert handed_out(cyd, project, view_of(client, project, "Next: cyd")) == tasks
    assert [task["is_labeled"] for task in state_of(studio, project)] == [True, True]


def test_predictions_are_updated_and_those_of_models_stay(studio, client):
    project, tasks = project_of(studio, 4)
    client.post(
        f"/api/projects/{project}/import/predictions",
        [{"task": task, "result": chosen("dog"), "score": 0.3, "model_version": "model"} for task in tasks[:2]],
    )
    first = [(task, chosen("cat"), 0.75) for task in tasks[:3]]
    planned = push_predictions(client, project, first, dry_run=True)
    assert predictions(client, project, "crowdzoo") == {}
    assert push_predictions(client, project, first) == planned
    assert planned[0] == "predictions: 3 new, 0 changed, 0 removed, 0 unchanged"
    assert planned[1].startswith("project: Prediction score shows the consensus")
    second = [(tasks[0], chosen("dog"), 0.75), (tasks[2], chosen("cat"), 0.8), (tasks[3], [], 0.5)]
    assert push_predictions(client, project, second) == ["predictions: 1 new, 2 changed, 1 removed, 0 unchanged"]
    assert push_predictions(client, project, second) == ["predictions: 0 new, 0 changed, 0 removed, 3 unchanged"]
    assert predictions(client, project, "crowdzoo") == {task: [(items, score)] for task, items, score in second}
    assert predictions(client, project, "model") == {task: [(chosen("dog"), 0.3)] for task in tasks[:2]}
    assert client.get(f"/api/tasks/{tasks[0]}/")["total_predictions"] == 2


def predictions(client, project, version):
    """Task -> results and scores of the predictions of this model version."""
    of_task = {}
    for one in client.get("/api/predictions/", project=project):
        if one["model_version"] == version:
            of_task.setdefault(one["task"], []).append((one["result"], one["score"]))
    return of_task


def test_scores_are_shown_to_managers_and_predictions_not_to_annotators(studio, client):
    project, tasks = project_of(studio, 2, maximum_annotations=2)
    client.patch(f"/api/tasks/{tasks[0]}/", {"overlap": 5})
    answers = [(tasks[0], chosen("cat"), 0.9)]
    push_predictions(client, project, answers)
    fields = client.get("/api/tasks", project=project, fields="all")["tasks"]
    assert [(task["overlap"], task["predictions_score"]) for task in fields] == [(5, 0.9), (2, None)]
    assert client.get(f"/api/projects/{project}/next")["predictions"] == []
    assert len(push_predictions(client, project, answers)) == 1
    client.patch(f"/api/projects/{project}/", {"show_collab_predictions": True})
    assert client.get(f"/api/projects/{project}/next")["predictions"]  # what the warning is about
    _, warning = push_predictions(client, project, answers)
    assert "Use predictions to prelabel tasks" in warning


def test_views_list_their_tasks_and_are_not_made_twice(studio, team, client):
    ann, bob, _ = team
    project, tasks = project_of(studio, 4)
    own = client.post("/api/dm/views/", {"project": project, "data": {"title": "Sure"}})
    bob.choose(tasks[1], "cat")
    ann.choose(tasks[2], "cat")
    ann.choose(tasks[0], "dog")
    known = tasks_by_number(studio, project)
    views = {
        "Sure": tasks_view(map(known.get, tasks[:2])),
        "Disputed": tasks_view([]),
        "Flagged: bob": annotator_view(bob.id),
    }
    of = ["Sure", "Disputed", "Flagged: "]
    assert push_views(client, project, views, of=of) == ["views: new: Sure, Disputed, Flagged: bob"]
    assert push_views(client, project, views, of=of) == ["views: unchanged"]
    shown = {title: listed(client, view_of(client, project, title)) for title in views}
    assert shown == {"Sure": tasks[:2], "Disputed": [], "Flagged: bob": [tasks[1]]}
    before = view_of(client, project, "Sure")["id"]
    later = {"Sure": tasks_view(map(known.get, tasks[3:])), "Disputed": tasks_view(map(known.get, tasks[:1]))}
    said = push_views(client, project, later, of=of)
    assert said == ["views: changed: Sure, Disputed; removed: Flagged: bob"]
    assert view_of(client, project, "Sure")["id"] == before
    assert client.get(f"/api/dm/views/{own['id']}/") == own


def listed(client, view):
    return [task["id"] for task in client.get("/api/tasks", view=view["id"])["tasks"]]


@pytest.mark.parametrize("seed", range(2))
def test_a_push_that_is_killed_and_restarted_ends_as_one_that_is_not(studio, team, client, seed):
    random.seed(seed)
    states = []
    for dies in (False, True):
        project, tasks = project_of(studio, 12, maximum_annotations=2)
        for place, task in enumerate(tasks[:9]):
            team[place % 2].choose(task, "cat")
        known = [*tasks_by_number(studio, project).values()]
        names = {user.id: user.email for user in team}
        with Dying(studio.url, studio.owner.token) as pushing:
            for rounds in range(2):  # the second one has other predictions, views and questions
                answers = [
                    (task, chosen("dog" if place < rounds * 3 else "cat"), 0.5) for place, task in enumerate(tasks)
                ]
                questions = [(tasks[place + rounds], team[(place + 2) % 3].id) for place in range(6)]
                views = {"Sure": tasks_view(known[rounds:]), f"Flagged: {rounds}": annotator_view(rounds)}
                while True:
                    pushing.left = random.randint(2, 12) if dies else 10**9
                    try:
                        push_predictions(pushing, project, answers[rounds:])
                        push_views(pushing, project, views, of=["Sure", "Flagged: "])
                        push_next(pushing, project, questions, tasks_by_number(studio, project), names, now=1e9)
                        break
                    except Killed:
                        pass
        first = tasks[0]
        states.append((
            [(task["id"] - first, task["overlap"], task["is_labeled"]) for task in state_of(studio, project)],
            {task - first: found for task, found in predictions(client, project, "crowdzoo").items()},
            sorted(
                (view["data"]["title"], str([task - first for task in listed(client, view)]))
                for view in client.get("/api/dm/views/", project=project)
            ),
        ))  # fmt: skip
    assert states[0] == states[1]
    assert len(states[0][1]) == 11
    assert any(not is_labeled for _, _, is_labeled in states[0][0][:9])
