"""Free texts: one text for each task, written by annotators."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from crowdzoo.aggregation.free_texts.tokens import NORMALIZATIONS, UNITS
from crowdzoo.data.annotations import Annotations
from crowdzoo.kinds.base import EXPORT_OPTIONS, RATINGS_ONLY, Kind
from crowdzoo.kinds.free_texts.scoring import SCORING
from crowdzoo.kinds.scoring import Rows
from crowdzoo.reading.instances.gold import read_gold_texts
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS


class FreeTexts(Kind):
    """Labels are texts that annotators wrote; no model learns from them."""

    name = "free-text"
    counted = "texts"
    needed = ("annotations",)
    reading = (*ROW_OPTIONS, *EXPORT_OPTIONS, *LAYOUT_OPTIONS)
    aggregation = "text-rasa"
    metric = "word_error"
    metric_title = "word error"
    scoring = SCORING
    answer = "text"
    header = ("task", "text")
    own_options = scale = ("normalize", "unit")
    refused: ClassVar = {
        **RATINGS_ONLY,
        "classes": "texts have no classes; leave it out.",
        "image": "texts are named by a column of tasks; leave it out.",
        "calibrate": "calibration is for classes; leave it out.",
        "predictions": "a report compares with predictions of classes only; leave it out.",
        "use_gold": "no method for free texts takes known texts; leave it out.",
    }

    def add_arguments(self, command: argparse.ArgumentParser) -> None:
        """How texts are compared."""
        command.add_argument(
            "--normalize", choices=tuple(NORMALIZATIONS),
            help="free texts: what does not count when they are compared: the number of blanks (default), case as "
            "well, punctuation as well, or both (words)",
        )  # fmt: skip
        command.add_argument(
            "--unit", choices=tuple(UNITS), help="free texts: what is compared (characters: for scripts without blanks)"
        )

    def gold_of(self, crowd: Annotations, path: Path | None, layout: Layout | None = None) -> np.ndarray | None:
        """True texts, objects [N], empty where the file does not know."""
        return None if path is None else read_gold_texts(path, crowd.tasks, layout)

    # === Aggregation ===

    def result_rows(self, result: Any, crowd: Annotations, gold: np.ndarray | None, used_gold: bool) -> Rows:
        """Confidence, and how texts compare with gold."""
        rows = [("mean confidence", f"{result.confidence.mean():.3f}")] if len(result.texts) else []
        if gold is None:
            return rows
        known = self.scoring.known(gold)
        return rows + replace(SCORING, normalize=result.normalize).rows(gold[known], result.texts[known])


KIND = FreeTexts()
