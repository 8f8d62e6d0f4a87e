"""SageMaker Ground Truth: the folder worker-response of a job's output, or a manifest with answers of workers.

Both: https://docs.aws.amazon.com/sagemaker/latest/dg/sms-data-output.html; answers are forms of Crowd HTML elements:
https://docs.aws.amazon.com/sagemaker/latest/dg/sms-ui-template-reference.html.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from crowdzoo.errors import BadRow
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.json_records import json_records
from crowdzoo.reading.platforms.mturk import form_answers
from crowdzoo.reading.platforms.platform import Answer, Platform, of_forms
from crowdzoo.reading.platforms.record import BadValue

_ALL = "annotationsFromAllWorkers"


def _records(file: ExportFile) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Yield entries; those of worker-response are named after their folder, the number of the task in the job."""
    folder = PurePath(file.path, file.member or "").parent.name
    for number, entry in json_records(file):
        yield number, {**entry, "folder": folder} if isinstance(entry, dict) and "answers" in entry else entry


def _lists(entry: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Keys of lists of answers, and the lists."""
    own = [(f"{key}.{_ALL}", value[_ALL]) for key, value in entry.items() if isinstance(value, dict) and _ALL in value]
    return [("answers", entry["answers"])] if isinstance(entry.get("answers"), list) else own


def _task(entry: Mapping[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    data = {name: entry[name] for name in ("source-ref", "source") if name in entry}
    return "source-ref", entry.get("folder", next(iter(data.values()), None)), data


def _answers(entry: Mapping[str, Any]) -> Iterator[Answer]:
    for key, answers in _lists(entry):
        for place, answer in enumerate(answers if isinstance(answers, list) else [answers]):
            where = f"{key}[{place}]"
            try:
                content = answer["answerContent"] if "answerContent" in answer else answer["annotationData"]["content"]
                who, *times = (answer.get(name) or "" for name in ("workerId", "timeSpentInSeconds", "submissionTime"))
            except (LookupError, TypeError, AttributeError):
                raise BadValue(where, answer, "has neither answerContent nor annotationData.content.") from None
            yield where, who, form_answers(where, content), times[0], times[1]


SAGEMAKER = Platform(
    name="sagemaker",
    title="SageMaker Ground Truth",
    suffixes=(".manifest", ".json"),
    menu=f"Give the folder annotations/worker-response of the job's output, or a manifest with {_ALL}.",
    records=_records,
    is_own=lambda entry: bool(_lists(entry)),
    **of_forms(_task, _answers),
)
