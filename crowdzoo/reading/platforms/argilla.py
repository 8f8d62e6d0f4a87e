"""Argilla: records as JSON, of Argilla 2, of feedback datasets of Argilla 1, and of its older datasets.

Argilla 2: https://docs.argilla.io/latest/how_to_guides/import_export and
https://docs.argilla.io/latest/reference/argilla/records/records. Argilla 1:
https://docs.v1.argilla.io/en/latest/practical_guides/export_dataset.html.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.data.orders import order_pairs
from crowdzoo.errors import ConfigError, Setting
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Record, as_list, id_text, label_texts, span_of

_FLAT = ".responses"  # in flat records: QUESTION.responses, similarly .users and .status
_OLD = "annotation"  # the only question of datasets before feedback datasets
_COUNTED = ("submitted", "Validated", None)  # status of responses
_LIST = ("label", "start", "end")  # of a span in older datasets
_NO_USER = "is missing. Export the responses with their users."
_NOT_DATA = ("id", "external_id", "_server_id", "status", "metadata", "vectors", "suggestions", "inserted_at",
             "updated_at")  # fmt: skip

# A response: user, status and value
_Response = tuple[Any, Any, Any]


def _is_own(entry: Mapping[str, Any]) -> bool:
    return (
        ("fields" in entry and "responses" in entry)
        or "annotation_agent" in entry
        or any(name.endswith(_FLAT) or _is_responses(value) for name, value in entry.items())
    )


def _questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for question, _, (_, status, value) in _responses(entry):
        if value is not None and (status in _COUNTED or not isinstance(value, list)):
            yield question, _sort(_rows(value))


def _sort(value: Any) -> str:
    if isinstance(value, list) and value and not isinstance(value[0], str):
        if isinstance(value[0], dict) and "rank" in value[0]:
            return "ranking"
        return "spans" if isinstance(value[0], list) or _is_span(value[0]) else "other"
    if isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value):
        return "\n".join(["order", *value])
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else "class"


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    record = _record(entry)
    for key, annotator, value in _answers(entry, question, record):
        if spans:
            places = enumerate(as_list(value))
            record.answers.append((annotator, [span_of(f"{key}[{at}]", span, order=_LIST) for at, span in places]))
        elif value is not None:
            record.add(annotator, label_texts(key, value), "responses without a label")
    if not record.answers and not record.left_out:
        record.left_out.append(f"records without a response to '{question}'")
    return record


def _pairs(entry: Mapping[str, Any], question: str, columns: Mapping[str, str]) -> Record:
    """Preferences of annotators: each option of a ranking over all that follow it."""
    record = _record(entry)
    if columns.get("task", "value") != "value":
        known = Setting("columns", {"task": "value"})
        raise ConfigError(f"{Setting('columns', columns)}: options of a ranking have no such name. Write {known}.")
    before = "" if "task" in columns else f"{record.task}/"
    for key, annotator, value in _answers(entry, question, record):
        order = [[f"{before}{name}" for name in tier] for tier in _tiers(key, value)]
        record.add(annotator, [*order_pairs(order)], "responses without a ranking")
    return record


def _tiers(key: str, value: Any) -> list[list[str]]:
    """The options of a ranking by rank, best first."""
    tiers: dict[Any, list[str]] = {}
    for place, option in enumerate(as_list(value)):
        name, rank = (option.get("value"), option.get("rank")) if isinstance(option, dict) else (option, place)
        if not isinstance(value, list) or not isinstance(name, str) or not isinstance(rank, (int, float)):
            raise BadValue(key, value, "is not a ranking. Choose a question that is answered with one.")
        tiers.setdefault(rank, []).append(name)
    return [tiers[rank] for rank in sorted(tiers)]


def _record(entry: Mapping[str, Any]) -> Record:
    task = next((entry[key] for key in ("id", "external_id", "_server_id") if entry.get(key) is not None), None)
    record = Record(id_text("id", task, "is missing. Give records an external_id."), _data(entry))
    tokens = entry.get("tokens")
    if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
        record.tokens = [token for token in tokens if token.strip()]
    return record


def _answers(entry: Mapping[str, Any], question: str, record: Record) -> Iterator[tuple[str, str, Any]]:
    """Yield key, annotator and value of each valid response; others are noted in the record."""
    for own, key, (who, status, value) in _responses(entry):
        if own == question and status in _COUNTED:
            yield key, id_text(f"{key} (user)", who, _NO_USER), _rows(value)
        elif own == question:
            record.left_out.append(f"{str(status).lower()} responses")


def _responses(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, _Response]]:
    """Yield question, key and response from any form of record."""
    nested = entry.get("responses")
    if isinstance(nested, dict):  # Argilla 2: question -> list of responses
        for question, responses in nested.items():
            yield from _of_dicts(question, f"responses.{question}", responses)
    elif isinstance(nested, list):  # Argilla 1: one object per user, with the values of all questions
        for place, response in enumerate(nested):
            values = response.get("values") if isinstance(response, dict) else None
            if values is None and isinstance(response, dict) and response.get("status") not in _COUNTED:
                continue  # discarded before anything was answered
            if not isinstance(values, dict):
                raise BadValue(f"responses[{place}]", response, "is not a response with values.")
            for question, value in values.items():
                answer = value.get("value") if isinstance(value, dict) else value
                key = f"responses[{place}].values.{question}"
                yield question, key, (response.get("user_id"), response.get("status"), answer)
    if "annotation_agent" in entry and entry.get(_OLD) is not None:
        yield _OLD, _OLD, (entry["annotation_agent"], entry.get("status"), entry[_OLD])
    for column, values in entry.items():
        if column.endswith(_FLAT) and isinstance(values, list):
            users, statuses = (as_list(entry.get(f"{column}.{name}")) for name in ("users", "status"))
            if len(users) != len(values):
                raise BadValue(f"{column}.users", users, f"has not one user for each of {len(values)} responses.")
            if statuses and len(statuses) != len(values):
                raise BadValue(f"{column}.status", statuses, f"has not one status for each of {len(values)} responses.")
            statuses = statuses or [None] * len(values)
            question = column.removesuffix(_FLAT)
            yield from ((question, column, row) for row in zip(users, statuses, values, strict=True))
        elif _is_responses(values):  # a feedback dataset as a table
            yield from _of_dicts(column, column, _rows(values))


def _of_dicts(question: str, key: str, responses: Any) -> Iterator[tuple[str, str, _Response]]:
    if not isinstance(responses, list):
        raise BadValue(key, responses, "is not a list of responses.")
    for place, response in enumerate(responses):
        if not isinstance(response, dict) or "value" not in response:
            raise BadValue(f"{key}[{place}]", response, "is not a response with a value.")
        yield question, f"{key}[{place}]", (response.get("user_id"), response.get("status"), response["value"])


def _rows(values: Any) -> Any:
    """Split a value that is an object with one list per key, as written by the library `datasets`."""
    lists = [*values.values()] if isinstance(values, dict) else []
    if not lists or not all(isinstance(column, list) and len(column) == len(lists[0]) for column in lists):
        return values
    return [dict(zip(values, row, strict=True)) for row in zip(*lists, strict=True)]


def _is_responses(values: Any) -> bool:
    if isinstance(values, dict):
        return {"user_id", "value"} <= values.keys()
    if not isinstance(values, list) or not values:
        return False
    return all(isinstance(response, dict) and "user_id" in response and "value" in response for response in values)


def _data(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What annotators saw: the fields, or the remaining columns of a flat record."""
    for name in ("fields", "inputs"):
        if isinstance(entry.get(name), dict) and entry[name]:
            return entry[name]
    return {
        name: value
        for name, value in entry.items()
        if name not in _NOT_DATA and isinstance(value, (str, int, float)) and not {".suggestion", _FLAT} & _ends(name)
        if "annotation_agent" not in entry or name == "text"
    }


def _ends(name: str) -> set[str]:
    """Parts of a column's name after the first dot, each with its dot."""
    return {f".{part}" for part in name.split(".")[1:]} | ({".suggestion"} if "-suggestion" in name else set())


def _is_span(value: Any) -> bool:
    return isinstance(value, dict) and {"start", "end", "label"} <= set(value)


ARGILLA = Platform(
    name="argilla",
    title="Argilla",
    suffixes=(".json", ".jsonl"),
    menu="In Python: dataset.records.to_datasets().to_json('export.jsonl').",
    is_own=_is_own,
    questions=_questions,
    read=_read,
    pairs=_pairs,
)
