"""ExportLines: exports of labelling platforms as the lines that `read_spans` reads."""

import json
import os
from collections.abc import Iterator
from typing import Any

from crowdzoo.errors import SHOWN, BadRow
from crowdzoo.reading.platforms.export import Export
from crowdzoo.reading.platforms.record import Record
from crowdzoo.reading.sentences.text_lines import TextFile


class ExportLines(TextFile):
    """A line for each annotator of a sentence, with the number of its entry in the export.

    Args:
        path: the export.
        platform: see `Export`.
        field: see `Export`.
        text: name of the column of the export that is the text; None: `text`, or the only one that holds strings.

    Attributes:
        export: the export.
    """

    def __init__(self, path: str | os.PathLike[str], platform: str, field: str | None = None, text: str | None = None):
        super().__init__(path)
        self.export = Export(path, platform, "sequence", field)
        self.text = text

    def lines(self) -> Iterator[tuple[int, str | None]]:
        """Lines with the numbers of their entries; gold comes last."""
        gold: dict[str, tuple[int, str]] = {}
        for record in self.export.records():
            if isinstance(record, BadRow):
                self._note(record)
                continue
            text = self._text(record)
            if text is None:
                continue
            if not any(who is not None for who, _ in record.answers):
                yield record.row, _line(record, text, {})
            for who, spans in record.answers:
                if who is None:
                    gold[record.task] = record.row, _line(record, text, {"gold": True, "spans": _tidy(text, spans)})
                else:
                    yield record.row, _line(record, text, {"annotator": who, "spans": _tidy(text, spans)})
        yield from gold.values()

    def _text(self, record: Record) -> str | None:
        """The text that annotators saw; None where it is noted as missing."""
        texts = {name: value for name, value in record.data.items() if isinstance(value, str)}
        name = self.text or "text"
        if self.text is None and len(texts) == 1:
            name = next(iter(texts))
        if name not in texts:
            listed = ", ".join(f"'{one}'" for one in texts) or "none"
            reason = f"is missing. Texts of the entry: {listed}. `crowdzoo convert --text NAME` names it."
            self.note(record.row, name, None, reason)
        return texts.get(name)

    def _note(self, bad: BadRow) -> None:
        self.num_bad += 1
        if len(self._shown) < SHOWN:
            self._shown.append(bad)


def _line(record: Record, text: str, more: dict[str, Any]) -> str:
    tokens = {} if record.tokens is None else {"tokens": record.tokens}
    return json.dumps({"task": record.task, "text": text, **tokens, **more})


def _tidy(text: str, spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spans without white space at their ends, each once: a mouse marks a space too much, or a name twice."""
    found: list[dict[str, Any]] = []
    for span in spans:
        start, end, marked = span["start"], span["end"], span.get("text")
        if type(start) is int and type(end) is int and 0 <= start < end:
            if isinstance(marked, str) and text[start:end] != marked:
                start, end = _code_points(text, start, end, marked)
            inside = text[start:end]
            if inside.strip() and end <= len(text):
                start, end = end - len(inside.lstrip()), start + len(inside.rstrip())
        if (tidy := {"start": start, "end": end, "label": span["label"]}) not in found:
            found.append(tidy)
    return found


def _code_points(text: str, start: int, end: int, marked: str) -> tuple[int, int]:
    """Offsets that count UTF-16, where an emoji is two; others, which do not fit either, stay as they are."""
    units = text.encode("utf-16-le", "surrogatepass")
    before, inside = (units[2 * a : 2 * b].decode("utf-16-le", "replace") for a, b in ((0, start), (start, end)))
    return (len(before), len(before) + len(inside)) if inside == marked else (start, end)
