"""The pixels that half of the annotators marked, and the fit that methods share which decide pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.aggregation.regions.region_aggregation import RegionAggregation
from crowdzoo.aggregation.regions.region_table import Codes, RegionTable
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import Region, mask_of_runs

Array = NDArray[np.float64]
Part = tuple[int, Codes, NDArray[np.bool_], Codes]  # image, who saw it, what `RegionTable.stack` gives


@dataclass(frozen=True)
class PixelVote(Aggregator):
    """The pixels that half of those who saw the image marked, or more: a tie belongs to the region.

    Who saw an image and marked nothing votes against every pixel. Each class is decided for itself, so that a pixel may
    have two. Where nobody marked anything, there is no region. An image has one region a class.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import PixelVote
        >>> image = '{"size": [4, 6], "regions": [{"category": "cat", "bbox": [%d, 1, 2, 2]}]}'
        >>> marked = [image % left for left in (1, 1, 2)]
        >>> result = PixelVote().fit(Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], marked, kind="region"))
        >>> result.marked[0].boxes.tolist()  # left, top, width, height
        [[1.0, 1.0, 2.0, 2.0]]

    Needs:
        Three annotators an image or more.

    Source:
        As Crowd-Kit's `SegmentationMajorityVote` has it.
    """

    kind: ClassVar[str] = "region"
    title: ClassVar[str] = "Pixel vote"
    name: ClassVar[str] = "majority-vote"
    _learns: ClassVar[tuple[str, ...]] = ()

    def fit(self, annotations: Annotations) -> RegionAggregation:
        """Finds one region a class for each image.

        Args:
            annotations: what R annotators marked on N images, kind "region"; not changed. Boxes count as filled.

        Returns:
            The pixels whose probability is a half or more.

        Raises:
            DataError: see `RegionTable.of`; points.
        """
        table = RegionTable.of(annotations, self.title)
        table.refuse_points(self.title)
        regions: list[list[Region]] = [[] for _ in range(annotations.num_tasks)]
        sums, images = np.zeros((2, annotations.num_tasks)), [*table.images()]
        rates, steps, converged = np.ones((2, annotations.num_annotators, len(table.classes))), 1, True
        for code, label in enumerate(table.classes):
            seen = [(task, rows) for task, rows in images if any(label in table.marked[row].of_classes for row in rows)]
            parts = [(task, table.who[rows], *table.stack(rows, label)) for task, rows in seen]
            shares, rates[..., code], number, ended = self._probabilities(parts, annotations.num_annotators)
            steps, converged = max(steps, number), converged and ended
            for (task, rows), (_, _, inside, lengths), share in zip(seen, parts, shares, strict=True):
                marked, chosen = lengths * inside.any(axis=1), share >= 0.5
                sums[:, task] += marked @ np.maximum(share, 1 - share), marked.sum()
                if chosen.any():
                    runs = np.add.reduceat(lengths, np.flatnonzero(np.diff(chosen, prepend=not chosen[0])))
                    mask = mask_of_runs([0] * int(chosen[0]) + runs.tolist(), *table.marked[rows[0]].size)
                    score = float(np.average(share[chosen], weights=lengths[chosen]))
                    regions[task].append(Region(label, mask, score))
        learnt = dict(zip(self._learns, rates, strict=False))
        return RegionAggregation.of(self, table, regions, sums, num_iterations=steps, converged=converged, **learnt)

    def _probabilities(self, parts: list[Part], number: int) -> tuple[list[Array], Any, int, bool]:
        """How probable each run of a class is.

        Args:
            parts: of the images on which somebody marked it.
            number: of annotators, R.

        Returns:
            Probabilities by part; sensitivity and specificity, [2, R]; iterations, and whether they converged.
        """
        return [inside.mean(axis=1) for _, _, inside, _ in parts], 1.0, 1, True
