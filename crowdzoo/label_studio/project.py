"""A Label Studio project: its questions and answers."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.errors import ConfigError, Setting, unknown
from crowdzoo.files.writing import atomic_file
from crowdzoo.kinds import Kind, kind_of
from crowdzoo.label_studio.client import Client, LabelStudioError
from crowdzoo.label_studio.pushing import MODEL_VERSION, push_predictions, push_views, tasks_view
from crowdzoo.label_studio.result_form import consensus_results
from crowdzoo.label_studio.store import Store, time_of
from crowdzoo.reading.platforms.label_config import Control, read_label_config

KEY = "LABEL_STUDIO_API_KEY"  # environment variable
PAGE_SIZE = 100  # number of tasks per request
MARGIN = timedelta(seconds=30)  # delay with which a change may become visible on the server
_ALL = 1 << 53


class Project:
    """A project on a Label Studio server.

    Args:
        url: address of the server.
        project: number of the project, as in the address of its page.
        token: personal access token or legacy token; None: that of the environment variable LABEL_STUDIO_API_KEY.
        folder: stores pulled data, so that later rounds only request changes; None keeps them in memory.
        on_wait: called with a sentence before a failed request is retried.

    Attributes:
        client: sends the requests.
        number: number of the project.
        settings: the server's settings of the project; empty before the first `pull`.
        store: the pulled data.

    Raises:
        ConfigError: no token, a folder of another project, or an error of `Client`.

    Example:
        >>> from crowdzoo.aggregation import DawidSkene
        >>> from crowdzoo.label_studio import Project
        >>> project = Project("http://127.0.0.1:8080", 1, "token")
        >>> project
        Project('http://127.0.0.1:8080', 1)
        >>> result = DawidSkene().fit(project.annotations())  # doctest: +SKIP
        >>> project.close()
    """

    def __init__(
        self,
        url: str,
        project: int,
        token: str | None = None,
        *,
        folder: str | os.PathLike[str] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ):
        token = os.environ.get(KEY, "") if token is None else token
        if not token:
            raise ConfigError(
                f"The token is missing. Create one in Label Studio, Account & Settings: export {KEY}=TOKEN"
            )
        self.client = Client(url, token, on_wait=on_wait)
        self.number = project
        self.settings: dict[str, Any] = {}
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self.store = Store(None if folder is None else Path(folder, "pulled.sqlite"))
        own = [self.client.url, project]
        if self.store.fact("project") not in (None, own) and self.store.ids():
            other = "{}, project {}".format(*self.store.fact("project"))
            self.store.close()
            raise ConfigError(f"{folder}: has data of {other}. Name another folder.")
        self.store.set_facts(project=own)

    def __repr__(self) -> str:
        return f"Project({self.client.url!r}, {self.number})"

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections and the file of pulled data."""
        self.store.close()
        self.client.close()

    @property
    def users(self) -> dict[int, str]:
        """Email or other name of each user of the server, by number, as of the last `pull` that found a change."""
        return {int(number): name for number, name in (self.store.fact("users") or {}).items()}

    @property
    def controls(self) -> tuple[Control, ...]:
        """Questions of the labelling configuration that crowdzoo supports."""
        if not self.settings:
            self.pull()
        return tuple(each for each in read_label_config(self.settings["label_config"]) if each.kind is not None)

    def control(self, field: str | None = None) -> Control:
        """The question with this name; without a name, the only one.

        Raises:
            ConfigError: no such question, none at all, or several.
        """
        controls = {each.name: each for each in self.controls}
        if field is None and len(controls) == 1:
            return next(iter(controls.values()))
        if field is not None and field in controls:
            return controls[field]
        if not controls:
            raise ConfigError(f"project {self.number} has no question whose answers crowdzoo reads.")
        if field is not None:
            raise ConfigError(unknown("field", field, controls))
        listed = ", ".join(f"{name} ({each.tag})" for name, each in controls.items())
        choice = Setting("field", "NAME")
        raise ConfigError(f"project {self.number} asks several questions: choose one with {choice}: {listed}.")

    def pull(self) -> Counter[str]:
        """Pulls changes since the last time, and everything the first time. An interrupted pull is continued.

        Returns:
            Number of "new tasks", "changed tasks", "deleted tasks", "new answers", "changed answers" and "deleted
            answers".
        """
        changes: Counter[str] = Counter()
        self.settings = self.client.get(f"/api/projects/{self.number}")
        if not isinstance(self.settings, dict) or not {"title", "label_config"} <= self.settings.keys():
            raise LabelStudioError(f"{self.client.url}: project {self.number} is not a Label Studio project.")
        begin, since = self.store.fact("begin"), self.store.fact("since")
        if begin is None:
            begin = _moment(self.client.date)
            newest = self._tasks(order="-tasks:updated_at", page_size=1)
            times = [time_of(task["updated_at"]) for task in newest["tasks"]]
            if since is not None and _totals(newest) == self.store.totals() and times < [time_of(since)]:
                return changes
            with self.store:
                self.store.set_facts(begin=begin, last=-1)
        filters = [] if since is None else [_filter("updated_at", "greater_or_equal", since, "Datetime")]
        for page in self._pages(self.store.fact("last"), _ALL, *filters):
            changes += self._put(page)
            with self.store:
                self.store.set_facts(last=page[-1]["id"])
        changes += self._compare(0, _ALL)
        people = self.client.get("/api/users")
        with self.store:
            since = (time_of(begin) - MARGIN).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            self.store.set_facts(begin=None, since=since, users={str(one["id"]): _name(one) for one in people})
        return changes

    @property
    def is_changed(self) -> bool:
        """Whether `pull` brought a change since the last `set_used`, in this process or an earlier one."""
        return bool(self.store.fact("changed"))

    def set_used(self) -> None:
        """Marks all pulled data as used."""
        with self.store:
            self.store.set_facts(changed=False)

    def write(self, path: str | os.PathLike[str]) -> int:
        """Writes the tasks and their valid answers in the format of Label Studio's export (JSON).

        Of two answers by the same user, the one updated last is valid. Skipped tasks and unchanged copies of
        predictions are left out.

        Returns:
            Number of valid answers, without ground truths.
        """
        number = 0
        with atomic_file(path) as file:
            separator = b"["
            for task in self.tasks():
                number += sum(not answer["ground_truth"] for answer in task["annotations"])
                file.write(separator + json.dumps(task, ensure_ascii=False).encode("utf-8", "surrogatepass"))
                separator = b",\n"
            file.write(b"]\n" if separator != b"[" else b"[]\n")
        return number

    def tasks(self) -> Iterator[dict[str, Any]]:
        """Tasks in order of their numbers with their valid answers, as for `write`."""
        names = self.users
        for task in self.store.tasks():
            answers = [answer for answer in task["annotations"] if not answer["was_cancelled"] and not _is_copy(answer)]
            # The server has one ground truth per task; further ones are imported answers
            is_gold = sum(bool(answer["ground_truth"]) for answer in answers) == 1
            last: dict[tuple[Any, bool], dict[str, Any]] = {}
            for answer in sorted(answers, key=lambda one: (time_of(one["updated_at"]), one["id"])):
                answer["ground_truth"] = bool(answer["ground_truth"] and is_gold)
                who = answer["completed_by"]
                name = "(deleted user)" if who is None else names.get(who, str(who))
                answer["completed_by"] = {"id": who, "email": name}
                last[who, answer["ground_truth"]] = answer
            yield {**task, "annotations": list(last.values())}

    def annotations(self, field: str | None = None, **reading: Any) -> Any:
        """Pulls changes, and reads the answers.

        Args:
            field: name of the question, if the project has several.
            reading: options of `Annotations.read`.

        Returns:
            `Annotations`, or the type for the kind of question: `CrowdSequences`, `CrowdRegions` and so on.
        """
        self.pull()
        control = self.control(field)
        with tempfile.TemporaryDirectory() as folder:
            self.write(file := Path(folder, "tasks.json"))
            return read_answers(control, file, platform="label-studio", field=control.name, **reading)

    def push_predictions(
        self, result: Any, field: str | None = None, *, crowd: Any = None, model_version: str = MODEL_VERSION
    ) -> list[str]:
        """Makes the predictions of a model version equal to the labels of an aggregation.

        Args:
            result: result of an aggregation of the answers.
            field: name of the question, if the project has several.
            crowd: the aggregated answers, if they are spans.
            model_version: name of the predictions; those with other names are unchanged.

        Returns:
            Sentences about what was sent.
        """
        answers = consensus_results(self.control(field), result, crowd)
        numbered = ((int(str(task)), items, score) for task, items, score in answers)
        return push_predictions(self.client, self.number, numbered, model_version=model_version)

    def push_views(self, views: Mapping[str, Iterable[int]]) -> list[str]:
        """Creates or changes views of the Data Manager by title; all others are unchanged.

        Args:
            views: title -> numbers of the tasks that it lists.

        Returns:
            Sentences about what was sent.
        """
        known = {task["id"]: task for task in self.store.tasks()}
        shown = {title: tasks_view(known[int(number)] for number in tasks) for title, tasks in views.items()}
        return push_views(self.client, self.number, shown, of=[*views])

    def _compare(self, low: int, high: int) -> Counter[str]:
        """Compares numbers of tasks and answers with the server's, and requests ranges of ids in which they differ."""
        totals = _totals(self._tasks(_filter("id", "in", {"min": low, "max": high}), page_size=1))
        if totals == self.store.totals(low, high):
            return Counter()
        ids = self.store.ids(low, high)
        if len(ids) > PAGE_SIZE:
            middle = ids[len(ids) // 2]
            return self._compare(low, middle - 1) + self._compare(middle, high)
        changes, left = Counter[str](), set(ids)
        for page in self._pages(low - 1, high):
            changes += self._put(page)
            left -= {task["id"] for task in page}
        return changes + self._put((), left)

    def _put(self, tasks: Sequence[dict[str, Any]], deleted: Collection[int] = ()) -> Counter[str]:
        """Stores tasks, deletes others, and records that something changed."""
        with self.store:
            changes = self.store.put(tasks) + self.store.delete(deleted)
            if changes:
                self.store.set_facts(changed=True)
        return changes

    def _pages(self, last: int, high: int, *filters: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
        """Tasks with ids above `last`, up to `high`, in order; tasks added or deleted meanwhile do not shift others."""
        while True:
            page = self._tasks(_filter("id", "in", {"min": last + 1, "max": high}), *filters, fields="all")
            if page["tasks"]:
                yield page["tasks"]
            if len(page["tasks"]) >= page["total"]:
                return
            last = page["tasks"][-1]["id"]

    def _tasks(self, *filters: dict[str, Any], order: str = "tasks:id", **params: Any) -> dict[str, Any]:
        """The first page of a list of tasks."""
        query = {"filters": {"conjunction": "and", "items": filters}, "ordering": [order]}
        params = {"page_size": PAGE_SIZE, "resolve_uri": "false", **params}
        page = self.client.get("/api/tasks", project=self.number, query=json.dumps(query), **params)
        if not isinstance(page, dict) or not isinstance(page.get("tasks"), list):
            raise LabelStudioError(f"{self.client.url}/api/tasks: the response is not a list of tasks.")
        entries = [*page["tasks"], *(answer for task in page["tasks"] for answer in task.get("annotations", ()))]
        if any(not entry.get("id") or not entry.get("updated_at") for entry in entries):
            raise LabelStudioError(f"{self.client.url}/api/tasks: no id or updated_at. Update the server.")
        return page


def answers_kind(control: Control) -> Kind:
    """The kind of the answers to a question: several labels if an answer may have several classes."""
    kind = kind_of(control.kind)
    return kind_of("multi-label") if control.multiple and kind.labels.one_class else kind


def read_answers(control: Control, path: str | os.PathLike[str], **reading: Any) -> Any:
    """Reads the answers to a question, with all classes in the order of the labelling configuration.

    Args:
        control: the question.
        path: path of an export.
        reading: options of `Annotations.read`.
    """
    crowd = answers_kind(control).reading.read(Path(path), **{"on_duplicate": "last", **reading})
    if "classes" in reading or not kind_of(control.kind).labels.one_class:
        return crowd
    names = [*map(str, crowd.classes)]
    classes = [*dict.fromkeys([*control.classes, *names])]
    codes = np.array([classes.index(name) for name in names], np.int64)
    return replace(crowd, classes=np.array(classes, object), labels=codes[crowd.labels])


def _is_copy(answer: dict[str, Any]) -> bool:
    """Whether an answer is an unchanged result of the server's action "Create annotations from predictions"."""
    return answer["parent_prediction"] is not None and answer["lead_time"] is None


def _filter(column: str, operator: str, value: Any, kind: str = "Number") -> dict[str, Any]:
    """A filter of the Data Manager."""
    return {"filter": f"filter:tasks:{column}", "operator": operator, "type": kind, "value": value}


def _totals(page: dict[str, Any]) -> tuple[int, int]:
    return page["total"], page["total_annotations"]


def _name(user: dict[str, Any]) -> str:
    return user.get("email") or user.get("username") or str(user["id"])


def _moment(date: str | None) -> str:
    """The time of a response by the server's clock, in the server's format."""
    moment = datetime.now(timezone.utc) if date is None else parsedate_to_datetime(date)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
