"""push: sends the outcome of a round to the Label Studio server.

Each part compares the server's state with the target and sends the difference. If a run is interrupted, the next run
sends the rest.
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
MARK = " · crowdzoo"  # suffix of the titles of crowdzoo's views
ASK, SURE, DISPUTED, FLAGGED, NEXT = "Ask again", "Sure", "Disputed", "Flagged: ", "Next: "
PATIENCE = 3600.0  # seconds without an answer by the chosen annotator, after which others may answer
AT_ONCE = 2500  # predictions per request, as the server counts those of all tasks in each request

WHAT = ("predictions", "views", "next")

View = dict[str, Any]  # filters and ordering
# columns of new views, which show scores and annotators; later changes by users are kept
_HIDDEN = (
    "inner_id completed_at cancelled_annotations annotations_results annotations_ids predictions_model_versions "
    "predictions_results file_upload storage_filename created_at updated_at updated_by avg_lead_time draft_exists"
)


def push(project: Project, outcome: Outcome, what: set[str], dry_run: bool = False) -> list[str]:
    """Sends the outcome of a round to the server.

    Args:
        project: project from whose last `pull` the outcome is.
        outcome: outcome for the question.
        what: any of "predictions", the consensus with its score; "views" of tasks to ask again, certain and disputed
            ones, and of the answers of each flagged annotator; "next", which annotator to ask about which task.
        dry_run: True sends nothing.

    Returns:
        Sentences about what was sent, or would be.

    Raises:
        ConfigError: an unknown word, or questions cannot be chosen for this kind of labels or this method.
        DataError: Label Studio cannot show the consensus on this question.
        LabelStudioError: the server rejects a request.
    """
    for word in sorted(what - {*WHAT}):
        raise ConfigError(unknown("push", word, WHAT))
    if "next" in what and not outcome.has_questions:
        labels = f"{outcome.aggregation.kind} labels by {outcome.aggregation.method}"
        raise ConfigError(f"--push next: crowdzoo does not choose questions for {labels}; leave next out.")
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
        pairs = zip(
            outcome.aggregation.tasks[chosen.tasks], outcome.aggregation.annotators[chosen.annotators], strict=True
        )
        times: dict[int, float] = {}
        for answer in (answer for task in tasks.values() for answer in task["annotations"]):
            who, moment = answer["completed_by"], time_of(answer["created_at"]).timestamp()
            times[who] = max(times.get(who, 0.0), moment)
        questions = [(int(str(task)), numbers[str(name)]) for task, name in pairs if str(name) in numbers]
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
    """Makes the predictions of a model version equal to the consensus; those of other versions are unchanged.

    Label Studio shows the score of one model version. If the project has not chosen one, this one is chosen, and
    predictions are hidden from annotators, because they would influence answers.

    Args:
        client: client of the server.
        project: number of the project.
        answers: tuples of task, results and score, from `consensus_results`.
        model_version: name of the predictions.
        dry_run: True sends nothing.

    Returns:
        Sentences about what was sent, or would be.

    Raises:
        LabelStudioError: the server rejects a request.
    """
    consensus = {task: {"result": items, "score": score} for task, items, score in answers}
    current: dict[int, list[dict[str, Any]]] = {}
    others = set()
    for prediction in client.get("/api/predictions/", project=project):
        if prediction["model_version"] == model_version:
            current.setdefault(prediction["task"], []).append(prediction)
        else:
            others.add(prediction["task"])
    unchanged = {task for task, own in current.items() if len(own) == 1 and _same(own[0], consensus.get(task))}
    outdated, missing = sorted({*current} - unchanged), [task for task in consensus if task not in unchanged]
    if not dry_run:
        for tasks in _parts([task for task in outdated if task not in others]):
            chosen = {"selectedItems": {"all": False, "included": tasks}}
            client.post("/api/dm/actions", chosen, id="delete_tasks_predictions", project=project)
        for task in outdated:
            for prediction in current[task] if task in others else []:
                client.delete(f"/api/predictions/{prediction['id']}/")
        for tasks in _parts(missing):
            body = [{"task": task, "model_version": model_version, **consensus[task]} for task in tasks]
            client.post(f"/api/projects/{project}/import/predictions", body)
    lines = [
        f"predictions: {len({*missing} - {*current}):,} new, {len({*missing} & {*current}):,} changed, "
        f"{len({*outdated} - {*missing}):,} removed, {len(unchanged):,} unchanged"
    ]
    settings = client.get(f"/api/projects/{project}")
    shown = settings.get("model_version") or ""
    if consensus and not shown:
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

    Label Studio's pages have no filter for many tasks, but one for many answers, so each task is represented by an
    answer. An unknown filter, such as the operator "in_list", keeps the Data Manager from opening.

    Args:
        tasks: tasks as returned by the server, with `id` and `annotations`.
    """
    answers, items = list[int](), list[dict[str, Any]]()
    for task in tasks:
        if task["annotations"]:
            answers.append(min(answer["id"] for answer in task["annotations"]))
        else:
            items.append({"filter": "filter:tasks:id", "operator": "equal", "type": "Number", "value": task["id"]})
    if answers or not items:
        listed = ",".join(map(str, sorted(answers))) or "0"  # an empty filter would match all
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
    """Makes crowdzoo's views of the Data Manager equal to these; all others are unchanged.

    Args:
        client: client of the server.
        project: number of the project.
        views: title, without `MARK`, -> result of `tasks_view` or `annotator_view`.
        of: prefixes of titles; crowdzoo's views with these prefixes that are not in `views` are removed.
        dry_run: True sends nothing.

    Returns:
        Sentences about what was sent, or would be.

    Raises:
        LabelStudioError: the server rejects a request.
    """
    views_by_title = {title + MARK: view for title, view in views.items()}
    added, changed, removed = [], [], []
    for view in _views(client, project):
        title, data = view["data"]["title"], view["data"]
        if title in views_by_title:
            new = {**data, **views_by_title.pop(title)}
            if new != data:
                changed.append(title)
                if not dry_run:
                    client.patch(f"/api/dm/views/{view['id']}/", {"project": project, "data": new})
        elif title.startswith(tuple(of)):
            removed.append(title)
            if not dry_run:
                client.delete(f"/api/dm/views/{view['id']}/")
    for title, new in views_by_title.items():
        added.append(title)
        if not dry_run:
            hidden = [f"tasks:{name}" for name in _HIDDEN.split()]
            columns = {"hiddenColumns": {"explore": hidden, "labeling": hidden}}
            client.post("/api/dm/views/", {"project": project, "data": {"title": title, **columns, **new}})
    parts = ((word, names) for word, names in (("new", added), ("changed", changed), ("removed", removed)) if names)
    summary = "; ".join(f"{word}: {', '.join(name.removesuffix(MARK) for name in names)}" for word, names in parts)
    return [f"views: {summary or 'unchanged'}"]


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
    """Makes the server assign the chosen questions, and no other questions about answered tasks.

    The questions for an annotator are a view, "Next: NAME", whose button "Label Tasks As Displayed" assigns them. A
    chosen task is reopened (`is_labeled` false) with as many annotations as its overlap allows, so that the project's
    queue ("Label All Tasks") skips it and the view assigns it. If the annotator does not answer within `PATIENCE`, the
    overlap is increased by one, and anyone can get the question. Answered tasks that are not chosen are closed. Tasks
    without answers stay in the queue.

    Args:
        client: client of the server.
        project: number of the project.
        questions: pairs of task and user, the most informative first; each task once.
        tasks: number -> task, for all tasks of the project as returned by the server: `overlap`, `is_labeled`, and
            `annotations` with `id`, `was_cancelled` and `ground_truth`.
        names: names of users.
        last_answers: time of the last answer of users, seconds since 1970.
        skipped_count: whether skipped answers count as answers, which is a setting of the project.
        dry_run: True sends nothing.
        now: time, seconds since 1970.

    Returns:
        Sentences about what was sent, or would be.

    Raises:
        LabelStudioError: the server rejects a request.
    """
    time_now = time.time() if now is None else now
    tasks_by_user: dict[int, list[int]] = {}
    for task, user in questions:
        tasks_by_user.setdefault(user, []).append(task)
    before = {view["data"]["title"]: view["data"] for view in _views(client, project)}
    views, anybody = {}, set[int]()
    for user, chosen in tasks_by_user.items():
        title = NEXT + names[user]
        view = {**tasks_view(tasks[task] for task in chosen), "since": time_now}
        old = before.get(title + MARK, {})
        if _listed(view) & _listed(old):
            view["since"] = old.get("since", time_now)
        if time_now - max(view["since"], (last_answers or {}).get(user, 0.0)) > PATIENCE:
            anybody |= {*chosen}
        views[title] = view
    lines = push_views(client, project, views, of=[NEXT], dry_run=dry_run)
    chosen_tasks = {task for chosen in tasks_by_user.values() for task in chosen}
    opened = closed = 0
    for entry in tasks.values():
        number, state = entry["id"], dict[str, Any]()
        num_answers = sum(
            not annotation.get("ground_truth") and (skipped_count or not annotation.get("was_cancelled"))
            for annotation in entry["annotations"]
        )
        if number in chosen_tasks:
            state = {"overlap": max(num_answers + (number in anybody), 1), "is_labeled": False}
        elif num_answers:
            state = {} if entry["is_labeled"] else {"overlap": num_answers, "is_labeled": True}
        if any(entry[key] != value for key, value in state.items()):
            opened, closed = opened + (number in chosen_tasks), closed + (number not in chosen_tasks)
            if not dry_run:
                client.patch(f"/api/tasks/{number}/", state)
    total = f"{len(chosen_tasks):,} questions to {len(tasks_by_user):,} annotators"
    open_to_all = f", {len(anybody):,} of them for anybody" if anybody else ""
    return [f"next: {total}{open_to_all}; {opened:,} tasks opened, {closed:,} closed", *lines]


def _listed(data: Mapping[str, Any]) -> set[str]:
    """The answers that a view made by `tasks_view` lists."""
    items = (data.get("filters") or {}).get("items") or []
    return {word for item in items for word in str(item.get("value", "")).split(",")}
