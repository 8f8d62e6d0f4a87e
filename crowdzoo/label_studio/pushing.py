"""push: what came of a round, back on the Label Studio server.

Each part compares what the server has with what it should have, and sends the difference. A run that was
interrupted leaves a part of the difference, which the next run sends.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crowdzoo.errors import ConfigError, unknown
from crowdzoo.label_studio.store import time_of

if TYPE_CHECKING:
    from crowdzoo.label_studio.client import Client
    from crowdzoo.label_studio.outcome import Outcome
    from crowdzoo.label_studio.project import Project
    from crowdzoo.label_studio.result_form import Item

MODEL_VERSION = "crowdzoo"  # of the consensus; `crowdzoo serve` uses other names
MARK = " · crowdzoo"  # ends the titles of views that belong to crowdzoo
ASK, SURE, DISPUTED, FLAGGED, NEXT = "Ask again", "Sure", "Disputed", "Flagged: ", "Next: "
PATIENCE = 3600.0  # seconds without an answer of the annotator who was asked, after which anybody gets the question
AT_ONCE = 2500  # predictions in a request, each of which has the server count those of all tasks

WHAT = ("predictions", "views", "next")

View = dict[str, Any]  # filters and ordering
# of new views, so that scores and annotators are seen at once; what a user shows or hides later stays
_HIDDEN = (
    "inner_id completed_at cancelled_annotations annotations_results annotations_ids predictions_model_versions "
    "predictions_results file_upload storage_filename created_at updated_at updated_by avg_lead_time draft_exists"
)


def push(project: Project, outcome: Outcome, what: set[str], dry_run: bool = False) -> list[str]:
    """Sends to the server what came of a round.

    Args:
        project: whose last `pull` the outcome is of.
        outcome: of the question.
        what: of "predictions", the consensus with its score; "views" of the tasks to ask again, the sure and the
            disputed ones, and of the answers of each flagged annotator; "next", which annotator to ask about which
            task.
        dry_run: whether nothing is sent.

    Returns:
        Sentences that say what was sent, or would be.

    Raises:
        ConfigError: another word, or no choice of questions for this kind of labels or this method.
        DataError: Label Studio cannot show the consensus on this question.
        LabelStudioError: the server refuses.
    """
    for word in sorted(what - {*WHAT}):
        raise ConfigError(unknown("push", word, WHAT))
    if "next" in what and not outcome.has_questions:
        labels = f"{outcome.aggregation.kind} labels by {outcome.aggregation.method}"
        raise ConfigError(f"--push next: crowdzoo chooses no questions for {labels}; leave next out.")
    names = project.users
    numbers = {name: number for number, name in names.items()}
    tasks = {task["id"]: task for task in project.store.tasks()} if what - {"predictions"} else {}
    lines = []
    if "predictions" in what:
        lines += push_predictions(project.client, project.number, outcome.answers, dry_run=dry_run)
    if "views" in what:
        masks = {ASK: outcome.ask_again, SURE: outcome.sure, DISPUTED: outcome.disputed}
        views = {title: tasks_view(tasks[number] for number in outcome.numbers(mask)) for title, mask in masks.items()}
        views |= {FLAGGED + name: annotator_view(numbers[name]) for name in outcome.flagged if name in numbers}
        lines += push_views(project.client, project.number, views, of=[ASK, SURE, DISPUTED, FLAGGED], dry_run=dry_run)
    if "next" in what:
        chosen = outcome.questions
        asked = zip(
            outcome.aggregation.tasks[chosen.tasks], outcome.aggregation.annotators[chosen.annotators], strict=True
        )
        times: dict[int, float] = {}
        for answer in (answer for task in tasks.values() for answer in task["annotations"]):
            who, moment = answer["completed_by"], time_of(answer["created_at"]).timestamp()
            times[who] = max(times.get(who, 0.0), moment)
        questions = [(int(str(task)), numbers[str(name)]) for task, name in asked if str(name) in numbers]
        skipped_count = project.settings.get("skip_queue", "REQUEUE_FOR_OTHERS") != "REQUEUE_FOR_OTHERS"
        how: Any = {"last_answers": times, "skipped_count": skipped_count, "dry_run": dry_run}
        lines += push_next(project.client, project.number, questions, tasks, names, **how)
    return lines


def push_predictions(
    client: Client,
    project: int,
    answers: Iterable[tuple[int, list[Item], float]],
    *,
    model_version: str = MODEL_VERSION,
    dry_run: bool = False,
) -> list[str]:
    """Makes the predictions of a model version equal to the consensus; those of other versions stay.

    Label Studio shows the score of one model version. Where the project has chosen none, this one is chosen, and
    predictions are not shown to annotators, whose answers would follow them.

    Args:
        client: of the server.
        project: its number.
        answers: task, results and score, as `consensus_results` yields them.
        model_version: name of the predictions.
        dry_run: whether nothing is sent.

    Returns:
        Sentences that say what was sent, or would be.

    Raises:
        LabelStudioError: the server refuses.
    """
    wanted = {task: {"result": items, "score": score} for task, items, score in answers}
    there: dict[int, list[dict[str, Any]]] = {}
    others = set()
    for prediction in client.get("/api/predictions/", project=project):
        if prediction["model_version"] == model_version:
            there.setdefault(prediction["task"], []).append(prediction)
        else:
            others.add(prediction["task"])
    kept = {task for task, own in there.items() if len(own) == 1 and _same(own[0], wanted.get(task))}
    outdated, missing = sorted({*there} - kept), [task for task in wanted if task not in kept]
    if not dry_run:
        for tasks in _parts([task for task in outdated if task not in others]):
            chosen = {"selectedItems": {"all": False, "included": tasks}}
            client.post("/api/dm/actions", chosen, id="delete_tasks_predictions", project=project)
        for task in outdated:
            for prediction in there[task] if task in others else []:
                client.delete(f"/api/predictions/{prediction['id']}/")
        for tasks in _parts(missing):
            body = [{"task": task, "model_version": model_version, **wanted[task]} for task in tasks]
            client.post(f"/api/projects/{project}/import/predictions", body)
    lines = [
        f"predictions: {len({*missing} - {*there}):,} new, {len({*missing} & {*there}):,} changed, "
        f"{len({*outdated} - {*missing}):,} removed, {len(kept):,} as they were"
    ]
    settings = client.get(f"/api/projects/{project}")
    shown = settings.get("model_version") or ""
    if wanted and not shown:
        lines.append("project: Prediction score shows the consensus, and annotators are shown no predictions")
        if not dry_run:
            choice = {"model_version": model_version, "show_collab_predictions": False}
            client.patch(f"/api/projects/{project}/", choice)
    elif shown == model_version and settings.get("show_collab_predictions"):
        lines.append(
            f"warning: the project fills in predictions of {shown!r} for annotators, whose answers then follow the "
            "consensus. Switch it off: Settings, Annotation, Use predictions to prelabel tasks."
        )
    return lines


def _same(prediction: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return wanted is not None and all(prediction[key] == value for key, value in wanted.items())


def _parts(tasks: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(tasks), AT_ONCE):
        yield tasks[start : start + AT_ONCE]


def tasks_view(tasks: Iterable[Mapping[str, Any]]) -> View:
    """A view of tasks, least sure predictions first.

    The pages of Label Studio have no filter for many tasks, but one for many answers, so that an answer represents its
    task. A filter that they do not know, such as the operator "in_list", keeps the Data Manager from opening.

    Args:
        tasks: as the server gives them, with `id` and `annotations`.
    """
    answers, items = list[int](), list[dict[str, Any]]()
    for task in tasks:
        if task["annotations"]:
            answers.append(min(answer["id"] for answer in task["annotations"]))
        else:
            items.append({"filter": "filter:tasks:id", "operator": "equal", "type": "Number", "value": task["id"]})
    if answers or not items:
        listed = ",".join(map(str, sorted(answers))) or "0"  # an empty filter would be none
        filtered = {"filter": "filter:tasks:annotations_ids", "operator": "contains", "type": "String", "value": listed}
        items.insert(0, filtered)
    return {"filters": {"conjunction": "or", "items": items}, "ordering": ["tasks:predictions_score"]}


def annotator_view(user: int) -> View:
    """A view of the tasks that a user answered."""
    item = {"filter": "filter:tasks:annotators", "operator": "contains", "type": "List", "value": user}
    return {"filters": {"conjunction": "and", "items": [item]}}


def push_views(
    client: Client, project: int, views: Mapping[str, View], *, of: Sequence[str], dry_run: bool = False
) -> list[str]:
    """Makes the views of the Data Manager that belong to crowdzoo equal to these; all others stay.

    Args:
        client: of the server.
        project: its number.
        views: title, without `MARK`, and what `tasks_view` or `annotator_view` gives.
        of: beginnings of titles; views of crowdzoo that begin so and are not among these are removed.
        dry_run: whether nothing is sent.

    Returns:
        Sentences that say what was sent, or would be.

    Raises:
        LabelStudioError: the server refuses.
    """
    wanted = {title + MARK: view for title, view in views.items()}
    made, changed, removed = [], [], []
    for view in _views(client, project):
        title, data = view["data"]["title"], view["data"]
        if title in wanted:
            new = {**data, **wanted.pop(title)}
            if new != data:
                changed.append(title)
                if not dry_run:
                    client.patch(f"/api/dm/views/{view['id']}/", {"project": project, "data": new})
        elif title.startswith(tuple(of)):
            removed.append(title)
            if not dry_run:
                client.delete(f"/api/dm/views/{view['id']}/")
    for title, new in wanted.items():
        made.append(title)
        if not dry_run:
            hidden = [f"tasks:{name}" for name in _HIDDEN.split()]
            columns = {"hiddenColumns": {"explore": hidden, "labeling": hidden}}
            client.post("/api/dm/views/", {"project": project, "data": {"title": title, **columns, **new}})
    parts = ((word, names) for word, names in (("new", made), ("changed", changed), ("removed", removed)) if names)
    said = "; ".join(f"{word}: {', '.join(name.removesuffix(MARK) for name in names)}" for word, names in parts)
    return [f"views: {said or 'as they were'}"]


def _views(client: Client, project: int) -> list[dict[str, Any]]:
    """The views that belong to crowdzoo."""
    views = client.get("/api/dm/views/", project=project)
    return [view for view in views if str((view.get("data") or {}).get("title", "")).endswith(MARK)]


def push_next(
    client: Client,
    project: int,
    questions: Iterable[tuple[int, int]],
    tasks: Mapping[int, Mapping[str, Any]],
    names: Mapping[int, str],
    *,
    last_answers: Mapping[int, float] | None = None,
    skipped_count: bool = False,
    dry_run: bool = False,
    now: float | None = None,
) -> list[str]:
    """Has the server hand out the chosen questions, and no other ones about answered tasks.

    The questions to an annotator are a view, "Next: NAME", whose button "Label Tasks As Displayed" hands them out. A
    chosen task is opened again (`is_labeled` false) with as many annotations as its overlap allows: the queue of the
    project ("Label All Tasks") passes over it, and a view hands it out. Where an annotator lets `PATIENCE` pass, the
    overlap allows one more, and anybody gets the question. Answered tasks that are not chosen are closed. Tasks without
    an answer stay in the queue as the project has them.

    Args:
        client: of the server.
        project: its number.
        questions: task and user, the most telling first; a task once.
        tasks: number -> task, all of the project as the server gives them: `overlap`, `is_labeled`, and `annotations`
            with `id`, `was_cancelled` and `ground_truth`.
        names: of users.
        last_answers: time of the last answer of users, seconds since 1970.
        skipped_count: whether skipped answers count as answers, which is a setting of the project.
        dry_run: whether nothing is sent.
        now: time, seconds since 1970.

    Returns:
        Sentences that say what was sent, or would be.

    Raises:
        LabelStudioError: the server refuses.
    """
    time_now = time.time() if now is None else now
    asked: dict[int, list[int]] = {}
    for task, user in questions:
        asked.setdefault(user, []).append(task)
    before = {view["data"]["title"]: view["data"] for view in _views(client, project)}
    views, anybody = {}, set[int]()
    for user, chosen in asked.items():
        title = NEXT + names[user]
        view = {**tasks_view(tasks[task] for task in chosen), "since": time_now}
        old = before.get(title + MARK, {})
        if _listed(view) & _listed(old):
            view["since"] = old.get("since", time_now)
        if time_now - max(view["since"], (last_answers or {}).get(user, 0.0)) > PATIENCE:
            anybody |= {*chosen}
        views[title] = view
    lines = push_views(client, project, views, of=[NEXT], dry_run=dry_run)
    chosen_tasks = {task for chosen in asked.values() for task in chosen}
    opened = closed = 0
    for entry in tasks.values():
        number, state = entry["id"], dict[str, Any]()
        held = sum(
            not annotation.get("ground_truth") and (skipped_count or not annotation.get("was_cancelled"))
            for annotation in entry["annotations"]
        )
        if number in chosen_tasks:
            state = {"overlap": max(held + (number in anybody), 1), "is_labeled": False}
        elif held:
            state = {} if entry["is_labeled"] else {"overlap": held, "is_labeled": True}
        if any(entry[key] != value for key, value in state.items()):
            opened, closed = opened + (number in chosen_tasks), closed + (number not in chosen_tasks)
            if not dry_run:
                client.patch(f"/api/tasks/{number}/", state)
    total = f"{len(chosen_tasks):,} questions to {len(asked):,} annotators"
    open_to_all = f", {len(anybody):,} of them for anybody" if anybody else ""
    return [f"next: {total}{open_to_all}; {opened:,} tasks opened, {closed:,} closed", *lines]


def _listed(data: Mapping[str, Any]) -> set[str]:
    """What a view that `tasks_view` made lists."""
    items = (data.get("filters") or {}).get("items") or []
    return {word for item in items for word in str(item.get("value", "")).split(",")}
