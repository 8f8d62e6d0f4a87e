"""brat: one folder per annotator, with a text file and a file of annotations (.ann) per document.

The format: https://brat.nlplab.org/standoff.html. Relations, events, attributes and notes are left out.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from crowdzoo.files.text import readable
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Record

_SPAN = re.compile(r"T\S*\t(\S+) (\d+ \d+(?:;\d+ \d+)*)\t(.*)")


def _records(file: ExportFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """The document, with the lines of its annotations."""
    with file.text() as stream, file.sibling(".txt").text() as text:
        lines = readable(stream.read()).splitlines()
        yield 1, {"document": PurePath(file.member or file.path).stem, "text": readable(text.read()), "lines": lines}


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    who, _, task = file_annotator.partition("/")
    if not task and who == entry["document"]:
        raise BadValue(None, who, "is in no folder of its annotator. Make one for each, named after them.")
    record = Record(task or entry["document"], {"text": entry["text"]})
    drawn = []
    for number, line in enumerate(entry["lines"], start=1):
        if not line.startswith("T"):
            record.left_out += ["relations, events, attributes and notes"] * line.startswith((*"REAMN*#",))
            continue
        match = _SPAN.fullmatch(line)
        if match is None:
            raise BadValue(f"line {number}", line, "is not a span, such as T1<tab>PER 0 4<tab>Anna. Leave it out.")
        label, places, marked = match.groups()
        pieces = [[int(place) for place in piece.split()] for piece in places.split(";")]
        span = {"start": pieces[0][0], "end": pieces[-1][1], "label": label, "text": marked, "place": f"line {number}"}
        drawn.append(span if len(pieces) == 1 else {**span, "fragments": pieces})
    record.answers.append((who, drawn))
    return record


BRAT = Platform(
    name="brat",
    title="brat",
    suffixes=(".ann",),
    menu="Give the folder that holds a folder for each annotator.",
    records=_records,
    is_own=lambda entry: {"document", "lines"} <= entry.keys(),
    questions=lambda entry: [("spans", "spans")],
    read=_read,
)
