"""WebAnno TSV 3.3, also from INCEpTION: one file per annotator and document.

Sentences are tasks, and a span that continues in the next sentence becomes one span in each. Relations and chains are
left out. The format: https://inception-project.github.io/releases/36.6/docs/user-guide.html#sect_formats_webannotsv3.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from crowdzoo.files.text import readable
from crowdzoo.reading.platforms.export_file import ExportFile
from crowdzoo.reading.platforms.platform import Platform
from crowdzoo.reading.platforms.record import BadValue, Record

_ROW = re.compile(r"\d+-\d+(\.\d+)?\t(\d+)-\d+\t([^\t]+)")
_VALUE = re.compile(r"((?:\\.|[^\\|\[])+)(?:\[(\d+)\])?")  # value of one of several stacked spans, and its number
_DOCUMENT = re.compile(r"\.(txt|tsv|conll|xml|xmi|pdf|html?|json|rtf|docx|tcf|vert)$", re.IGNORECASE)


def _records(file: ExportFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield sentences with names of their columns: layer and feature for spans, "" for others."""
    with file.text() as stream:
        lines = readable(stream.read()).replace("\r\n", "\n").split("\n")
    # a document is a folder, even if there is only one
    folder = PurePath(file.path, file.member or "").parent.name
    document = folder if _DOCUMENT.search(folder) else ""
    columns: list[str] = []
    texts, rows = list[str](), list[tuple[int, str]]()
    for number, line in enumerate([*lines, ""], start=1):
        if line.startswith(("#T_SP=", "#T_CH=", "#T_RL=")):
            layer, *features = line[6:].split("|")
            name = layer.rpartition(".")[2] if line.startswith("#T_SP=") else ""
            columns += [f"{name}.{feature}".rstrip(".") if name else "" for feature in features or [""]]
        elif line.startswith("#Text="):
            texts.append(line[6:])
        elif line and not (line.startswith("#") and not rows):
            rows.append((number, line))
        elif rows:
            yield rows[0][0], {"text": "\n".join(texts), "rows": rows, "columns": columns, "document": document}
            texts, rows = [], []


def _read(entry: Mapping[str, Any], question: str, spans: bool, file_annotator: str) -> Record:
    parts = file_annotator.split("/")
    who, name = (parts[-1], entry["document"]) if entry["document"] else (parts[0], "/".join(parts[1:]))
    number = entry["rows"][0][1].partition("-")[0]
    text, drawn, tokens = _plain(entry["text"]), dict[tuple[str, Any], dict[str, Any]](), list[str]()
    left_out = list[str]()
    first = offset = end = 0
    for row, line in entry["rows"]:
        match = _ROW.match(line)
        if match is None:
            raise BadValue(f"line {row}", line, "is not a line of a token, such as 1-1<tab>0-4<tab>Anna<tab>PER.")
        word = _plain(match[3])
        start = first + int(match[2]) - offset
        if match[1] is None:  # else a part of the previous token
            first = start = text.find(word, end)
            offset = int(match[2])
            tokens.append(word)
        end = start + len(word)
        if text[max(start, 0) : end] != word:
            raise BadValue(f"line {row}", line, "is not in the sentence's #Text=. Export the document again.")
        cells = dict(zip(entry["columns"], line.split("\t")[3:], strict=False))
        left_out += ["relations and chains"] * (cells.get("", "_") != "_")
        for value, mark in _VALUE.findall(cells.get(question, "_")):
            if value != "_":
                label = question.partition(".")[0] if value == "*" else _plain(value)
                drawn.setdefault((label, mark or row), {"start": start, "label": label})["end"] = end
    task = f"{name}/{number}" if name else number
    if who == "INITIAL_CAS":  # the document as it was imported
        return Record(
            task, {"text": text}, left_out=["sentences of INITIAL_CAS, which nobody annotated"], tokens=tokens
        )
    gold = who == "CURATION_USER"
    return Record(task, {"text": text}, [(None if gold else who, [*drawn.values()])], left_out, tokens=tokens)


def _plain(text: str) -> str:
    """Remove escapes of special characters."""
    return re.sub(r"\\(.)", lambda escape: {"n": "\n", "t": "\t", "r": "\r"}.get(escape[1], escape[1]), text)


WEBANNO = Platform(
    name="webanno",
    title="WebAnno or INCEpTION",
    suffixes=(".tsv",),
    menu="Choose the format WebAnno TSV v3.3; give the folder that holds a file for each annotator.",
    records=_records,
    is_own=lambda entry: "rows" in entry and bool(entry["columns"]),
    questions=lambda entry: [(name, "spans") for name in entry["columns"] if name],
    read=_read,
)
