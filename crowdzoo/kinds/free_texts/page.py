"""TextPage: what the page of a report says of free texts."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import numpy as np

from crowdzoo.aggregation.free_texts.edits import ERRORS
from crowdzoo.aggregation.free_texts.text_table import TextTable
from crowdzoo.aggregation.free_texts.tokens import UNITS, Tokens
from crowdzoo.data.label_kinds import FREE_TEXT
from crowdzoo.kinds.free_texts.agreement import TextAgreement
from crowdzoo.kinds.kind_page import KindPage, below_and_at_chance, interval
from crowdzoo.kinds.page_parts import listed, rows_of
from crowdzoo.quality.annotators import FEW
from crowdzoo.quality.copies import copies

MOST_FAR = 10  # texts of an annotator
MOST_TOKENS = 200  # of a text that is aligned


class TextPage(KindPage):
    """What the page of a report says of free texts."""

    kind, labels, given = "free-text", FREE_TEXT, "free texts"
    metrics = ("edits",)
    not_metric = "the distance of two texts is their error rate; leave it out."
    own_values = ("error_rate", "mean_confidence")
    compared = "text"
    judged = "agreement"

    def measure(self) -> None:
        """See `KindPage.measure`."""
        found, asked = self.aggregation, self.asked
        self.texts = TextTable.of(self.table, "A page of a report", found.unit, found.normalize)
        self.measured = agreement = TextAgreement.of(self.texts, asked.bootstrap, asked.seed, asked.on_sample)
        self.alpha = agreement.alpha
        sizes = self.texts.sizes
        known = sizes > 0
        self.count(
            sizes,
            error_rate=agreement.error_rate,
            mean_confidence=float(found.confidence[known].mean()) if known.any() else None,
            aggregation=found.method,
            unit=found.unit,
            normalize=found.normalize,
        )
        far = self.texts.of_tasks(self.texts.sums(self.texts.distances))
        pairs = sizes * (sizes - 1)
        self.tasks = listed({
            "task": self.table.tasks,
            "annotations": sizes,
            "text": found.texts,
            "confidence": np.where(known, found.confidence, np.nan),
            "error_rate": np.divide(far, pairs, out=np.full(len(sizes), np.nan), where=pairs > 0),
        })  # fmt: skip
        self.shown = self.most("error_rate")
        self.measure_annotators()

    def measure_annotators(self) -> None:
        """Sets the table of annotators."""
        measured, table = self.measured, self.table
        value, low, high = 1 - measured.rates, 1 - measured.high, 1 - measured.low
        chance = 1 - (self.alpha.expected if self.alpha else 1.0)
        against, random = below_and_at_chance(value, low, high, measured.shared >= FEW, chance)
        counts = np.bincount(table.annotator_ids, minlength=table.num_annotators)
        self.annotators = self.of_annotators(
            counts, measured.shared, {"random": random | against},
            **interval("agreement", value, low, high),
            **dict(zip(ERRORS, measured.kinds.T, strict=True)),
            reliability=np.where(counts > 0, self.aggregation.reliability, np.nan),
            copies=copies(table.annotators, table.task_ids, table.annotator_ids, table.labels),
        )  # fmt: skip

    def aligned(self, task: int, text: str) -> str:
        """A text beside that of its task: [one ← other] where it says one for the other, [+ more], [− less]."""
        found = self.aggregation
        tokens = Tokens.of([found.texts[task], text], found.unit, found.normalize)
        names = [tokens.names[code] for code in tokens.codes.tolist()]
        true, said = names[: tokens.lengths[0]][:MOST_TOKENS], names[tokens.lengths[0] :][:MOST_TOKENS]
        between, parts = UNITS[found.unit], []
        for what, start, end, first, last in SequenceMatcher(None, true, said, autojunk=False).get_opcodes():
            one, other = between.join(said[first:last]), between.join(true[start:end])
            form = {"equal": "{0}", "replace": "[{0} ← {1}]", "insert": "[+ {0}]", "delete": "[− {1}]"}[what]
            parts.append(form.format(one, other))
        return between.join(parts)

    def annotator_details(self, shown: list[int]) -> list[dict[str, Any]]:
        """Nothing opens under an annotator."""
        return [{} for _ in shown]

    def task_details(self) -> list[dict[str, Any]]:
        """Who wrote what, aligned with the text of the task."""
        table, classes = self.table, self.table.classes
        assert classes is not None
        rows = rows_of(table.task_ids, np.argsort(table.task_ids, kind="stable"), self.shown, MOST_FAR)
        return [
            {"voters": [[self.names[table.annotator_ids[row]], self.aligned(task, str(classes[table.labels[row]]))]
                        for row in of]}
            for task, of in zip(self.shown, rows, strict=True)
        ]  # fmt: skip

    def second(self) -> str:
        """See `KindPage.second`."""
        rate = self.measured.error_rate
        if rate is None:
            return "No task has two texts"
        return f"Two texts of one task differ in {100 * rate:.0f} % of their {self.aggregation.unit}"


PAGE = TextPage
