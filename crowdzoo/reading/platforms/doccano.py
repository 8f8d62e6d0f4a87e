"""doccano: JSONL or JSON, one file per user in a zip archive.

The formats: https://doccano.github.io/doccano/tutorial/ and backend/data_export/pipeline/examples.py of
https://github.com/doccano/doccano.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Record, id_text, label_text, span_of

_ANSWERS = ("label", "labels", "cats", "entities")
_SHOWN = ("text", "data", "filename")
_SPAN = ("start_offset", "end_offset", "label")
_NOBODY = "unknown"  # file of examples without annotations
_NOT_DATA = (*_ANSWERS, "id", "annotations", "annotation_approver", "relations", "Comments", "comments", "meta")


def _is_own(entry: Mapping[str, Any]) -> bool:
    answered = any(isinstance(entry.get(name), list) for name in (*_ANSWERS, "annotations"))
    return answered and any(isinstance(entry.get(name), str) for name in _SHOWN)


def _questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in (*_ANSWERS, "annotations"):
        values = entry.get(name)
        if isinstance(values, list) and values:
            are_spans = isinstance(values[0], list) or (isinstance(values[0], dict) and "start_offset" in values[0])
            yield name, "spans" if are_spans else "class"


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    data = {name: value for name, value in entry.items() if name not in _NOT_DATA}
    text = next((entry[name] for name in _SHOWN if name in entry), None)
    record = Record(id_text("id", entry.get("id", text), "is missing."), data)
    values = entry.get(question, [])
    if not isinstance(values, list):
        raise BadValue(question, values, "is not a list. Choose the export format JSONL.")
    if not values and file_annotator.rpartition("/")[2] == _NOBODY:
        record.left_out.append("examples that nobody annotated")
        return record
    by_user: dict[str, list[Any]] = {} if question == "annotations" else {file_annotator: []}
    for place, value in enumerate(values):
        key = f"{question}[{place}]"
        who = file_annotator
        if question == "annotations":  # doccano before 1.0, with numeric ids of users and labels
            if not isinstance(value, dict):
                raise BadValue(key, value, "is not an object with label and user.")
            who = id_text(f"{key}.user", value.get("user", file_annotator), "is missing.")
        label = _span(key, value) if spans else _label(key, value)
        by_user.setdefault(who, []).extend([] if label is None else [label])
    for who, answer in by_user.items():
        named = id_text("annotator", who, "is missing.")
        if spans:
            record.answers.append((named, answer))
        else:
            record.add(named, answer, "examples without a label")
    return record


def _label(key: str, value: Any) -> str | None:
    return label_text(key, value.get("label") if isinstance(value, dict) else value)


def _span(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, list) and len(value) != len(_SPAN):
        raise BadValue(key, value, "is not a span [start, end, label].")
    span = span_of(key, value, _SPAN, order=_SPAN)
    return span if isinstance(value, list) else {**span, "label": str(span["label"])}


DOCCANO = Platform(
    name="doccano",
    title="doccano",
    suffixes=(".jsonl", ".json"),
    menu="In Dataset choose Actions, Export Dataset, JSONL; give the zip archive, which has one file for each user.",
    is_own=_is_own,
    questions=_questions,
    read=_read,
)
