"""Platform: properties of a labelling platform's exports."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crowdzoo.errors import BadRow
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.json_records import json_records
from crowdzoo.reading.platforms.record import Marked, Record, id_text, label_texts


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A labelling platform. Each has a file in this folder, which links to the documentation of its format.

    Attributes:
        name: name in options.
        title: name as written by the platform.
        suffixes: suffixes of the files of an export, without .gz.
        menu: what to choose for an export on the platform, as the end of a message.
        records: yields entries of a file with their numbers (JSON lines and CSV: the line, from 1), or a `BadRow` for
            an entry that cannot be parsed. Default: entries of a JSON file.
        is_own: whether an entry has the form of this platform.
        questions: name and sort of each question that an entry answers. Sorts: "class", "number", "text", "spans",
            "regions", "pair" and "ranking", "linked" for positions in contents that the export lacks, which is
            rejected, and "other", which is read only if named. "order", with several labels on separate lines, is a
            ranking if all entries have the same labels in different orders, else a class. Raises `BadValue`.
        read: returns the record of an entry, given the question, whether to read spans, and the annotator of the file,
            for entries without one. Raises `BadValue`.
        columns: for exports that are tables, "task", "annotator", "label" and "data" (what annotators saw) -> the
            column, or the prefix of such columns; for messages.
        regions: returns the regions of an entry, given the question ("": all); see `region_record`. None: not
            supported.
        pairs: like `read`, given the question and the columns that name the compared items ("left" and "right", for
            rankings "task"); answers are `(left, right, label)`. None: not supported.
        group: returns the group of an entry and its version, such as "10.16", if a file may contain several projects
            whose questions have the same names. None: there are no groups.
        groups: name of groups in messages, such as "workflow".
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
        """Name of a column in the export: `Input.url` for "data" and "url"."""
        return self.columns.get(what, "") + name

    def lacking(self, columns: Collection[str], *needed: str) -> str:
        """End of a sentence on a missing column, such as ": it has no column 'WorkerId'"; "" if none is missing.

        Args:
            columns: columns of the table.
            needed: keys of the attribute `columns`.
        """
        for what in needed:
            name = self.columns.get(what, "")
            if not any(column.startswith(name) for column in columns):
                begins = " whose name begins with" if name.endswith((".", ":")) else ""
                return f": it has no column{begins} '{name}'"
        return ""


def joined_sorts(sort: str, other: str) -> str:
    """Combine two sorts of a question, see `Platform.questions`."""
    (first, *labels), (second, *more_labels) = sort.split("\n"), other.split("\n")
    if sort != other and labels and sorted(labels) == sorted(more_labels):
        return "\n".join(["ranking", *labels])
    if {first, second} == {"class", "text"}:  # Label Studio's JSON-MIN writes single texts and single choices alike
        return "text"
    if {first, second} == {"number", "regions"}:  # a damaged drawing of Zooniverse is only a number
        return "regions"
    # a slider of Zooniverse gives a number, or text if it was typed
    is_class = {first, second} <= {"class", "order", "ranking"} or {first, second} == {"class", "number"}
    return sort if sort == other else "class" if is_class else "other"


# Key, annotator (None: that of the file), question -> labels (None: skipped), duration in seconds, and time
Answer = tuple[str, Any, dict[str, list[Any]] | None, Any, Any]


def of_forms(
    task: Callable[[Mapping[str, Any]], tuple[str, Any, dict[str, Any]]],
    answers: Callable[[Mapping[str, Any]], Iterable[Answer]],
) -> dict[str, Any]:
    """Create the attributes `questions` and `read` of a `Platform`.

    Args:
        task: returns key and name of an entry's task, and what annotators saw.
        answers: returns the answers of an entry; raises `BadValue`.
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
