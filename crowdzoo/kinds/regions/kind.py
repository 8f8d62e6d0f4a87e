"""Regions of images: masks and boxes that annotators marked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage, dice
from crowdzoo.errors import DataError, short_repr
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
        if gold.num_annotators > 1:
            raise DataError(
                f"{path}: has the regions of {gold.num_annotators:,} annotators. Give one file of true ones."
            )
        known, said = _by_task(gold), _by_task(crowd)
        check_shared(path, known, crowd.tasks)
        for task in known.keys() & said.keys():
            true, marked = MarkedImage.parse(known[task]), MarkedImage.parse(said[task])
            if (true.height, true.width) != (marked.height, marked.width):
                raise DataError(
                    f"{path}: image {task!r} is of size {[true.height, true.width]} there, and "
                    f"{[marked.height, marked.width]} of the annotators. Correct one of them."
                )
        names, others = map(_categories, (gold, crowd))
        if names and others and names.isdisjoint(others):
            raise DataError(
                f"{path}: has the categories {short_repr(sorted(names))}, and annotators {short_repr(sorted(others))}. "
                "Name them alike."
            )
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


def _by_task(marked: Annotations) -> dict[str, str]:
    """An answer to each task, as text."""
    texts = np.asarray(marked.classes)[marked.labels].tolist()
    return dict(zip(map(str, marked.tasks[marked.task_ids].tolist()), texts, strict=True))


def _categories(marked: Annotations) -> set[str]:
    """Those that anybody used."""
    images = map(MarkedImage.parse, np.asarray(marked.classes).tolist())
    return {region.label for image in images for region in image.regions}


KIND = Regions()
