"""Objects: regions of several annotators that mark the same thing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from crowdzoo.aggregation.engine.clusters import clusters
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import mask_tools, radius_of

LEAST = 0.3  # mean overlap of the regions of one object; chosen in benchmarks/regions.py
NOTHING = "(nothing)"  # answer of annotators who saw the image and did not mark the object


@dataclass(frozen=True, eq=False)
class Objects:
    """Objects of all images, and the answers of each annotator of the image.

    Attributes:
        tasks: image of each object, [O].
        members: rows of the table and indices of their regions for each object, one per annotator.
        answers: kind "classification": one row per object and annotator of its image, with the class that the annotator
            gave it, or `NOTHING`, which is the first class (with more brackets if a class has this name).
    """

    tasks: NDArray[np.int64]
    members: list[list[tuple[int, int]]]
    answers: Annotations

    @classmethod
    def of(cls, table: RegionTable, least: float = LEAST, distance: float | None = None, most: float = 1.0) -> Objects:
        """Matches regions of an image, of any class, by clustering with average linkage.

        Args:
            table: table of the regions.
            least: mean intersection over union from which on two clusters are one object.
            distance: mean distance in pixels up to which two clusters of points are one object; None: see `radius_of`.
                Points never match other shapes.
            most: factor of the distance.
        """
        tasks, members, rows = list[int](), list[list[tuple[int, int]]](), list[tuple[int, int, int]]()
        nothing = NOTHING
        while nothing in table.classes:
            nothing = f"({nothing})"
        codes = {label: code for code, label in enumerate((nothing, *table.classes))}
        for task, of_image in table.images():
            every = [(row, place) for row in of_image for place in range(len(table.marked[row].regions))]
            by_cluster: dict[int, list[tuple[int, int]]] = {}
            for cluster, region in zip(_clusters(table, every, least, distance, most), every, strict=True):
                by_cluster.setdefault(cluster, []).append(region)
            for regions in by_cluster.values():
                classes = {row: table.marked[row].regions[place].label for row, place in regions}
                rows += [(len(tasks), table.who[row], codes[classes.get(row, nothing)]) for row in of_image]
                tasks.append(task)
                members.append(regions)
        numbers, who, labels = np.array(rows, np.int64).reshape(-1, 3).T
        names = np.arange(len(tasks)), table.annotations.annotators, np.array([*codes], object)
        return cls(np.array(tasks, np.int64), members, Annotations("classification", numbers, who, labels, *names))


def _clusters(
    table: RegionTable, every: list[tuple[int, int]], least: float, distance: float | None, most: float
) -> NDArray[np.int64]:
    """Cluster of each region of an image."""
    regions = [table.marked[row].regions[place] for row, place in every]
    rows, is_point = np.array([row for row, _ in every]), np.array([region.is_point for region in regions], bool)
    codes = np.zeros(len(every), np.int64)
    if is_point.any():
        places = np.array([region.shape for region in regions if region.is_point])
        near = 1 - cdist(places, places) / radius_of(table.marked[rows[0]], distance)
        codes[is_point] = clusters(near, rows[is_point], 1 - most)
    if not is_point.all():
        masks = [
            table.marked[row].masks[place] for (row, place), point in zip(every, is_point, strict=True) if not point
        ]
        overlaps = mask_tools().iou(masks, masks, [0] * len(masks))
        codes[~is_point] = codes.max() + 1 + np.array(clusters(overlaps, rows[~is_point], least))
    return codes
