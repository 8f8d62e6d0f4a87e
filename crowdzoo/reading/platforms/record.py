"""Record: what one entry of an export says of one task."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Record:
    """One entry of an export. An entry may hold the answers of several annotators, or one of them.

    Attributes:
        task: name of the task.
        data: what annotators saw, column -> value.
        answers: annotator (None: the answer is gold) and the labels given, as text (perhaps none), or the spans:
            `{"start": 0, "end": 4, "label": "PER"}`, in characters of the text, with `text` where the platform says
            what was marked.
        left_out: what the entry holds that is no answer, such as "cancelled annotations", once for each.
        seconds: that each answer took, where they are labels; NaN where the platform does not say so.
        empty: what answers without a label are called, once for each; they count where several labels may hold.
        tokens: words of the text where the platform says how it was cut.
        row: number of the entry in its file, from 1; over several files numbers go on.
        entry: as it stands in the file.
    """

    task: str
    data: dict[str, Any]
    answers: list[tuple[str | None, list[Any]]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    tokens: list[str] | None = None
    row: int = 0
    entry: Mapping[str, Any] = field(default_factory=dict)

    def add(self, annotator: str | None, labels: list[str], empty: str, seconds: Any = None) -> None:
        """Adds an answer; `empty` is what it is called where it has no label, `seconds` the time that it took."""
        self.answers.append((annotator, labels))
        try:
            self.seconds.append(float(seconds))
        except (TypeError, ValueError):
            self.seconds.append(math.nan)
        if not labels:
            self.empty.append(empty)
