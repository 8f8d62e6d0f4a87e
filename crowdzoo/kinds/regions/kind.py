"""Regions of images: masks and boxes that annotators marked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage, dice
from crowdzoo.kinds.base import EXPORT_OPTIONS, RATINGS_ONLY, Kind, Rows
from crowdzoo.reading.instances.gold import check_shared
from crowdzoo.reading.tables.layout import LAYOUT_OPTIONS, Layout
from crowdzoo.reading.tables.options import ROW_OPTIONS


class Regions(Kind):
    """Labels are regions of images."""

    name = "region"
    counted = "answers"
    needed = ("annotations",)
    reading = (*ROW_OPTIONS, *EXPORT_OPTIONS, *LAYOUT_OPTIONS, "image")
    aggregation = "objects"
    metric = "dice"
    metric_title = "Dice coefficient"
    answer = "regions"
    header = ("task", "regions")
    refused: ClassVar = {
        **RATINGS_ONLY,
        "classes": "classes are those of the regions; leave it out.",
        "calibrate": "calibration is for classes; leave it out.",
        "predictions": "a report compares with predictions of classes only; leave it out.",
        "use_gold": "no method for regions takes known ones; leave it out.",
    }

    def gold_of(self, crowd: Annotations, path: Path | None, layout: Layout | None = None) -> np.ndarray | None:
        """True regions as texts, objects [N], empty where the file does not know: COCO, by one annotator."""
        if path is None:
            return None
        gold = Annotations.read(path, kind=self.name, platform="coco")
        texts = np.asarray(gold.classes)[gold.labels].tolist()
        known = dict(zip(map(str, gold.tasks[gold.task_ids].tolist()), texts, strict=True))
        check_shared(path, known, crowd.tasks)
        return np.array([known.get(str(task), "") for task in crowd.tasks.tolist()], object)

    # === Aggregation ===

    def result_rows(self, result: Any, crowd: Annotations, gold: np.ndarray | None, used_gold: bool) -> Rows:
        """Regions, confidence, and what `scores` says of gold."""
        number = sum(len(image.regions) for image in result.marked if image is not None)
        rows = [("regions", f"{number:,}"), ("mean confidence", f"{result.confidence.mean():.3f}")]
        if gold is None:
            return rows
        known = (gold != "") & (result.regions != "")
        found = self.scores(gold[known], {"regions": result.regions[known]})
        of_gold = ((f"{name} against gold", f"{value:.4f}") for name, value in found.items())
        return [*rows, ("tasks with gold", f"{known.sum():,}"), *of_gold]

    # === Evaluation ===

    def scores(self, truth: np.ndarray, answers: Mapping[str, np.ndarray], **about: Any) -> dict[str, Any]:
        """Dice coefficient and intersection over union, means of the images; 1 where both are empty.

        Args:
            truth: texts of `MarkedImage`, [N].
            answers: `regions`, likewise.
            **about: nothing.
        """
        pairs = zip(truth, answers["regions"], strict=True)
        near = np.array([dice(*map(MarkedImage.parse, pair)) for pair in pairs])
        return {"dice": float(near.mean()), "iou": float((near / (2 - near)).mean())}


KIND = Regions()
