"""Toloka: the TSV file of a pool's results (https://toloka.ai/docs/guide/result-of-eval)."""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.reading.platforms.csv_records import csv_records
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import Record, id_text, json_cell, label_texts

_INPUT, _OUTPUT, _GOLDEN = "INPUT:", "OUTPUT:", "GOLDEN:"
_WORKER, _TASK, _STATUS = "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id", "ASSIGNMENT:status"
# Assignments without answers
_NOT_DONE = {"REJECTED": "rejected", "SKIPPED": "skipped", "EXPIRED": "expired", "ACTIVE": "unfinished"}


def _is_own(entry: Mapping[str, Any]) -> bool:
    return _WORKER in entry and any(name.startswith(_OUTPUT) for name in entry)


def _questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in entry.items():
        if name.startswith(_OUTPUT) and value:
            yield name.removeprefix(_OUTPUT), "class"


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    data = {name.removeprefix(_INPUT): value for name, value in entry.items() if name.startswith(_INPUT)}
    # without ids, tasks are named after their data
    task = entry.get(_TASK) or " | ".join(data.values())
    record = Record(id_text(_TASK, task, "is missing, and the columns INPUT:... are empty."), data)
    if gold := _labels(_GOLDEN + question, entry.get(_GOLDEN + question, "")):
        record.add(None, gold, "")
    status = entry.get(_STATUS, "").upper()
    if status in _NOT_DONE:
        record.left_out.append(f"{_NOT_DONE[status]} assignments")
        return record
    labels = _labels(_OUTPUT + question, entry.get(_OUTPUT + question, ""))
    missing = "is missing. Download the results of the pool, which name the Tolokers."
    who, empty = id_text(_WORKER, entry.get(_WORKER), missing), f"assignments without an answer to '{question}'"
    record.add(who, labels, empty, time=entry.get("ASSIGNMENT:submitted"))
    return record


def _labels(key: str, value: str) -> list[str]:
    """Labels of a cell; several are a JSON list."""
    return label_texts(key, json_cell(key, value) if value.startswith("[") else value)


TOLOKA = Platform(
    name="toloka",
    title="Toloka",
    suffixes=(".tsv", ".csv"),
    menu="On the pool's page choose Download results.",
    records=csv_records,
    is_own=_is_own,
    questions=_questions,
    read=_read,
    columns={"annotator": _WORKER, "label": _OUTPUT, "data": _INPUT},
)
