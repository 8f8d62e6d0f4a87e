"""Matches regions to objects, and decides on each object's existence, class and edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Aggregator, VotesWarning, ignored, warn_of_notes
from crowdzoo.aggregation.named import FOR_CLASSES, METHODS, aggregator_named
from crowdzoo.aggregation.regions.objects import LEAST, Objects
from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.aggregation.result import different_note, empty_note
from crowdzoo.checks.constraints import Choice, Number, setting
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import Box, MarkedImage, Region, mask_of_pixels, mask_tools


@dataclass(frozen=True)
class MatchedObjects(Aggregator):
    """Merges overlapping regions to objects; a method for classes decides whether each object exists, and its class.

    An object has at most one region per annotator. Every annotator who saw the image gave the object a class, or said
    that it is nothing. Edges of a box are medians of the annotators' edges, and a mask has the pixels that at least
    half of them marked, both weighted by the annotators' skills if the method has them. Objects with only boxes are
    boxes.

    Points are matched by distance. The resulting point is at the weighted medians of their x and y, and has the number
    of annotators who marked it and the covariance of their points.

    Args:
        least: minimum mean intersection over union of an object's regions.
        distance: maximum mean distance of an object's points, in pixels; None: 3 % of the image's diagonal.
        exists: method for classes. Dawid-Skene's matrices tell how often an annotator misses and invents objects.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import MatchedObjects
        >>> image = '{"size": [40, 60], "regions": [{"category": "cat", "bbox": [%d, 9, 20, 20]}]}'
        >>> marked = [image % left for left in (9, 9, 8)]
        >>> boxes = Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], marked, kind="region")
        >>> result = MatchedObjects().fit(boxes)
        >>> [(region.label, region.shape) for region in result.marked[0].regions]
        [('cat', (9.0, 9.0, 20.0, 20.0))]

    Needs:
        At least three annotators per image; things that can be counted.

    Source:
        Clustering with average linkage: R. R. Sokal and C. D. Michener, 1958. Cf. S. Branson, G. Van Horn and P.
        Perona: Lean Crowdsourcing, CVPR 2017, who estimate existence and edges together.
    """

    kind: ClassVar[str] = "region"
    title: ClassVar[str] = "Matched objects"
    name: ClassVar[str] = "objects"

    least: float = setting(LEAST, Number(0, 1, above=True))
    distance: float | None = setting(None, Number(0, above=True, optional=True))
    exists: str = setting("dawid-skene", Choice(METHODS))

    def fit(self, annotations: Annotations) -> RegionAggregation:
        """Matches regions and aggregates objects.

        Args:
            annotations: regions that R annotators marked on N images, kind "region"; not changed.

        Returns:
            The objects that exist, with their probabilities.

        Raises:
            DataError: see `RegionTable.of`.
        """
        table = RegionTable.of(annotations, self.title)
        objects = Objects.of(table, self.least, self.distance)
        regions: list[list[Region]] = [[] for _ in range(annotations.num_tasks)]
        sums = np.zeros((2, annotations.num_tasks))
        learnt: dict[str, Any] = {}
        if len(objects.tasks):
            with ignored(VotesWarning):  # it is about tasks, and the class of nothing
                result = aggregator_named(FOR_CLASSES, self.exists, {}).fit(objects.answers)
            learnt = {name: getattr(result, name) for name in ("num_iterations", "converged")}
            learnt["notes"] = _notes(objects.answers, result.labels)
            warn_of_notes(self.title, learnt["notes"], 2)
            most = result.posteriors.max(axis=1)
            sums[0] = np.bincount(objects.tasks, most, annotations.num_tasks)
            sums[1] = np.bincount(objects.tasks, minlength=annotations.num_tasks)
            skills = np.ones(annotations.num_annotators) if result.skills is None else result.skills
            for code in np.flatnonzero(result.labels > 0).tolist():
                members = [(table.marked[row], place) for row, place in objects.members[code]]
                weights = np.maximum([skills[table.who[row]] for row, _ in objects.members[code]], 1e-6)
                label = str(result.classes[result.labels[code]])
                regions[objects.tasks[code]].append(_region(label, members, weights, float(most[code])))
        return RegionAggregation.of(self, table, regions, sums, **learnt)


def _notes(answers: Annotations, labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Notes as `notes_against_votes`, on objects; that no object is nothing needs no note."""
    votes, counts = (np.bincount(codes, minlength=answers.num_classes) for codes in (answers.labels, labels))
    votes[0] = 0  # nothing
    lost = empty_note(answers, votes, counts, "is that of no object, although {:.1%} of the regions have it")
    return different_note(answers, labels, "objects", "images whose regions are known") + lost


def _region(label: str, members: list[tuple[MarkedImage, int]], weights: NDArray[np.float64], score: float) -> Region:
    """The region of an object; see `shape_of`."""
    shape = shape_of(members, weights)
    marked = [image.regions[place] for image, place in members]
    if isinstance(shape, str) or not marked[0].is_point:
        return Region(label, shape, score)
    places = np.array([region.shape for region in marked], np.float64)
    covariance = tuple(map(tuple, np.cov(places.T).tolist())) if len(marked) > 1 else None
    return Region(label, shape[:2], score, marked_by=len(marked), covariance=covariance)


def shape_of(members: list[tuple[MarkedImage, int]], weights: NDArray[np.float64]) -> Box | str:
    """Returns a box or a mask that is the median of those of an object; for points a box without extent.

    Args:
        members: images, and the index of a region in each.
        weights: weights of the members, above 0.
    """
    if all(isinstance(image.regions[place].shape, tuple) for image, place in members):
        boxes = np.array([image.boxes[place] for image, place in members])
        boxes[:, 2:] += boxes[:, :2]
        order = np.argsort(boxes, axis=0)
        sums = np.cumsum(weights[order], axis=0)
        halves = [np.argmax(sums >= half, axis=0) for half in (sums[-1] / 2 * (1 - 1e-9), sums[-1] / 2 * (1 + 1e-9))]
        ordered = np.take_along_axis(boxes, order, axis=0)
        edges = np.mean([ordered[half, range(4)] for half in halves], axis=0)  # the mean of two if both are medians
        left, top, right, bottom = edges.tolist()
        return left, top, right - left, bottom - top
    masks = mask_tools().decode([image.masks[place] for image, place in members])
    return mask_of_pixels(masks @ weights >= weights.sum() / 2)
