"""Objects: regions of several annotators that are one thing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.clusters import clusters
from crowdzoo.aggregation.regions.region_table import RegionTable
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.regions import mask_tools

LEAST = 0.3  # mean overlap of the regions of one object; chosen in benchmarks/regions.py
NOTHING = "(nothing)"  # the answer of who saw the image and did not mark the object


@dataclass(frozen=True, eq=False)
class Objects:
    """Objects of all images, and what each annotator of the image said of them.

    Attributes:
        tasks: image of each object, [O].
        members: of each object the rows of the table and the places of their regions; one an annotator.
        answers: kind "classification": a row for each object and annotator of its image, the class that the annotator
            gave it, or `NOTHING`, which is the first class (in more brackets, where a class is called so).
    """

    tasks: NDArray[np.int64]
    members: list[list[tuple[int, int]]]
    answers: Annotations

    @classmethod
    def of(cls, table: RegionTable, least: float = LEAST) -> Objects:
        """Matches regions of an image, of any class, by clustering with average linkage.

        Args:
            table: of the regions.
            least: mean intersection over union of the regions of two clusters, from which on they are one object.
        """
        tasks, members, rows = list[int](), list[list[tuple[int, int]]](), list[tuple[int, int, int]]()
        nothing = NOTHING
        while nothing in table.classes:
            nothing = f"({nothing})"
        codes = {label: code for code, label in enumerate((nothing, *table.classes))}
        for task, of_image in table.images():
            every = [(row, place) for row in of_image for place in range(len(table.marked[row].regions))]
            by_cluster: dict[int, list[tuple[int, int]]] = {}
            for cluster, region in zip(_clusters(table, every, least), every, strict=True):
                by_cluster.setdefault(cluster, []).append(region)
            for regions in by_cluster.values():
                classes = {row: table.marked[row].regions[place].label for row, place in regions}
                rows += [(len(tasks), table.who[row], codes[classes.get(row, nothing)]) for row in of_image]
                tasks.append(task)
                members.append(regions)
        numbers, who, labels = np.array(rows, np.int64).reshape(-1, 3).T
        names = np.arange(len(tasks)), table.annotations.annotators, np.array([*codes], object)
        return cls(np.array(tasks, np.int64), members, Annotations("classification", numbers, who, labels, *names))


def _clusters(table: RegionTable, every: list[tuple[int, int]], least: float) -> list[int]:
    """Cluster of each region of an image."""
    masks = [table.marked[row].masks[place] for row, place in every]
    similarity = mask_tools().iou(masks, masks, [0] * len(every)) if masks else np.zeros((0, 0))
    return clusters(similarity, [row for row, _ in every], least)
