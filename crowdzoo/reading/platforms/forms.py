"""Entries that hold the answers of several people, each to the questions of a form."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from crowdzoo.reading.platforms.record import Record, id_text, label_text

# Where it is, who gave it (None: who annotated the file), question -> labels (None: skipped), seconds, and when
Answer = tuple[str, Any, dict[str, list[Any]] | None, Any, Any]


def of_forms(
    task: Callable[[Mapping[str, Any]], tuple[str, Any, dict[str, Any]]],
    answers: Callable[[Mapping[str, Any]], Iterable[Answer]],
) -> dict[str, Any]:
    """The attributes `questions` and `read` of a `Platform`.

    Args:
        task: key and name of an entry's task, and what annotators saw.
        answers: those of an entry; raises `BadValue`.
    """

    def questions(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(question, "class") for _, _, form, *_ in answers(entry) for question in form or ()]

    def read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
        key, name, data = task(entry)
        record, empty = Record(id_text(key, name, "is missing."), data), f"answers without '{question}'"
        for where, who, form, *times in answers(entry):
            if form is None:
                record.left_out.append("skipped answers")
                continue
            labels = [text for value in form.get(question, []) if (text := label_text(where, value)) is not None]
            annotator = file_annotator if who is None else id_text(where, who, "has no annotator.")
            record.add(annotator, labels, empty, *times)
        return record

    return {"questions": questions, "read": read}
