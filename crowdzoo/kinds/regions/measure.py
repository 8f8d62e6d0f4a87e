"""Comparison of methods for regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import MarkedImage
from crowdzoo.kinds.measure import Measure, Scores, Sum
from crowdzoo.kinds.regions.masks import class_names, predict_images
from crowdzoo.kinds.regions.scoring import SCORING, RegionScoring, intersection_over_union, point_scores
from crowdzoo.kinds.scoring import Codes, Flags, Objects, Sums
from crowdzoo.kinds.training import Encoder, encode
from crowdzoo.training.digest import digest_of

if TYPE_CHECKING:
    from crowdzoo.training.crowd_model import CrowdModel
    from crowdzoo.training.pair_rows import Examples


class RegionMeasure(Measure[Annotations, RegionAggregation]):
    """Compare by the Dice coefficient with gold, or with hidden answers, of which an image may have several.

    A row of answers has the sum of an image's coefficients, their number, and the sum of intersections over unions;
    if annotators marked points, also the numbers of correct, marked and true points.
    """

    scoring = SCORING
    title = "Dice coefficient"
    answers_hold_gold = True
    hidden_title = "Dice coefficient with hidden answers"
    baseline = "majority-vote"
    quick: ClassVar[tuple[str, ...]] = ("majority-vote", "staple", "objects")
    takes_base = False

    def __init__(self, crowd: Annotations, gold: Any = None, scale: Mapping[str, Any] = MappingProxyType({})):
        super().__init__(crowd, gold, scale)
        self.scoring = RegionScoring(scale.get("distance"))
        self.has_points = any(image.points for image in np.asarray(crowd.values))
        if self.has_points:  # methods for pixels reject points
            vars(self).update(baseline="objects", quick=("objects",))

    def check(self, gold: object) -> Objects:
        """`MarkedImage` of each image, objects [N], None where unknown; accepts texts of them.

        Raises:
            DataError: gold does not match the images, or a text contains no regions.
        """
        images = (image or None for image in super().check(gold))
        return np.array([MarkedImage.parse(image) if isinstance(image, str) else image for image in images], object)

    @property
    def known(self) -> Flags:
        """Images with gold and answers."""
        return super().known & (self.annotations.redundancy > 0)

    def gold_digest(self) -> str:
        """Hash of gold as text, empty where unknown."""
        return digest_of(np.array([str(image or "") for image in self.gold], object))

    def answers(self, result: RegionAggregation, tasks: Codes, rows: Flags | None) -> Scores:
        """Sums of Dice coefficients, their number, and sums of intersections over unions."""
        return self._overlaps(result.marked[tasks], tasks, rows)

    def gold_targets(self, tasks: Codes) -> Objects:
        """True regions, without classes that no annotator marked."""
        names = class_names(self.annotations)
        known = ((image, (region for region in image.regions if region.label in names)) for image in self.gold[tasks])
        return np.array([replace(image, regions=tuple(regions)) for image, regions in known], object)

    def predict(self, model: CrowdModel, encoder: Encoder, x: Examples, tasks: Codes) -> Scores:
        """See `answers`, for masks in the size of their image; without gold, compared with all answers to it."""
        crowd, wanted = self.annotations, np.isin(np.arange(self.num_tasks), tasks)
        codes = np.zeros(self.num_tasks, np.int64)
        codes[crowd.task_ids] = crowd.labels
        rows = wanted[crowd.task_ids] if self.gold is None else None
        like = crowd.values[codes[tasks]]
        return self._overlaps(predict_images(model, encode(x, wanted, encoder), crowd, like), tasks, rows)

    def _overlaps(self, marked: Objects, tasks: Codes, rows: Flags | None) -> Scores:
        """See `answers`."""
        places, truth = self.references(tasks, rows)
        overlaps, ones = self.scoring.sums(truth, marked[places])
        columns = [overlaps, ones, intersection_over_union(overlaps)]
        columns += [*self.scoring.count_points(truth, marked[places]).T] if self.has_points else []
        return np.stack([np.bincount(places, column, len(tasks)) for column in columns], axis=1)

    def sums(self, answers: Scores, tasks: Codes) -> Sums:
        """Dice coefficients."""
        return answers[:, 0], answers[:, 1]

    def hidden_sums(self, rows: Flags | None = None) -> Sum:
        """Dice coefficients with hidden answers."""
        return self.sums

    def further(self, answers: Scores, tasks: Codes) -> dict[str, float]:
        """Intersection over union; with points also their precision, recall and F1."""
        _, number, overlaps, *points = answers.sum(axis=0)
        return {"IoU": float(overlaps / number), **(point_scores(*points) if points else {})}
