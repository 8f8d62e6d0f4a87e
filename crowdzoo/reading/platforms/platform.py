"""Platform: where the exports of one labelling platform differ from those of the others."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crowdzoo.errors import BadRow
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.json_records import json_records
from crowdzoo.reading.platforms.record import Marked, Record, id_text, label_texts


@dataclass(frozen=True, kw_only=True)
class Platform:
    """One labelling platform. Each has a file in this folder, which names the pages that document its format.

    Attributes:
        name: as users write it.
        title: as the platform writes it.
        suffixes: endings of the files of an export, without .gz.
        menu: what to choose where the platform exports, as the end of a message.
        records: the entries of a file with their numbers (JSON lines and CSV: the line, from 1); a `BadRow` for one
            that cannot be taken apart. Default: those of a JSON file.
        is_own: whether an entry has the shape of this platform.
        questions: name and sort of each question that an entry answers. Sorts: "class", "number", "text", "spans",
            "regions", "pair" and "ranking", "linked" for places in something that the export does not hold, which is
            refused, and "other", which is never chosen unless it is named. "order", with several labels in
            lines, is a ranking if all entries have the same labels in different orders, else a class. Raises
            `BadValue`.
        read: what an entry says, given the question, whether spans are wanted, and who annotated the file where the
            entry does not say. Raises `BadValue`.
        columns: of exports that are tables "task", "annotator", "label" and "data" (what annotators saw) -> the column,
            or what the names of such columns begin with; for messages.
        regions: the regions of an entry, given the question ("": all); see `region_record`. None: it has none.
        pairs: as `read`, given the question and the columns that name what is compared ("left" and "right", of lists in
            order "task"), with answers that are `(left, right, label)`. None: its preferences are not read.
        group: the group of an entry and its version, such as "10.16", where one file may hold the answers of several
            projects whose questions have the same names. None: there are no groups.
        groups: what a group is called in messages, such as "workflow".
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    menu: str
    records: Callable[[ExportFile], Iterator[tuple[int, dict[str, Any] | BadRow]]] = json_records
    is_own: Callable[[Mapping[str, Any]], bool]
    questions: Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]
    read: Callable[[Mapping[str, Any], str, bool, str], Record]
    columns: Mapping[str, str] = field(default_factory=dict)
    regions: Callable[[Mapping[str, Any], str], Marked] | None = None
    pairs: Callable[[Mapping[str, Any], str, Mapping[str, str]], Record] | None = None
    group: Callable[[Mapping[str, Any]], str] | None = None
    groups: str = "group"

    def column(self, what: str, name: str = "") -> str:
        """How a column is called in the export: `Input.url` for "data" and "url"."""
        return self.columns.get(what, "") + name

    def lacking(self, columns: Collection[str], *needed: str) -> str:
        """The end of a sentence on what a table should have and has not, such as ": it has no column 'WorkerId'".

        Args:
            columns: those of the table.
            needed: keys of the attribute `columns`.
        """
        for what in needed:
            name = self.columns.get(what, "")
            if not any(column.startswith(name) for column in columns):
                begins = " whose name begins with" if name.endswith((".", ":")) else ""
                return f": it has no column{begins} '{name}'"
        return ""


def joined_sorts(sort: str, other: str) -> str:
    """The sort of a question that has two of them, see `Platform.questions`."""
    (first, *labels), (second, *more_labels) = sort.split("\n"), other.split("\n")
    if sort != other and labels and sorted(labels) == sorted(more_labels):
        return "\n".join(["ranking", *labels])
    if {first, second} == {"class", "text"}:  # Label Studio's JSON-MIN writes one text as it writes one choice
        return "text"
    if {first, second} == {"number", "regions"}:  # a drawing of Zooniverse that is damaged has a number alone
        return "regions"
    # a slider of Zooniverse is a number, or its text where it was typed
    is_class = {first, second} <= {"class", "order", "ranking"} or {first, second} == {"class", "number"}
    return sort if sort == other else "class" if is_class else "other"


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
            annotator = file_annotator if who is None else id_text(where, who, "has no annotator.")
            record.add(annotator, label_texts(where, form.get(question)), empty, *times)
        return record

    return {"questions": questions, "read": read}
