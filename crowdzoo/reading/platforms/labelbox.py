"""Labelbox: the NDJSON of an export, one data row per line, with classifications of the row.

The format: https://docs.labelbox.com/reference/label-export and https://docs.labelbox.com/reference/export-image-annotations.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdzoo.reading.platforms.platform import Answer, Platform, of_forms
from crowdzoo.reading.platforms.record import BadValue


def _task(entry: Mapping[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    row = entry["data_row"] if isinstance(entry["data_row"], dict) else {}
    return "data_row.id", row.get("id"), {name: row[name] for name in ("row_data", "external_id") if row.get(name)}


def _answers(entry: Mapping[str, Any]) -> Iterator[Answer]:
    where: Any = "projects"
    try:
        for name, project in entry["projects"].items():
            for place, label in enumerate(project["labels"]):
                where, form, about = f"projects.{name}.labels[{place}]", dict[str, list[Any]](), label["label_details"]
                questions = [*label["annotations"].get("classifications", [])]
                for question in questions:
                    answer = question.get("radio_answer") or question.get("text_answer")
                    chosen = [answer] if answer else question.get("checklist_answers", [])
                    form.setdefault(question["name"], []).extend(
                        choice.get("name", choice.get("content")) for choice in chosen
                    )
                    questions += [nested for choice in chosen for nested in choice.get("classifications") or ()]
                details = label.get("performance_details", {})
                form_or_none, seconds = None if details.get("skipped") else form, details.get("seconds_to_create")
                yield where, about["created_by"] or "", form_or_none, seconds, about.get("created_at")
    except (LookupError, TypeError, AttributeError):
        raise BadValue(where, entry["projects"], "has no labels with label_details and annotations.") from None


LABELBOX = Platform(
    name="labelbox",
    title="Labelbox",
    suffixes=(".ndjson", ".jsonl", ".json"),
    menu="In Python: project.export(params={'label_details': True, 'performance_details': True}).",
    is_own=lambda entry: {"data_row", "projects"} <= entry.keys(),
    **of_forms(_task, _answers),
)
