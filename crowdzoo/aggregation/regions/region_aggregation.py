"""RegionAggregation: the result of every aggregator of regions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Columns, Result, names_and_counts
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.data.regions import MarkedImage, Region, dice, mask_tools

if TYPE_CHECKING:
    from crowdzoo.aggregation.result_files import ReadResult


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RegionAggregation(Result):
    """Result for regions: the regions of each image, and what was learned about the annotators.

    `to_parquet` writes `tasks.parquet` (task, regions, confidence, annotations), `annotators.parquet` (annotator,
    annotations, agreement, sensitivity, specificity), `summary.json`, and the regions in the format of COCO
    (`regions.json`).

    With N images, R annotators and K classes:

    Attributes:
        marked: `MarkedImage` of each image, each region with its score, objects [N]; None without annotations.
        confidence: mean probability of the decisions, [N], over the pixels that anybody marked, or over the objects; 1
            if nobody marked anything, 0 without annotations.
        agreement: mean Dice coefficient of an annotator's images with the result, [R].
        classes: names of the classes, [K].
        sensitivity: share of a class's pixels that an annotator marks, [R, K]; None if the method has none.
        specificity: share of the other pixels that an annotator does not mark, [R, K]; None if the method has none.
        distance: distance up to which points are one object, in pixels; None: see `radius_of`.
        annotations_per_task: int64 [N].
        annotations_per_annotator: int64 [R].

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import PixelVote
        >>> image = '{"size": [4, 6], "regions": [{"category": "cat", "bbox": [%d, 1, 2, 2]}]}'
        >>> marked = [image % left for left in (1, 1, 2)]
        >>> result = PixelVote().fit(Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], marked, kind="region"))
        >>> [region.label for region in result.marked[0].regions]
        ['cat']
        >>> result.agreement.tolist()  # of each annotator with the result
        [1.0, 1.0, 0.5]
    """

    kind: ClassVar[str] = "region"
    answered: ClassVar = (["task"], "regions", "agg_label")

    marked: NDArray[Any]
    confidence: NDArray[np.float64]
    agreement: NDArray[np.float64]
    classes: NDArray[Any]
    sensitivity: NDArray[np.float64] | None = None
    specificity: NDArray[np.float64] | None = None
    annotations_per_task: NDArray[np.int64]
    annotations_per_annotator: NDArray[np.int64]
    distance: float | None = None

    @classmethod
    def of(
        cls, method: Any, table: RegionTable, regions: list[list[Region]], sums: NDArray[np.float64], **more: Any
    ) -> RegionAggregation:
        """Creates the result for a table.

        Args:
            method: the aggregator.
            table: the table it was fitted to.
            regions: regions of each image, N lists.
            sums: sums and numbers of probabilities, [2, N].
            **more: other attributes.
        """
        counts, marked = names_and_counts(table.annotations), np.full(len(regions), None, object)
        distance = getattr(method, "distance", None)
        overlaps = np.zeros(len(table.marked))
        ids = {
            region.label: region.category_id
            for image in table.marked
            for region in image.regions
            if region.category_id is not None
        }
        for task, rows in table.images():
            scored = (
                replace(region, category_id=ids.get(region.label), score=round(region.score or 0.0, 6))
                for region in regions[task]
            )
            marked[task] = replace(table.marked[rows[0]], regions=tuple(scored))
            overlaps[rows] = [dice(table.marked[row], marked[task], distance) for row in rows]
        answers = counts["annotations_per_annotator"]
        means = np.bincount(table.who, overlaps, len(answers)) / np.maximum(answers, 1)
        return cls(
            method=method.name,
            marked=marked,
            confidence=np.where(sums[1] > 0, sums[0] / np.maximum(sums[1], 1e-12), marked.astype(bool)),
            agreement=np.where(answers > 0, means, overlaps.mean()),
            distance=distance,
            **{"classes": np.array(table.classes, object), **counts, **more},
        )

    def to_coco(self) -> dict[str, Any]:
        """Returns the regions in the format of COCO, with their scores; https://cocodataset.org/#format-data.

        Images and categories keep the ids of the annotators' COCO files if these are unique. A point is the only
        keypoint of its category, with `marked_by` and `covariance`.
        """
        marked = [(name, image) for name, image in zip(self.tasks.tolist(), self.marked.tolist(), strict=True) if image]
        ids = {region.label: region.category_id for _, image in marked for region in image.regions}
        codes = dict(zip(self.classes.tolist(), _ids([*map(ids.get, self.classes.tolist())]), strict=True))
        images, annotations = list[Any](), list[Any]()
        for (name, image), number in zip(marked, _ids([image.image_id for _, image in marked]), strict=True):
            images.append({"id": number, "file_name": str(name), "height": image.height, "width": image.width})
            for region, mask, box in zip(image.regions, image.masks, image.boxes.tolist(), strict=True):
                area, drawn = float(mask_tools().area(mask)), dict[str, Any]()
                if region.is_point:
                    area, drawn = 0.0, {"keypoints": [*region.shape, 2], "num_keypoints": 1}
                    drawn |= {"marked_by": region.marked_by, "covariance": region.covariance}
                elif isinstance(region.shape, str):
                    drawn["segmentation"] = {**mask, "counts": region.shape}
                annotations.append({
                    "id": len(annotations) + 1, "image_id": number, "category_id": codes[region.label],
                    "bbox": box, "area": area, "iscrowd": 0, "score": region.score, **drawn,
                })  # fmt: skip
        keypoints = {label: {"keypoints": [label], "skeleton": []} for _, image in marked for label in image.points}
        categories = [{"id": code, "name": label, **keypoints.get(label, {})} for label, code in codes.items()]
        return {"images": images, "annotations": annotations, "categories": categories}

    def _write(self, folder: Any, more: Mapping[str, Any] | None = None, file_format: str = "parquet") -> Path:
        coco = (json.dumps(self.to_coco()) + "\n").encode()
        return super()._write(folder, {"regions.json": lambda path: path.write_bytes(coco)}, file_format)

    @classmethod
    def _read(cls, found: ReadResult) -> dict[str, Any]:
        tasks, annotators, _ = cls.files
        classes, texts = found.list_of_names("classes"), found.names(tasks, "regions").tolist()
        return {
            "marked": np.array([MarkedImage.parse(text) if text else None for text in texts], object),
            "confidence": found.numbers(tasks, "confidence"),
            "agreement": found.numbers(annotators, "agreement"),
            "classes": classes,
            "distance": found.value("distance", int, float, None) if "distance" in found.summary else None,
            **{name: found.optional(annotators, name, len(classes)) for name in ("sensitivity", "specificity")},
            **found.names_and_counts(tasks, annotators),
        }

    def _answer_columns(self) -> Columns:
        regions = np.array([str(image or "") for image in self.marked], object)
        counts = self.annotations_per_task
        return {"task": self.tasks, "regions": regions, "confidence": self.confidence, "annotations": counts}

    def _of_annotators(self) -> Columns:
        return {"agreement": self.agreement, "sensitivity": self.sensitivity, "specificity": self.specificity}

    def _more(self) -> dict[str, Any]:
        return {"kind": self.kind, "classes": self.classes.tolist(), "distance": self.distance}


def _ids(known: list[int | None]) -> list[int]:
    """Keeps known ids if they are unique, and numbers the rest from 1."""
    numbers = [number for number in known if number is not None]
    if len(set(numbers)) < len(numbers):
        return [*range(1, len(known) + 1)]
    free = count(max(numbers, default=0) + 1)
    return [next(free) if number is None else number for number in known]
