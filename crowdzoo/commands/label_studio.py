"""`crowdzoo label-studio`: labels, a report and the next questions for a project on a Label Studio server."""

from __future__ import annotations

import argparse
import csv
import os
import re
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdzoo.commands import options
from crowdzoo.commands.options import add_options, group, integer, number, path
from crowdzoo.commands.outputs import Output, fitted, progress
from crowdzoo.data.instance_kinds import TEXTS as TEXT_INSTANCES
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.files.arrow import read_parquet
from crowdzoo.files.writing import atomic_file, atomic_folder, write_rows
from crowdzoo.kinds import kind_of
from crowdzoo.kinds.page_parts import FLAGS
from crowdzoo.process import say
from crowdzoo.reading.platforms.label_config import TEXTS
from crowdzoo.reading.tables.suffixes import column_names

if TYPE_CHECKING:
    from crowdzoo.label_studio.outcome import Outcome
    from crowdzoo.label_studio.project import Project
    from crowdzoo.reading.platforms.label_config import Control

WITH_ALL_TASKS = ("classification", "regression", "free-text")  # kinds whose tasks are read even without answers


def is_own(folder: Path) -> bool:
    """Whether this command wrote the folder."""
    return (folder / "pulled.sqlite").is_file()


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("url", metavar="URL", help="address of the server, such as https://labels.example.com")
    numbered = {"--project N": "number of the project, as in the address of its page"}
    add_options(command, numbered, type=integer(1, options.MOST), required=True)
    add_options(command, {"--field NAME": "the question, where the project asks several"})
    out = {"--out DIR": "folder for the labels, the tables, the page and what was pulled; later rounds go on from it"}
    add_options(group(command, options.OUTPUT), out, type=path, required=True)
    every = {"--every SECONDS": "a round every so many seconds, until no task is worth a further answer, or Ctrl-C"}
    add_options(command, every, type=integer(1, 86_400))
    push = {
        "--push A,B,…": "what is sent to the server: predictions (labels, with their probability as the score), views "
        "(tasks to ask again, sure and disputed ones, and of each flagged annotator), next (the server hands out the "
        "chosen tasks)",
    }
    add_options(group(command, options.OUTPUT), push, default="")
    dry = {"--dry-run": "send nothing, and say what --push would send"}
    add_options(group(command, options.OUTPUT), dry, action="store_true")
    add_options(command, {"--method NAME": "aggregation method, as in crowdzoo aggregate"})
    options.add_seed(command, "the method and the bootstrap")
    questions = {"--questions N": "questions at most that are chosen in a round (default 100)"}
    add_options(command, questions, type=integer(1, options.MOST), default=100)
    worth = {"--worth X": "classes: answers that a label put right is worth (default 20)"}
    add_options(command, worth, type=number(0))
    outputs = Output("out", "--out", is_own, folder=True, goes_on=True)
    command.set_defaults(outputs=(outputs,))


def run(arguments: argparse.Namespace) -> None:
    """Pull, aggregate, write and push, once or at an interval."""
    from crowdzoo.label_studio.client import LabelStudioError
    from crowdzoo.label_studio.project import Project
    from crowdzoo.label_studio.pushing import WHAT

    what = {word.strip() for word in arguments.push.split(",") if word.strip()}
    if not what <= {*WHAT}:
        raise ConfigError(f"--push {arguments.push}: names some of {', '.join(WHAT)}, with commas between.")
    if arguments.dry_run and not what:
        raise ConfigError("--dry-run says what --push would send: add --push, such as --push predictions.")
    project = Project(arguments.url, arguments.project, folder=arguments.out, on_wait=say)
    outcome, rounds = None, 0
    try:
        while True:
            begin = time.monotonic()
            try:
                outcome = _round(arguments, project, outcome, what)
                rounds += 1
            except (LabelStudioError, DataError) as error:
                if arguments.every is None:
                    raise
                say(f"{error} The next round tries again.")
                outcome = None  # it may not have been sent completely
            if arguments.every is None or (outcome is not None and _is_done(project, outcome)):
                return
            time.sleep(max(0.0, arguments.every - (time.monotonic() - begin)))
    except KeyboardInterrupt:
        say(f"stopped after {rounds:,} rounds; the results are in {arguments.out}")
        raise
    finally:
        _set_refresh(arguments.out / "report.html", None)
        project.close()


def _round(arguments: argparse.Namespace, project: Project, outcome: Outcome | None, what: set[str]) -> Outcome | None:
    """Pull, update the results if anything has changed, and push; None if there are no answers yet."""
    from crowdzoo.label_studio.pushing import push

    page, requests = arguments.out / "report.html", project.client.requests
    with progress("pull", None):
        changes = project.pull()
    now = datetime.now(timezone.utc)
    news = ", ".join(f"{name}: {number:,}" for name, number in changes.items()) or "nothing changed"
    print(f"{now:%Y-%m-%d %H:%M:%S} UTC: {news} ({project.client.requests - requests:,} requests)", flush=True)
    control = project.control(arguments.field)
    kind = kind_of(control.kind)
    if "next" in what and (kind.questions is None or not kind.questions.about_tasks):
        raise ConfigError(f"--push next: crowdzoo chooses no questions for {kind.title}; leave next out.")
    is_missing = not page.is_file() or (outcome is None and bool(what or arguments.every))
    is_new = project.is_changed or is_missing
    if is_new:
        title = f"{project.settings['title']}, {control.name}: {now:%d %B %Y %H:%M} UTC, {news}"
        outcome = _results(arguments, project, control, title)
        if outcome is None:
            print("No task has an answer yet.")
            return None
        project.set_used()
    if outcome is not None and (is_new or "next" in what):
        for line in push(project, outcome, what, arguments.dry_run):
            print(f"  {line}", flush=True)
    return outcome


