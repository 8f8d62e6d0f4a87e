"""PixelVote: the pixels that half of the annotators marked, and the fit of all methods that decide by pixel."""

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
Part = tuple[int, Codes, NDArray[np.bool_], Codes]  # image, annotators who saw it, and `RegionTable.stack`


@dataclass(frozen=True)
class PixelVote(Aggregator):
    """The pixels marked by at least half of the annotators who saw the image; ties belong to the region.

    Annotators who saw an image and marked nothing vote against every pixel. Each class is decided independently, so a
    pixel may have two. There is one region per class and image; none if nobody marked the class.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import PixelVote
        >>> image = '{"size": [4, 6], "regions": [{"category": "cat", "bbox": [%d, 1, 2, 2]}]}'
        >>> marked = [image % left for left in (1, 1, 2)]
        >>> result = PixelVote().fit(Annotations.from_arrays([1, 1, 1], ["ann", "bob", "cem"], marked, kind="region"))
        >>> result.marked[0].boxes.tolist()  # left, top, width, height
        [[1.0, 1.0, 2.0, 2.0]]

    Needs:
        At least three annotators per image.

    Source:
        As Crowd-Kit's `SegmentationMajorityVote`.
    """

    kind: ClassVar[str] = "region"
    title: ClassVar[str] = "Pixel vote"
    name: ClassVar[str] = "majority-vote"
    _learns: ClassVar[tuple[str, ...]] = ()

    def fit(self, annotations: Annotations) -> RegionAggregation:
        """Computes one region per class for each image.

        Args:
            annotations: regions that R annotators marked on N images, kind "region"; not changed. Boxes are filled.

        Returns:
            The pixels with a probability of at least one half.

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
        """Computes the probability of each run of a class.

        Args:
            parts: the images on which anybody marked the class.
            number: R, number of annotators.

        Returns:
            Probabilities by part; sensitivity and specificity, [2, R]; number of iterations, and whether they
            converged.
        """
        return [inside.mean(axis=1) for _, _, inside, _ in parts], 1.0, 1, True
