"""Amazon Mechanical Turk: the CSV file of a batch's results.

Its download and the columns Approve and Reject:
https://docs.aws.amazon.com/AWSMechTurk/latest/RequesterUI/ReviewingResultsOutsideoftheRUI.html
The status of an assignment:
https://docs.aws.amazon.com/AWSMechTurk/latest/AWSMechanicalTurkRequester/RetrievingResults.html
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.files.json import JsonError, parse_json
from crowdzoo.reading.platforms.csv_records import csv_records
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Record, id_text, json_cell, label_texts

_ANSWER, _INPUT = "Answer.", "Input."
_FORM = "taskAnswers"  # column of forms with Crowd HTML elements
_MISSING = "is missing. Download the results with 'Download CSV'."


def _is_own(entry: Mapping[str, Any]) -> bool:
    return "HITId" in entry and "WorkerId" in entry


def _questions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in _answers(entry):
        yield name, "class"


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    data = {name.removeprefix(_INPUT): value for name, value in entry.items() if name.startswith(_INPUT)}
    record = Record(id_text("HITId", entry.get("HITId"), _MISSING), data)
    if entry.get("AssignmentStatus", "").casefold() == "rejected" or entry.get("Reject"):
        record.left_out.append("rejected assignments")
        return record
    annotator = id_text("WorkerId", entry.get("WorkerId"), _MISSING)
    labels = label_texts(_ANSWER + question, _answers(entry).get(question))
    record.add(annotator, labels, f"assignments without an answer to '{question}'", entry.get("WorkTimeInSeconds"),
               entry.get("SubmitTime"))  # fmt: skip
    return record


def _answers(entry: Mapping[str, str]) -> dict[str, list[Any]]:
    """Answers of a row by question.

    Radio buttons and checkboxes have one column per option, `Answer.QUESTION.OPTION`, with true if it was chosen; a
    single such column is a question with the answers true and false. Several values in a column are separated by bars.
    """
    answers: dict[str, list[Any]] = {}
    options = Counter(column.split(".")[1] for column in entry if column.startswith(_ANSWER) and column.count(".") > 1)
    for column, value in entry.items():
        name = column.removeprefix(_ANSWER)
        if name == column or value in ("", "{}"):  # an unanswered form
            continue
        if name == _FORM:
            answers |= form_answers(_ANSWER + _FORM, value)
            continue
        question, dot, option = name.partition(".")
        if dot and value.casefold() in ("true", "false"):
            if options[question] == 1:
                answers[question] = [value.casefold()]
            else:
                answers.setdefault(question, []).extend([option] if value.casefold() == "true" else [])
        else:
            answers[name] = _listed(value)
    return answers


def form_answers(key: str, value: Any) -> dict[str, list[Any]]:
    """Parse answers of a form: a list with one object, question -> value, `{"label": ...}` or `{option: true, ...}`.

    Args:
        key: its key, for messages.
        value: the list, the object, or either as JSON.

    Raises:
        BadValue: not such a form.
    """
    answers: dict[str, list[Any]] = {}
    parts = json_cell(key, value) if isinstance(value, str) else value
    for part in parts if isinstance(parts, list) else [parts]:
        if not isinstance(part, dict):
            raise BadValue(key, value, "is not a list of objects.")
        for question, content in part.items():
            if not isinstance(content, dict):
                answers[question] = content if isinstance(content, list) else [content]
            elif all(isinstance(chosen, bool) for chosen in content.values()):
                options = [option for option, chosen in content.items() if chosen]
                answers[question] = list(content.values()) if len(content) == 1 else options
            elif "label" in content:
                answers[question] = [content["label"]]
            elif isinstance(content.get("labels"), list):
                answers[question] = content["labels"]
            else:
                answers |= {f"{question}.{name}": [choice] for name, choice in content.items()}
    return answers


def _listed(value: str) -> list[Any]:
    if value.startswith("["):
        try:
            values = parse_json(value, constants=True)
        except JsonError:
            return [value]
        return values if isinstance(values, list) else [value]
    return value.split("|")


MTURK = Platform(
    name="mturk",
    title="Amazon Mechanical Turk",
    suffixes=(".csv",),
    menu="In Manage choose the batch, then Results and Download CSV.",
    records=csv_records,
    is_own=_is_own,
    questions=_questions,
    read=_read,
    columns={"task": "HITId", "annotator": "WorkerId", "label": _ANSWER, "data": _INPUT},
)