def _is_done(project: Project, outcome: Outcome) -> bool:
    """Whether no task is worth a further answer; prints a message if so."""
    if not outcome.is_done or any(not task["annotations"] for task in project.tasks()):
        return False
    print("No task is worth a further answer.")
    return True


def _results(arguments: argparse.Namespace, project: Project, control: Control, title: str) -> Outcome | None:
    """Write labels, tables and page; None if there are no answers."""
    from crowdzoo.files.writing import write_table
    from crowdzoo.label_studio.outcome import Outcome
    from crowdzoo.label_studio.project import answers_kind, read_answers
    from crowdzoo.quality import quality_report
    from crowdzoo.reading.instances.instances import read_instances
    from crowdzoo.reading.platforms.export import Export
    from crowdzoo.report.page import report_page
    from crowdzoo.report.page_changes import read_numbers
    from crowdzoo.report.sheets import page_sheets, with_sheets

    folder, seed, kind = arguments.out, arguments.seed, answers_kind(control)
    file, instances, numbers = folder / "tasks.json", folder / "data" / "instances.csv", folder / "report.json"
    if not project.write(file):
        return None
    reading = {"on_bad_rows": "reject", "rejects": folder / "rejects.csv", "on_bad_tags": "mend"}
    reading = {name: value for name, value in reading.items() if name in kind.options.reading}
    crowd = read_answers(control, file, platform="label-studio", field=control.name, **reading)
    with open(folder / "rejects.csv", newline="", encoding="utf-8") as rejects:
        rejected = sum(1 for _ in csv.reader(rejects)) - 1  # without the header
    if rejected > 0:
        say(f"warning: {rejected:,} answers that cannot be read are in {folder / 'rejects.csv'}, with the reasons")
    is_text = kind.options.inputs[1] == "instances" and {each.lower() for each in control.objects} <= TEXTS
    text = {"text": control.data_keys[0]} if is_text and len(control.data_keys) == 1 else {}
    with atomic_folder(folder / "data", replace=True) as data:
        kind.reading.write_export(crowd, Export(file, "label-studio", str(control.kind), control.name), data, text)
    columns = column_names(instances) if instances.is_file() else []
    has_gold = "gold" in columns and kind.labels.one_class
    gold = kind.reading.gold_of(crowd, instances) if has_gold else None
    aggregator = kind.aggregation.create(arguments.method, seed=seed)
    result = kind.aggregation.add_notes(fitted(aggregator, crowd), crowd)
    kind.aggregation.write(result, crowd, folder / "labels")
    if project.is_changed and numbers.is_file():
        os.replace(numbers, folder / "before.json")
    before = read_numbers(folder / "before.json") if (folder / "before.json").is_file() else None
    texts = read_instances(instances, TEXT_INSTANCES) if "text" in columns else None
    shown: Any = {"title": title, "instances": texts, "before": before, "options": {"classes": [*control.classes]}}
    with progress("bootstrap", None):
        page = report_page(crowd, result, gold=gold, seed=seed, **shown)
        if kind.labels.one_class:
            sheets = with_sheets(quality_report(crowd, result, seed=seed), crowd, result, gold=gold, seed=seed)
        else:
            sheets = page_sheets(page, crowd, result, None, None)
    page.write(folder / "report.html")
    _set_refresh(folder / "report.html", arguments.every)
    sheets.write(folder / "sheets", replace=True)
    for place in (folder / "sheets").glob("*.parquet"):  # also for spreadsheets
        with atomic_file(place.with_suffix(".csv")) as table:
            write_table(read_parquet(place), table, "csv")
    for line in page.numbers.verdict:
        print(f"  {line}")
    tasks = np.array([*map(str, project.store.ids())], object)
    if control.kind in WITH_ALL_TASKS and len(tasks) > crowd.num_tasks:
        places = {name: place for place, name in enumerate(tasks.tolist())}
        codes = np.array([places[str(name)] for name in crowd.tasks.tolist()], np.int64)
        crowd = replace(crowd, tasks=tasks, task_ids=codes[crowd.task_ids])
        gold = kind.reading.gold_of(crowd, instances) if has_gold else None
        result = fitted(aggregator, crowd)
    flags = zip(*(sheets.annotators[name].to_pylist() for name in ("annotator", "flag")), strict=True)
    # with next, later questions are the contested ones, so that all annotators seem to change
    ignored = {"", FLAGS["drift"].title} if "next" in arguments.push else {""}
    flagged = {str(name): flag for name, flag in flags if flag not in ignored}
    own: Any = {"number": arguments.questions, **options.given(arguments, ["worth"])}
    outcome = Outcome(control=control, crowd=crowd, aggregation=result, flagged=flagged, gold=gold, **own)
    if outcome.has_questions:
        asked, result = outcome.questions, outcome.aggregation
        rows = zip(result.tasks[asked.tasks], result.annotators[asked.annotators], asked.gains.tolist(), strict=True)
        write_rows(folder / "next.csv", ("task", "annotator", "gain"), rows)
    return outcome


def _set_refresh(page: Path, seconds: int | None) -> None:
    """Make browsers reload the page at an interval, or stop reloading it."""
    if not page.is_file():
        return
    text = page.read_text(encoding="utf-8", errors="surrogateescape")
    tag = "" if seconds is None else f'<meta http-equiv="refresh" content="{seconds}">'
    text = re.sub('<head>(<meta http-equiv="refresh".*?>)?', f"<head>{tag}", text, count=1)
    with atomic_file(page) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
