"""ExportLines: exports of labelling platforms as the lines that `read_spans` reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from crowdzoo.errors import SHOWN, BadRow
from crowdzoo.platforms.export import Export
from crowdzoo.platforms.record import Record
from crowdzoo.sequences.text_lines import TextFile

__all__ = ["ExportLines"]


class ExportLines(TextFile):
    """A line for each annotator of a sentence, with the number of its entry in the export.

    Args:
        path: the export.
        platform: see `Export`.
        field: see `Export`.

    Attributes:
        export: the export.
    """

    def __init__(self, path: str | os.PathLike[str], platform: str, field: str | None = None):
        super().__init__(path)
        self.export = Export(path, platform, "sequence", field)

    def lines(self) -> Iterator[tuple[int, str | None]]:
        """Lines with the numbers of their entries; gold comes last, and only where each sentence has it."""
        tasks: set[str] = set()
        gold: dict[str, tuple[int, str]] = {}
        for record in self.export.records():
            if isinstance(record, BadRow):
                self._note(record)
                continue
            if (text := record.text) is None:
                self.note(
                    record.row, "text", None, "is missing: the entry has no text, or several and none named 'text'."
                )
                continue
            tasks.add(record.task)
            if not any(who is not None for who, _ in record.answers):
                yield record.row, _line(record, text, {})
            for who, spans in record.answers:
                if who is None:
                    gold[record.task] = record.row, _line(record, text, {"gold": True, "spans": _tidy(text, spans)})
                else:
                    yield record.row, _line(record, text, {"annotator": who, "spans": _tidy(text, spans)})
        if len(gold) == len(tasks):
            yield from gold.values()
        elif gold:
            self.export.left_out[f"gold, which {len(tasks) - len(gold):,} of {len(tasks):,} sentences lack"] = len(gold)

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
        start, end = span["start"], span["end"]
        if type(start) is int and type(end) is int and 0 <= start < end <= len(text):
            inside = text[start:end]
            start, end = end - len(inside.lstrip()), start + len(inside.rstrip())
        if (tidy := {"start": start, "end": end, "label": span["label"]}) not in found:
            found.append(tidy)
    return found
